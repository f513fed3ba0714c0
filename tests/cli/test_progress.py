"""Progress of a teardown: the block on a terminal at a given moment, and the plain lines."""

import asyncio
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pilotage.catalogue.phase import Phase
from pilotage.cli.output.progress import QUIET_SECONDS, Block, Lines
from pilotage.cli.output.teardown import ROWS_MAX, TeardownProgress, describe
from pilotage.kube import Client, Resource, load_config
from pilotage.teardown.engine.decision import Cause, Decision, Observation, Wait
from pilotage.teardown.engine.progress import Step
from pilotage.teardown.planning.ledger import Entry, Ledger
from tests.cli.running import run, run_on_terminal
from tests.contract.server import harbor
from tests.support import kinds
from tests.teardown.building import GONE, NOW, PRESENT, entry, ledger, seconds

ROUTE, WEB, CONFIG, DATA = (
    entry("Ingress"),
    entry("Deployment"),
    entry("ConfigMap"),
    entry("PersistentVolumeClaim", "data"),
)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")


class Teardown:
    """One that is followed: all is there at first."""

    def __init__(self, *entries: Entry) -> None:
        self.ledger: Ledger = ledger(*entries)
        self.problem = ""
        self._gone: set[str] = set()

    def last_seen(self, entry: Entry) -> Observation:
        return GONE if entry.uid in self._gone else PRESENT

    def is_gone(self, *entries: Entry) -> None:
        self._gone |= {each.uid for each in entries}


def waiting(entry: Entry, cause: Cause, text: str, since: float, left: float) -> Wait:
    return Wait(entry, cause, "somebody", text, NOW - seconds(since), NOW + seconds(left))


def decision(phase: Phase, *waits: Wait) -> Decision:
    return Decision(phase, (), waits)


class Screen(io.StringIO):
    """A terminal, as far as the block needs one: its current content."""

    MOVES = re.compile(r"\x1b\[(\d*)([FKJm])|\n|[^\x1b\n]+")

    def __init__(self, *above: str) -> None:
        super().__init__()
        self.rows = [*above, ""]
        self._row = len(above)

    def write(self, text: str) -> int:
        for move in self.MOVES.finditer(text):
            if move[0] == "\n":
                self._row += 1
                self.rows += [""] * (self._row + 1 - len(self.rows))
            elif move[2] == "F":
                self._row -= int(move[1])
            elif move[2] == "K":
                self.rows[self._row] = ""
            elif move[2] == "J":
                del self.rows[self._row + 1 :]
                self.rows[self._row] = ""
            elif move[2] != "m":
                self.rows[self._row] += move[0]
        return len(text)

    @property
    def shown(self) -> list[str]:
        """The rows, up to where the cursor is."""
        return self.rows[: self._row]


class Shown(NamedTuple):
    """A block on a screen on which something stood before."""

    teardown: Teardown
    screen: Screen
    block: TeardownProgress

    def at(self, second: float, now: Decision) -> list[str]:
        """Output at that moment, below the previous output."""
        self.block.decision(now, NOW + seconds(second))
        assert self.screen.shown[0] == "$ pilotage delete"
        return self.screen.shown[1:]


def shown(*entries: Entry, width: int = 100) -> Shown:
    teardown, screen = Teardown(*entries), Screen("$ pilotage delete")
    return Shown(teardown, screen, TeardownProgress(teardown, Block(screen, width=width, hint="Ctrl-C stops safely")))


def test_a_terminal_shows_each_phase_what_is_waited_for_and_how_long_yet():
    block = shown(ROUTE, WEB, CONFIG, DATA)
    block.teardown.is_gone(ROUTE)
    block.block.step(Step("gone", ROUTE, NOW))
    stop = waiting(WEB, Cause.GRACE, "its pods have time to end", 5, 25)
    later = (waiting(each, Cause.ORDER, "goes after deployment/web", 0, 600) for each in (CONFIG, DATA))
    assert block.at(0, decision(Phase.STOP, stop, *later)) == [
        "✓ detach   1 of 1 gone",
        "▸ stop     0 of 1 gone",
        "    deployment/web  its pods have time to end (grace period, for 5 s, 25 s left)",
        "· remove   0 of 2 gone",
        "    configmap/web  goes after deployment/web (order, for 0 s, 10 min left)",
        "    persistentvolumeclaim/data  goes after deployment/web (order, for 0 s, 10 min left)",
        "  0.0 s; Ctrl-C stops safely",
    ]


def test_what_drains_has_its_reason_though_its_phase_has_many_objects_and_has_not_begun():
    webs = [entry("Deployment", f"web-{number}") for number in range(5)]
    place = shown(ROUTE, *webs)
    place.teardown.is_gone(ROUTE)
    text, until = "3 requests are in flight", NOW + seconds(30)
    wait = Wait(webs[0], Cause.ROUTER, "the router", text, NOW, until)
    rows = place.at(9, Decision(Phase.DRAIN, (), (wait,)))
    assert "    deployment/web-0  3 requests are in flight (router, for 9 s, 21 s left)" in rows
    assert not any("web-1" in row for row in rows)
    assert describe(wait, NOW + seconds(9)).endswith("(the router, for 9 s, 21 s left)")


def test_a_terminal_is_drawn_over_and_the_last_picture_stays():
    block = shown(ROUTE, WEB, CONFIG)
    first = block.at(0, decision(Phase.DETACH, waiting(ROUTE, Cause.ROUTER, "the router lets go", 0, 30)))
    assert len(first) == 7
    block.teardown.is_gone(ROUTE, WEB)
    held = waiting(CONFIG, Cause.FINALIZER, "finalizer acme.io/hold", 1, 60)
    assert block.at(7, decision(Phase.REMOVE, held)) == [
        "✓ detach   1 of 1 gone",
        "✓ stop     1 of 1 gone",
        "▸ remove   0 of 1 gone",
        "    configmap/web  finalizer acme.io/hold (finalizer, for 8 s, 53 s left)",
        "  7.0 s; Ctrl-C stops safely",
    ]
    block.teardown.is_gone(CONFIG)
    last = [
        "✓ detach   1 of 1 gone",
        "✓ stop     1 of 1 gone",
        "✓ remove   1 of 1 gone",
        "  7.0 s; Ctrl-C stops safely",
    ]
    assert block.at(7.02, decision(Phase.PROVE)) == last  # the end is not missed, though it comes at once
    block.block.close()
    block.screen.write("Receipt: r.json\n")
    assert block.screen.shown == ["$ pilotage delete", *last, "Receipt: r.json"]


def test_a_terminal_is_not_drawn_more_often_than_anybody_reads():
    block = shown(WEB)
    before = block.at(0, decision(Phase.STOP, waiting(WEB, Cause.GRACE, "one", 0, 30)))
    assert block.at(0.05, decision(Phase.STOP, waiting(WEB, Cause.GRACE, "two", 0, 30))) == before
    assert "two" in block.at(0.2, decision(Phase.STOP, waiting(WEB, Cause.GRACE, "two", 0, 30)))[1]


def test_no_line_is_wider_than_the_terminal_and_many_objects_are_counted():
    many = [entry("ConfigMap", f"with-a-rather-long-name-{number}") for number in range(ROWS_MAX + 3)]
    rows = shown(*many, width=40).at(0, decision(Phase.REMOVE))
    assert len(rows) == ROWS_MAX + 3
    assert rows[0] == f"▸ remove   0 of {ROWS_MAX + 3} gone"
    assert rows[-2] == "    … and 3 more"
    assert max(map(len, rows)) == 39  # a full line would be wrapped, and then not be drawn over


def test_plain_lines_tell_each_phase_once_and_what_is_waited_for_when_nothing_happens():
    teardown, out = Teardown(ROUTE, WEB, CONFIG), io.StringIO()
    lines = TeardownProgress(teardown, Lines(out))

    def told(now: Decision, second: float) -> list[str]:
        out.seek(0)
        out.truncate()
        lines.decision(now, NOW + seconds(second))
        return str(out.getvalue()).splitlines()

    assert told(decision(Phase.DETACH), 0) == []
    teardown.is_gone(ROUTE)
    lines.step(Step("gone", ROUTE, NOW + seconds(2)))
    stop = decision(Phase.STOP, waiting(WEB, Cause.GRACE, "its pods have time to end", 0, 30))
    [line] = told(stop, 2)
    assert line == f"{'detach   ingress/web gone':<69}    2.0 s"
    assert told(stop, 3) == []
    [line] = told(stop, 2 + QUIET_SECONDS)
    said = "its pods have time to end  (grace period: somebody, for 7 s, 23 s left)"
    assert line == f"waiting  deployment/web -n shop  {said}"
    assert told(stop, 3 + QUIET_SECONDS) == []
    teardown.problem = "connection refused"
    assert told(stop, 2 + 2 * QUIET_SECONDS)[0] == "waiting  the API server does not answer: connection refused"
    lines.step(Step("refused", WEB, NOW + seconds(20), "admission says no"))
    assert out.getvalue().splitlines()[-1] == "refused  deployment/web -n shop  admission says no; it is tried again"
    teardown.is_gone(WEB, CONFIG)
    assert [line.split()[0] for line in told(decision(Phase.PROVE), 20)] == ["stop", "remove"]


# Driven here


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A server whose namespace default has a route, a workload and its configuration."""
    monkeypatch.chdir(tmp_path)
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "web"}, "spec": {"defaultBackend": backend}}

    async def fill(kubeconfig: Path) -> None:
        async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
            await client.create(INGRESSES, ingress, namespace="default")
            await client.create(kinds.DEPLOYMENTS, kinds.deployment("web"), namespace="default")
            await client.create(kinds.CONFIG_MAPS, kinds.config_map("web"), namespace="default")

    with harbor() as place:
        asyncio.run(fill(place.kubeconfig))
        yield place.kubeconfig


WORDS = ("delete", "ingress/web", "deploy/web", "cm/web", "-n", "default", "--yes", "--receipt", "r.json")


def test_a_delete_tells_a_line_for_each_phase(filled: Path):
    ran = run(*WORDS, kubeconfig=filled)
    assert (ran.code, ran.err) == (0, "")
    plan, *phases, proof, receipt = ran.out.splitlines()
    assert plan.startswith("Plan: 3 objects in 3 steps.")
    assert [re.sub(r" +\d+\.\d s$", "", line) for line in phases] == [
        "detach   ingress/web gone",
        "stop     deployment/web gone",
        "remove   configmap/web gone",
    ]
    assert proof.startswith("prove    3 gone by uid, ")
    assert receipt == "Receipt: r.json (3 gone, 0 kept)"


def test_a_delete_on_a_terminal_leaves_the_last_picture_and_the_end_below_it(filled: Path, tmp_path: Path):
    ran = run_on_terminal(*WORDS, "--kubeconfig", filled, COLUMNS="90")
    assert ran.code == 0, ran
    screen = Screen()
    screen.write(ran.out)
    plan, *block, took, proof, receipt = screen.shown
    assert plan.startswith("Plan: 3 objects in 3 steps.")
    assert block == ["✓ detach   1 of 1 gone", "✓ stop     1 of 1 gone", "✓ remove   1 of 1 gone"]
    assert re.fullmatch(r"  \d+\.\d s; Ctrl-C stops safely", took)
    assert proof.startswith("prove    3 gone by uid, ")
    assert receipt == "Receipt: r.json (3 gone, 0 kept)"
    assert json.loads((tmp_path / "r.json").read_text())["result"] == "complete"


@pytest.mark.parametrize("kind", ["block", "lines"])
def test_what_others_have_written_stays_in_its_line(kind: str):
    teardown = Teardown(WEB)
    screen = Screen()
    shows = TeardownProgress(teardown, Block(screen, width=300, hint="") if kind == "block" else Lines(screen))
    hostile = waiting(WEB, Cause.FINALIZER, "waits\nFORGED\x1b[2J\x1b]52;c;eA==\x07\rFORGED", 10, 100)
    shows.decision(decision(Phase.STOP, hostile), NOW)
    shows.decision(decision(Phase.STOP, hostile), NOW + seconds(30))
    told = "\n".join(screen.shown)
    assert "waits\\nFORGED\\u001b[2J" in told
    assert not [line for line in screen.shown if line.strip().startswith("FORGED")]
    assert "\x07" not in told
