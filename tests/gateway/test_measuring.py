"""Reading of the lines about requests, and the sums over them: without an Envoy."""

import datetime as dt
import os

import pytest

from pilotage.api.measured import Stratum
from pilotage.gateway.division import RouteDivision, stratum_name
from pilotage.gateway.inputs import GatewayBackend, ProxiedRoute
from pilotage.gateway.measured_log import LogFollower, parsed_line
from pilotage.gateway.measuring import STRATA_MAX, Measuring
from pilotage.kube import ObjectKey

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BACKENDS = (GatewayBackend("a", 80, 50), GatewayBackend("b", 80, 50))
ROUTE = ProxiedRoute(ObjectKey("ns", "chat"), "uid", 1, "", "chat", backends=BACKENDS, measure=True)


def divided(a=50, b=50):
    return RouteDivision(((("ns_a_80", a), ("ns_b_80", b)),))


def line(stratum, *, kind="DownstreamEnd", stream="s", after=1.0, first="1000", flags="-", received="5", status="200"):
    start = f"{NOW.timestamp() + after:.3f}"
    fields = [kind, stratum, "ns_a_80", stream, start, status, flags, "3000", received, first, "2000", "-", "-"]
    return "\t".join(fields)


def measuring(*divisions):
    made = Measuring()
    for number, each in enumerate(divisions):
        made.programmed(ROUTE, each, f"v{number}", NOW + dt.timedelta(seconds=10 * number))
    return made


def numbers(made, monotonic=0.0):
    made.publish(NOW, monotonic)
    strata = [Stratum.read(each) for each in made.report("uid")]
    return [[(each.service, each.requests.n, each.requests.gave_up) for each in one.backends] for one in strata]


@pytest.mark.parametrize(
    "text",
    ["", "\t" * 12, "cut off", "DownstreamEnd\tuid/0/x\tcontrol" + "\t-" * 10, "a\tb\tns_a_80\td\te"],
)
def test_what_is_no_line_is_passed_over(text):
    assert parsed_line(text) is None


def test_a_request_that_did_not_arrive_says_nothing_about_a_server():
    made, division = measuring(divided()), divided()
    name = stratum_name(ROUTE, division, 0)
    for flags, received in (("DC", "-"), ("DC", "5"), ("-", "-")):
        made.take(parsed_line(line(name, flags=flags, received=received, first="-")), 0.0)
    assert numbers(made) == [[("a", 2, 1), ("b", 0, 0)]]


def test_a_request_of_another_stratum_or_route_is_not_counted():
    made = measuring(divided())
    name = stratum_name(ROUTE, divided(), 0)
    made.take(parsed_line(line(stratum_name(ROUTE, divided(1, 99), 0))), 0.0)
    made.take(parsed_line(line("other/0/x")), 0.0)
    made.take(parsed_line(line(name, after=-5)), 0.0)  # it began before
    assert numbers(made) == [[("a", 0, 0), ("b", 0, 0)]]
    made.take(parsed_line(line(name)), 0.0)
    assert numbers(made) == [[("a", 1, 0), ("b", 0, 0)]]


def test_a_request_under_way_that_nobody_hears_of_is_over():
    made = measuring(divided())
    made.take(parsed_line(line(stratum_name(ROUTE, divided(), 0), kind="DownstreamPeriodic", first="-")), 0.0)
    made.publish(NOW, 1.0)
    assert [each["underWay"] for each in made.report("uid")[0]["backends"]] == [1, 0]
    made.publish(NOW, 10.0)
    assert [each["underWay"] for each in made.report("uid")[0]["backends"]] == [0, 0]


def test_a_report_is_another_one_only_when_its_numbers_are():
    made = measuring(divided())
    assert made.publish(NOW, 0.0) == {"uid"}
    assert made.publish(NOW + dt.timedelta(hours=1), 0.0) == set()
    made.miss(2.5)
    assert made.publish(NOW + dt.timedelta(hours=2), 0.0) == {"uid"}
    (stratum,) = [Stratum.read(each) for each in made.report("uid")]
    assert (stratum.missed_seconds, stratum.until) == (2.5, "2026-01-01T02:00:00Z")


def test_strata_are_bounded_and_earlier_ones_stay():
    made = Measuring()
    earlier = [{"version": "v0", "since": "x", "until": "x"}]
    for number in range(STRATA_MAX + 3):
        made.programmed(ROUTE, divided(number, 100 - number), "v0", NOW, lambda: earlier)
        made.publish(NOW, 0.0)
        versions = [each["version"] for each in made.report("uid")]
        assert len(versions) == len({*versions}) == min(number + 2, STRATA_MAX)
        assert ("v0" in versions) == (number + 2 <= STRATA_MAX)
    made.programmed(ROUTE._replace(measure=False), divided(), "v1", NOW)
    assert (made.report("uid"), made.uids) == ([], set())


def test_a_log_is_read_from_where_it_ends_and_through_its_rotation(tmp_path):
    path = tmp_path / "measured.log"
    path.write_text("old\n")
    log = LogFollower(path)
    assert [*log.read()] == []
    with path.open("a") as before:
        before.write("one\ntw")
        before.flush()
        assert [*log.read()] == ["one"]
        path.rename(tmp_path / "measured.log.1")
        before.write("o\nthree\n")
        before.flush()
        assert [*log.read()] == ["two", "three"]  # Envoy has not opened another one yet
        before.write("four\n")
    path.write_text("five\n")
    assert [*log.read()] == ["four", "five"]
    log.close()


def test_nothing_but_a_file_is_read(tmp_path):
    path = tmp_path / "measured.log"
    log = LogFollower(path)
    os.mkfifo(path)
    assert [*log.read()] == []
    path.unlink()
    (tmp_path / "secret").write_text("secret\n")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        [*log.read()]
    path.unlink()
    path.write_text("line\n")
    assert [*log.read()] == ["line"]
    log.close()


def test_requests_that_begin_in_the_warm_up_are_left_out():
    route, division = ROUTE._replace(warmup_seconds=5), divided()
    made = Measuring()
    made.programmed(route, division, "v0", NOW)
    name = stratum_name(route, division, 0)
    for number, after in enumerate((1.0, 4.9, 5.0, 7.0)):
        made.take(parsed_line(line(name, stream=str(number), after=after)), 0.0)
    made.publish(NOW, 0.0)
    found = Stratum.read(made.report("uid")[0]).backends[0]
    assert (found.left_out, found.requests.n) == (2, 2)
