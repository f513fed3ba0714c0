"""Objects of ours that wait for a gateway, for memory or for each other, on the real server beside the real operator.

A gateway is played where one is needed: its own code writes the status of the routes, and no Envoy runs.
"""

import datetime as dt
from collections.abc import Callable, Iterator

import pytest

from pilotage.api.names import HOST_LEASES
from pilotage.gateway import claims
from pilotage.gateway.inputs import read_route
from pilotage.gateway.records import read_records
from pilotage.gateway.status import RouteProgress, status_of
from pilotage.kube import Json, Object
from pilotage.kube.wire import format_time
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.diagnosis.why.render import exit_code, remedies_of, render
from tests.agent.agent_host import python_server
from tests.controllers.operating import GROUP, Operator
from tests.teardown.why.own_stage import DEPLOYMENTS, Case, Stuck, check
from tests.teardown.why.staging import root_codes

GATEWAY = {"kind": "PilotageGateway"}
LATER_SECONDS = 600
"""More time than a route is given to be taken up."""
UNHEALTHY = """
import http.server, os, pathlib
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if pathlib.Path({!r}).exists() else 200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""


# A gateway


def take_up(stuck: Stuck) -> None:
    """Write the status of all routes as a gateway does whose Envoy acknowledges all."""
    found = stuck.cluster.request("GET", f"{GROUP}/namespaces/{stuck.namespace}/gatewayroutes")["items"]
    routes = [Object.from_dict(each) for each in found]
    before = {each.meta.uid: read_records(each) for each in routes}
    decided = claims.decide(map(read_route, routes), before)
    for claim in decided.claims:
        counts = {each.service: 0 for each in claim.route.backends if not each.weight}
        record = decided.records[claim.route.uid]
        progress = RouteProgress("Programmed", "1", counts=counts, conflicts=claim.conflicts, claims=record)

        def play(route: Json, claim: claims.Claim = claim, progress: RouteProgress = progress) -> None:
            route["status"] = status_of(route.get("status", {}), claim.route, progress, dt.datetime.now(dt.UTC))

        stuck.change_at(stuck.path("GatewayRoute", claim.route.key.name), play, "/status")


def with_gateway(stuck: Stuck, name: str, **spec: object) -> None:
    """An endpoint that serves through the gateway."""
    stuck.deploy(name, route=GATEWAY, **spec)
    stuck.until_says("ServingEndpoint", name, "has not accepted the route yet")
    until_played(stuck, lambda: stuck.status(name).get("revision") == f"{name}-1")


def until_played(stuck: Stuck, condition: Callable[[], bool]) -> None:
    def is_so() -> bool:
        take_up(stuck)
        return condition()

    stuck.until(is_so)


def test_a_name_that_another_endpoint_has_at_the_gateway_is_named(stuck: Stuck) -> None:
    shared = {**GATEWAY, "host": f"shared.{stuck.namespace}.example.com"}
    with_gateway(stuck, "holder")
    stuck.change("holder", route=shared)
    until_played(stuck, lambda: shared["host"] in str(stuck.cluster.find(stuck.path("GatewayRoute", "holder"))))
    with_gateway(stuck, "second")
    stuck.change("second", route=shared)
    until_played(stuck, lambda: "NameConflict" in str(stuck.status("second")))
    command = f"kubectl edit servingendpoints.pilotage.dev/second -n {stuck.namespace}"
    root = f"is Degraded: host {shared['host']}/ leads to GatewayRoute {stuck.namespace}/holder, which has it."
    check(stuck.why("ServingEndpoint", "second"), Case("ServingEndpoint", "second", root, command))
    assert exit_code(stuck.why("ServingEndpoint", "holder")) == 0


def test_a_route_that_no_gateway_takes_up_holds_up_its_endpoint_once_there_was_time(stuck: Stuck) -> None:
    stuck.deploy("unrouted", route=GATEWAY)
    stuck.until_says("ServingEndpoint", "unrouted", "has not accepted the route yet")
    told = stuck.why("ServingEndpoint", "unrouted")
    assert (told.verdict, exit_code(told)) == (StuckVerdict.NOT_STUCK, 0), render(told)
    told = stuck.why("ServingEndpoint", "unrouted", later=LATER_SECONDS)
    command = f"kubectl describe gatewayroutes.pilotage.dev/unrouted -n {stuck.namespace}"
    root, step = "NOT PROGRAMMED for 10m", "is Deploying: `pilotage gateway` has not accepted the route yet"
    check(told, Case("ServingEndpoint", "unrouted", root, command, (step,)))
    assert [each.command for each in remedies_of(told)][1:] == ["pilotage gateway"]


def leaving(stuck: Stuck, name: str, **timeouts: int) -> None:
    """An endpoint that is deleted while its gateway is away."""
    with_gateway(stuck, name, deletion={"timeouts": timeouts})
    stuck.delete(name)
    stuck.until(stuck.waiting_for(f"gatewayroute/{name} -n {stuck.namespace}: `pilotage gateway` has not accepted"))


def test_a_teardown_that_waits_for_the_gateway_in_time_is_not_stuck(stuck: Stuck) -> None:
    leaving(stuck, "intime")
    (record,) = stuck.records_of("intime")
    for kind, name in (("ServingEndpoint", "intime"), ("Teardown", record)):
        told = stuck.why(kind, name)
        text = "\n".join(render(told))
        assert (told.verdict, exit_code(told)) == (StuckVerdict.NOT_STUCK, 0), text
        assert root_codes(told) == {CauseCode.TEARDOWN_WORKING}, text
        assert "`pilotage gateway` has not accepted the last change yet" in text


def test_a_teardown_whose_gateway_does_not_come_back_says_so_when_its_phase_is_overdue(stuck: Stuck) -> None:
    """The operator reports that by the time of the phase, long before that of the whole teardown is over."""
    leaving(stuck, "overdue", detach=1)
    (record,) = stuck.records_of("overdue")
    stuck.until_says("Teardown", record, '"Overdue"')
    route = f"gatewayroute/overdue -n {stuck.namespace}"
    root = f"waits for {route}: `pilotage gateway` has not accepted the last change yet"
    command = f"kubectl describe gatewayroutes.pilotage.dev/overdue -n {stuck.namespace}"
    for kind, name in (("ServingEndpoint", "overdue"), ("Teardown", record)):
        told = stuck.why(kind, name)
        check(told, Case(kind, name, root, command))
        assert [each.command for each in remedies_of(told)][1:] == ["pilotage gateway"]
    assert told.headline == "is not being deleted, and does not finish"
    until_played(stuck, lambda: stuck.get("overdue") is None)


# Servers on Hosts


@pytest.fixture(scope="module")
def host(running: tuple[Operator, Stuck]) -> Iterator[str]:
    """A Host with a real agent that probes often, and is short of memory as a test wants."""
    stuck = running[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORY_IS_SHORT", str(stuck.folder / "memory-is-short"))
        yield stuck.agent("--run-as", "root", module="tests.teardown.why.agent_without_memory")


def on_host(stuck: Stuck, name: str, host: str) -> None:
    stuck.on_host(name, host, python_server(UNHEALTHY.format(str(stuck.folder / f"{name}-is-ill"))))
    stuck.until(lambda: stuck.serves(name))


def test_a_server_that_does_not_answer_any_more_is_named_with_its_log(stuck: Stuck, host: str) -> None:
    on_host(stuck, "ill", host)
    (stuck.folder / "ill-is-ill").touch()
    stuck.until_says("HostProcess", "ill-1-0", '"Unhealthy"')
    stuck.until_says("ServingEndpoint", "ill", "ProcessUnhealthy")
    root, log = "is Unhealthy: ", f"pilotage logs ill -n {stuck.namespace} --tail 50"
    for kind, name in (("ServingEndpoint", "ill"), ("HostProcess", "ill-1-0")):
        told = stuck.why(kind, name)
        check(told, Case(kind, name, root, log))
        assert "\n".join(render(told)).count("503") == 1, render(told)


def test_a_server_that_was_evicted_is_sent_to_the_memory_of_its_host_and_not_to_its_log(
    stuck: Stuck, host: str
) -> None:
    on_host(stuck, "evicted", host)
    short = stuck.folder / "memory-is-short"
    short.touch()
    stuck.until_says("HostProcess", "evicted-1-0", '"Evicted"')
    stuck.until_says("ServingEndpoint", "evicted", "ProcessEvicted")
    root, command = "is Evicted: This host is short of memory", f"kubectl describe hosts.pilotage.dev/{host}"
    try:
        for kind, name in (("ServingEndpoint", "evicted"), ("HostProcess", "evicted-1-0")):
            told = stuck.why(kind, name)
            check(told, Case(kind, name, root, command))
            assert "pilotage logs" not in "\n".join(render(told))
    finally:
        short.unlink()


# A status that is newer than an Event


def event(stuck: Stuck, about: Json, message: str) -> None:
    named = {name: about["metadata"][name] for name in ("name", "namespace", "uid")}
    body = {
        "metadata": {"name": f"{named['name']}.1"},
        "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], **named},
        "type": "Warning",
        "reason": "Cleanup",
        "message": message,
        "source": {"component": "acme-operator"},
        "lastTimestamp": format_time(dt.datetime.now(dt.UTC)),
    }
    stuck.cluster.request("POST", f"/api/v1/namespaces/{stuck.namespace}/events", body)


def test_the_status_that_an_agent_writes_wins_over_its_older_event(stuck: Stuck) -> None:
    machine = stuck.machine()
    stuck.lease(HOST_LEASES, machine, ago=0, seconds=3600)
    stuck.deploy("busy", placement={"kind": "Host", "host": machine}, route={"kind": "None"})
    stuck.until(lambda: stuck.process("busy").get("spec", {}).get("host") == machine)
    stuck.doom("HostProcess", "busy-1-0")
    event(stuck, stuck.process("busy"), "It could not be stopped: requests are under way")
    said = {"phase": "Stopping", "message": "Process 30162 does not end, not even by SIGKILL."}
    stuck.write(stuck.path("HostProcess", "busy-1-0"), said)
    told = stuck.why("HostProcess", "busy-1-0")
    steps = (f"kept by the agent of host/{machine}",)
    command = f"ssh {machine} sudo kill -9 30162"
    check(told, Case("HostProcess", "busy-1-0", "NOT STOPPED: Process 30162 does not end", command, steps))
    assert "under way" not in "\n".join(render(told))


def test_the_condition_of_a_part_wins_over_an_older_event_about_it(stuck: Stuck) -> None:
    pods = {"metadata": {"labels": {"app": "n"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "n"}}, "template": pods}
    deployments = DEPLOYMENTS.format(stuck.namespace)
    stuck.cluster.request("POST", deployments, {"metadata": {"name": "newco-operator"}, "spec": spec})
    stuck.until(
        lambda: stuck.cluster.request("GET", f"{deployments}/newco-operator")["status"].get("availableReplicas")
    )
    stuck.endpoint("told")
    service = f"/api/v1/namespaces/{stuck.namespace}/services/told-1"
    stuck.hold(service, "newco.example.com/cleanup")
    stuck.delete("told")
    stuck.until(stuck.waiting_for("newco.example.com/cleanup"))
    event(stuck, {"apiVersion": "v1", "kind": "Service", **stuck.cluster.request("GET", service)}, "failed: then")
    condition = {"type": "Cleaned", "status": "False", "reason": "Failed", "message": "failed: now"}
    said = condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    stuck.change_at(service, lambda found: found["status"].update(conditions=[said]), "/status")
    told = stuck.why("ServingEndpoint", "told")
    steps = (f"waits for service/told-1 -n {stuck.namespace}", "kept by newco-operator")
    command = f"kubectl describe service/told-1 -n {stuck.namespace}"
    check(told, Case("ServingEndpoint", "told", "FAILS: failed: now", command, steps))


# Experiments


def experiment(stuck: Stuck, name: str, endpoint: str, **variant: object) -> Json:
    variants = [{"name": "other", "weight": 10, **(variant or {"same": True})}]
    return stuck.post("Experiment", name, {"endpoint": {"name": endpoint}, "variants": variants})


def test_an_experiment_on_an_endpoint_that_does_not_exist_names_it(stuck: Stuck) -> None:
    experiment(stuck, "early", "notyet")
    stuck.until_says("Experiment", "early", "servingendpoint/notyet does not exist")
    root = f"MISSING: servingendpoint/notyet -n {stuck.namespace} does not exist"
    command = f"kubectl get servingendpoints.pilotage.dev -n {stuck.namespace}"
    told = stuck.why("Experiment", "early")
    check(told, Case("Experiment", "early", root, command, ("is Pending: servingendpoint/notyet does not exist",)))
    assert remedies_of(told)[1].command == f"kubectl delete experiments.pilotage.dev/early -n {stuck.namespace}"


def test_an_experiment_on_an_endpoint_that_fails_leads_to_the_cause_of_that(stuck: Stuck) -> None:
    stuck.deploy("tested", model={"name": "lacking"})
    stuck.until_says("ServingEndpoint", "tested", "ModelMissing")
    experiment(stuck, "waits", "tested")
    stuck.until_says("Experiment", "waits", "until the endpoint serves")
    root = f"MISSING: model/lacking -n {stuck.namespace} does not exist"
    command = f"kubectl get models.pilotage.dev -n {stuck.namespace}"
    steps = ("is Pending: It waits until the endpoint serves.", "is Failed: ")
    check(stuck.why("Experiment", "waits"), Case("Experiment", "waits", root, command, steps))


def test_an_experiment_that_is_refused_says_why(running: tuple[Operator, Stuck]) -> None:
    """Its status is as the operator writes it; that does not run meanwhile, and so does not write another one."""
    process, stuck = running
    experiment(stuck, "refused", "notyet")
    stuck.until_says("Experiment", "refused", "Pending")
    said = "variant other is what serves already: give it overrides, or `same: true`."
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    condition = {"type": "Accepted", "status": "False", "reason": "Refused", "message": said, **times}
    status = {"phase": "Pending", "observedGeneration": 1, "waitingFor": said, "conditions": [condition]}
    with process.paused():
        stuck.write(stuck.path("Experiment", "refused"), status)
        told = stuck.why("Experiment", "refused")
    command = f"kubectl edit experiments.pilotage.dev/refused -n {stuck.namespace}"
    check(told, Case("Experiment", "refused", f"REFUSED: {said}", command))
    assert remedies_of(told)[1].command == f"kubectl delete experiments.pilotage.dev/refused -n {stuck.namespace}"
