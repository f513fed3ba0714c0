"""Rollouts in steps on a real API server, with real Deployments: steps, abort, retry, hold, rollback, no spare GPU.

One operator process and one namespace serve the whole module; each test has endpoints of its own. A gateway stands in
that acknowledges each version of a route a moment later.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import Cluster
from controlplane.access import Access, ApiError
from tests.controllers.operating import Place, install, operator

Json = dict[str, Any]
GPUS = "2"
GPU = {"limits": {"nvidia.com/gpu": "1"}}
NEXT = {"args": ["--seed", "2"]}


class Canaries(Place):
    """A namespace with an operator and a gateway."""

    def canary(self, name: str, *steps: Json, replicas: int = 2, more: Json | None = None, **spec: Any) -> None:
        """Deploy an endpoint that serves, with the steps of its next revision."""
        strategy = {"type": "Canary", "canary": {"steps": list(steps), **(more or {})}}
        deletion = {"drainSeconds": 0}
        self.deploy(
            name, route={"kind": "PilotageGateway"}, replicas=replicas, strategy=strategy, deletion=deletion, **spec
        )
        self.until(lambda: self.serves(name))

    def rollout(self, name: str) -> Json:
        found: Json = self.status(name).get("rollout", {})
        return found

    def is_in(self, name: str, phase: str, step: int | None = None) -> bool:
        found = self.rollout(name)
        return found.get("phase") == phase and step in (None, found["step"])

    def annotate(self, name: str, annotation: str) -> None:
        self.cluster.kubectl("annotate", "se", name, "-n", self.namespace, "--overwrite", f"pilotage.dev/{annotation}")

    def mix(self, name: str) -> dict[str, int]:
        route = self.cluster.request("GET", self._path(name, "gatewayroutes"))
        return {each["service"]: each["weight"] for each in route["spec"]["backends"]}

    def pods(self, prefix: str) -> set[str]:
        return {part for part in self.parts() if part.startswith(f"pods/{prefix}-")}

    def of_steps(self, name: str) -> list[str]:
        """The Jobs of steps, and their pods."""
        return [part for part in self.parts() if f"/{name}-" in part and "-step" in part]

    @contextlib.contextmanager
    def cordoned(self) -> Iterator[None]:
        """No node takes a pod meanwhile."""
        node = self.cluster.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
        self.cluster.kubectl("cordon", node)
        try:
            yield
        finally:
            self.cluster.kubectl("uncordon", node)

    def fail(self, pod: str, code: int, message: str) -> None:
        """Play the kubelet: the container of a Job's pod exits."""
        ended = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
        container = {"name": "evaluation", "image": "eval", "imageID": "", "ready": False, "restartCount": 0}
        patch = json.dumps({"status": {"phase": "Failed", "containerStatuses": [container | {"state": ended}]}})
        self.cluster.kubectl("patch", pod, "-n", self.namespace, "--subresource=status", "--type=merge", "-p", patch)

    def history(self, name: str) -> list[tuple[int, str]]:
        return [(past["number"], past["state"]) for past in self.status(name)["history"]]

    def acknowledge(self, stopped: threading.Event) -> None:
        """Play the gateway."""
        while not stopped.wait(0.1):
            with contextlib.suppress(ApiError):  # the kind is new, or the route has changed or is gone
                for route in self.cluster.request("GET", self._path(kind="gatewayroutes"))["items"]:
                    self._acknowledge(route)

    def _acknowledge(self, route: Json) -> None:
        generation, backends = route["metadata"]["generation"], route["spec"]["backends"]
        if route.get("status", {}).get("observedGeneration") == generation:
            return
        counts = [{"service": each["service"], "inFlight": 0} for each in backends]
        route["status"] = {"observedGeneration": generation, "state": "Programmed", "counts": counts}
        self.cluster.request("PUT", f"{self._path(route['metadata']['name'], 'gatewayroutes')}/status", route)


@pytest.fixture(scope="module")
def canaries(cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own: its node gets GPUs")
    install(cluster)
    _set_gpus(cluster, GPUS)
    stopped = threading.Event()
    with cluster.namespace("canaries") as namespace:
        place = Canaries(cluster, namespace)
        gateway = threading.Thread(target=place.acknowledge, args=(stopped,))
        gateway.start()
        try:
            with operator(cluster, tmp_path_factory.mktemp("operator")):
                yield place
                cluster.kubectl("delete", "se", "--all", "-n", namespace, "--wait=false")
                place.until(lambda: not place.endpoints())
        finally:
            stopped.set()
            gateway.join()
    _set_gpus(cluster, None)


def _set_gpus(cluster: Cluster, number: str | None) -> None:
    node = cluster.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    sizes = {"nvidia.com/gpu": number}
    patch = json.dumps({"status": {"capacity": sizes, "allocatable": sizes}})
    cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)


def test_it_takes_its_steps_is_promoted_and_comes_back_in_the_window(canaries: Canaries):
    steps: tuple[Json, ...] = (
        {"setWeight": 50},
        {"pause": {"duration": "1s"}},
        {"setScale": {"percent": 100}},
        {"pause": {}},
    )
    canaries.canary("steps", *steps, more={"surge": "100%"})
    first = canaries.pods("steps-1")
    canaries.change("steps", runtime=NEXT)
    canaries.until(lambda: canaries.is_in("steps", "Pausing", 4))
    assert canaries.mix("steps") == {"steps-1": 50, "steps-2": 50}
    second = canaries.pods("steps-2")
    assert len(second) == 2
    canaries.annotate("steps", "promote=steps-2/4")
    canaries.until(lambda: canaries.serves("steps", 2))
    assert canaries.pods("steps-2") == second, "nothing was restarted"
    assert canaries.history("steps") == [(1, "Resting"), (2, "Current")]
    assert canaries.pods("steps-1") == first
    canaries.change("steps", runtime={"args": []})
    canaries.until(lambda: canaries.serves("steps", 1))
    assert canaries.mix("steps") == {"steps-1": 100}
    assert (canaries.pods("steps-1"), canaries.history("steps")) == (first, [(1, "Current"), (2, "Resting")])


def test_it_is_aborted_held_and_tried_again_by_request(canaries: Canaries):
    canaries.canary("back", {"setWeight": 50}, {"pause": {"duration": "1s"}}, {"setWeight": 60}, {"pause": {}})
    canaries.change("back", runtime=NEXT)
    canaries.until(lambda: canaries.is_in("back", "Pausing", 4))
    canaries.annotate("back", "abort=back-2")
    canaries.until(lambda: canaries.is_in("back", "Aborted") and not canaries.pods("back-2"))
    assert canaries.mix("back") == {"back-1": 100}
    assert canaries.status("back")["phase"] == "Degraded"
    canaries.annotate("back", "hold=back-3")
    canaries.annotate("back", "retry=back-2")
    canaries.until(lambda: canaries.is_in("back", "Held"))
    assert canaries.mix("back") == {"back-1": 100}
    canaries.annotate("back", "hold-")
    canaries.until(lambda: canaries.is_in("back", "Pausing", 4))
    canaries.annotate("back", "promote=back-3/all")
    canaries.until(lambda: canaries.serves("back", 3))


def test_two_gpus_are_enough_for_two_replicas(canaries: Canaries):
    """Without a GPU to spare, one replica makes room for each new one."""
    canaries.canary("small", {"setWeight": 50}, {"pause": {}}, more={"surge": 0}, resources=GPU)
    canaries.change("small", runtime=NEXT)
    canaries.until(lambda: canaries.is_in("small", "Pausing", 2))
    assert (len(canaries.pods("small-1")), len(canaries.pods("small-2"))) == (1, 1)
    canaries.annotate("small", "promote=small-2/2")
    canaries.until(lambda: canaries.serves("small", 2) and len(canaries.pods("small-2")) == 2)
    assert not canaries.pods("small-1")


def test_a_job_judges_the_candidate(canaries: Canaries):
    """The Job controller is the real one. A node that is cordoned leaves the second Job's pod for the test to end."""
    job = {"job": {"image": "eval", "args": ["--against", "$(SERVING_URL)"], "atMost": "5m"}}
    canaries.canary("judged", {"setWeight": 50}, job, {"pause": {}}, job)
    canaries.change("judged", runtime=NEXT)
    canaries.until(lambda: canaries.is_in("judged", "Pausing", 3))
    canaries.until(lambda: not canaries.of_steps("judged"))
    with canaries.cordoned():
        canaries.annotate("judged", "promote=judged-2/3")
        canaries.until(lambda: len(canaries.of_steps("judged")) == 2)
        canaries.fail(next(each for each in canaries.of_steps("judged") if each.startswith("pods/")), 1, "it lost")
        canaries.until(lambda: canaries.is_in("judged", "Aborted"))
    assert "exit code 1, it lost" in canaries.rollout("judged")["message"]
    assert canaries.mix("judged") == {"judged-1": 100}
    canaries.until(lambda: not [part for part in canaries.parts() if "judged-2" in part])


def test_deleted_in_the_middle_all_of_it_goes(canaries: Canaries):
    canaries.canary("gone", {"setWeight": 50}, {"pause": {}})
    canaries.change("gone", runtime=NEXT)
    canaries.until(lambda: canaries.is_in("gone", "Pausing", 2))
    canaries.delete("gone")
    canaries.until(lambda: canaries.get("gone") is None)
    assert [part for part in canaries.parts() if "gone" in part] == []
    assert [each["spec"]["reason"] for each in canaries.records() if each["spec"]["target"]["name"] == "gone"] == [
        "Deleted"
    ]
