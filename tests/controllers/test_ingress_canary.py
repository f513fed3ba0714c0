"""A canary on Ingress-NGINX, as this controller sees it: every write of an Ingress, in a simulated cluster."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest

from pilotage.api.names import ENDPOINTS, EXPERIMENTS
from pilotage.kube import ObjectKey, merge_patch
from pilotage.serving.resources import DEPLOYMENTS, SERVICES
from pilotage.traffic.ingress_nginx import CONTROLLER, INGRESS_CLASSES
from pilotage.traffic.routers.ingress import INGRESSES
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.storage.store import Event
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import KEY, SimulatedCluster, simulated_cluster

NEXT = {"args": ["--ctx-size", "4096"]}
ROUTE = {"kind": "Ingress", "host": "chat.example.com", "className": "nginx"}
CANARY = ObjectKey("default", "chat-canary")
DRAIN_SECONDS = 20
ANNOTATION = "nginx.ingress.kubernetes.io/canary"


class IngressWrite(NamedTuple):
    """An Ingress as it was written, or that it is gone."""

    at: float
    text: str


class NginxCluster(SimulatedCluster):
    """A cluster with an IngressClass of Ingress-NGINX, and an eye on every state of Ingresses and Services."""

    def watch(self) -> None:
        self.early: list[str] = []
        self.changes: list[IngressWrite] = []
        self.backends: dict[str, str] = {}
        self.world.core.store.listen_to_all(self._note)

    def _note(self, event: Event) -> None:
        name = event.entry.name
        if event.storage == f"{INGRESSES.plural}.{INGRESSES.group}":
            self._note_ingress(event, name)
        elif event.storage == SERVICES.plural and event.type == "DELETED" and name in self.backends.values():
            self.early.append(f"service/{name} went before its Ingress")
        elif event.storage == f"{DEPLOYMENTS.plural}.{DEPLOYMENTS.group}":
            is_main = name == self.backends.get("chat")
            is_empty = event.type == "DELETED" or not msgspec.json.decode(event.entry.raw)["spec"]["replicas"]
            if is_main and is_empty:
                self.early.append(f"the main Service {name} has no replicas")
            if event.type == "DELETED" and f"{name}-canary" == self.backends.get("chat-canary"):
                self.early.append(f"{name} went before its canary Ingress")

    def _note_ingress(self, event: Event, name: str) -> None:
        now = asyncio.get_running_loop().time()
        if event.type == "DELETED":
            self.changes.append(IngressWrite(now, f"{name} gone"))
            del self.backends[name]
            return
        ingress = msgspec.json.decode(event.entry.raw)
        annotations = ingress["metadata"]["annotations"]
        service = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
        weight = f" {annotations[f'{ANNOTATION}-weight']}" if annotations.get(ANNOTATION) == "true" else ""
        if not self.changes or not any(each.text == f"{name} {service}{weight}" for each in self.last_of(name)):
            self.changes.append(IngressWrite(now, f"{name} {service}{weight}"))
        self.backends[name] = service
        if self.world.find(SERVICES, ObjectKey("default", service)) is None:
            self.early.append(f"service/{service} is not there")
        if len(set(self.backends.values())) < len(self.backends):
            self.early.append(f"one Service is behind both: {self.backends}")
        if "chat-canary" in self.backends and "chat" not in self.backends:
            self.early.append("the canary Ingress is alone")

    def last_of(self, ingress: str) -> list[IngressWrite]:
        return [each for each in self.changes if each.text.startswith(f"{ingress} ")][-1:]

    def take(self) -> list[str]:
        """The writes since the last call; two are never closer than nginx can read them."""
        taken, self.changes = self.changes, []
        moves = [each for each in taken if not each.text.endswith(" gone")]
        assert all(later.at - sooner.at >= 4 for sooner, later in itertools.pairwise(moves)), moves
        return [each.text for each in taken]

    @property
    def rollout(self) -> dict[str, Any]:
        found: dict[str, Any] = self.status().get("rollout", {})
        return found

    async def annotate(self, **annotations: str | None) -> None:
        named = {f"pilotage.dev/{name}": value for name, value in annotations.items()}
        await self.user.patch(ENDPOINTS, KEY, merge_patch({"metadata": {"annotations": named}}))

    async def rolled(self, phase: str, step: int | None = None) -> None:
        await self.until(
            lambda: self.rollout.get("phase") == phase and (step is None or self.rollout["step"] == step), 2000.0
        )

    async def canary(self, *steps: dict[str, Any], route: dict[str, Any] = ROUTE, **canary: Any) -> None:
        strategy = {"type": "Canary", "canary": {"steps": list(steps), **canary}}
        await self.deploy(route=route, replicas=2, strategy=strategy, deletion={"drainSeconds": DRAIN_SECONDS})

    async def canary_gone(self, number: int = 2) -> None:
        names = (f"Service/chat-{number}-canary", "Ingress/chat-canary")
        await self.until(lambda: not [each for each in self.parts() if each in names])


@contextlib.asynccontextmanager
async def place(controller: str = CONTROLLER) -> AsyncIterator[NginxCluster]:
    async with simulated_cluster(kind=NginxCluster, operate=False) as made:
        assert isinstance(made, NginxCluster)
        made.watch()
        body = {"metadata": {"name": "nginx"}, "spec": {"controller": controller}}
        await made.user.create(INGRESS_CLASSES, body)
        made.operate()
        yield made
        assert made.early == []


@virtual
async def test_a_canary_takes_its_steps_and_the_main_ingress_moves_while_the_canary_has_all_requests():
    async with place() as cluster:
        await cluster.canary({"setWeight": 10}, {"pause": {}}, {"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        assert cluster.take() == ["chat chat-1", "chat-canary chat-2-canary 0", "chat-canary chat-2-canary 10"]
        assert cluster.condition("RouteProgrammed")["reason"] == "AcceptedUnverified"
        main, canary = (cluster.world.find(SERVICES, ObjectKey("default", f"chat-2{tail}")) for tail in ("", "-canary"))
        assert canary["spec"]["selector"] == main["spec"]["selector"]
        await cluster.annotate(promote="chat-2/2")
        await cluster.rolled("Pausing", 4)
        assert cluster.take() == ["chat-canary chat-2-canary 50"]
        begun = asyncio.get_running_loop().time()
        await cluster.annotate(promote="chat-2/4")
        await cluster.rolled("Promoted")
        assert asyncio.get_running_loop().time() - begun > DRAIN_SECONDS, "nobody counts requests: all of the time"
        assert cluster.take() == ["chat-canary chat-2-canary 100", "chat chat-2", "chat-canary chat-2-canary 0"]
        await cluster.canary_gone()
        assert cluster.take() == ["chat-canary gone"]
        await cluster.serving("chat-2")
        assert cluster.condition("RouteProgrammed")["reason"] == "AcceptedUnverified"
        await cluster.until(lambda: "canary" not in str(cluster.status()["ledger"]))


@virtual
async def test_an_aborted_canary_leaves_at_weight_0_and_its_revision_goes_after_it():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        cluster.take()
        begun = asyncio.get_running_loop().time()
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        assert asyncio.get_running_loop().time() - begun > DRAIN_SECONDS
        assert cluster.take() == ["chat-canary chat-2-canary 0"]
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])
        assert cluster.take() == ["chat-canary gone"]
        await cluster.annotate(retry="chat-2")
        await cluster.rolled("Pausing", 2)
        assert cluster.take() == ["chat-canary chat-3-canary 0", "chat-canary chat-3-canary 50"]


@virtual
async def test_a_promotion_that_is_aborted_after_the_main_ingress_has_moved_goes_all_the_way_back():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        cluster.take()
        await cluster.annotate(promote="chat-2/all")
        await cluster.until(lambda: cluster.backends["chat"] == "chat-2")
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        assert cluster.take() == [
            "chat-canary chat-2-canary 100",
            "chat chat-2",
            "chat-canary chat-2-canary 0",
            "chat-canary chat-1-canary 0",
            "chat-canary chat-1-canary 50",
            "chat-canary chat-1-canary 100",
            "chat chat-1",
            "chat-canary chat-1-canary 0",
        ]
        await cluster.canary_gone(1)
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])


@virtual
@pytest.mark.parametrize("moment", ["chat-canary chat-2-canary 50", "chat chat-2"])
async def test_an_endpoint_that_is_deleted_in_mid_shift_loses_its_canary_ingress_first(moment: str):
    async with place() as cluster:
        await cluster.canary({"setWeight": 50})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.until(lambda: cluster.changes[-1].text == moment)
        await cluster.delete()
        await cluster.until(lambda: cluster.records())
        listed = {f"{each['kind']}/{each['name']}" for each in cluster.records()[0]["spec"]["parts"]}
        assert {"Ingress/chat", "Ingress/chat-canary", "Service/chat-2-canary"} <= listed
        await cluster.gone()
        assert cluster.take()[-2:] == ["chat-canary gone", "chat gone"]
        assert len(cluster.records()) == 1
        assert cluster.parts() == []


@virtual
async def test_an_ingress_of_another_controller_has_no_canary():
    async with place("example.com/other") as cluster:
        await cluster.canary({"setWeight": 50})
        await cluster.until(lambda: cluster.condition("Degraded").get("status") == "True")
        said = cluster.condition("Degraded")["message"]
        assert "k8s.io/ingress-nginx alone have weights" in said
        assert "ingressclass/nginx is of example.com/other" in said
        assert not cluster.changes


@virtual
@pytest.mark.parametrize(
    ("route", "canary", "words"),
    [
        ({"className": "none"}, {}, "there is no ingressclass/none"),
        ({"className": None}, {}, "needs route.className"),
        ({}, {"match": {"headers": [{"name": "x-beta", "exact": "1"}]}}, "choose requests by a header"),
        ({}, {"assign": {"by": "Key", "key": [{"header": "x-user"}]}}, "assign requests by a key"),
    ],
)
async def test_a_canary_that_an_ingress_cannot_have_is_refused(
    route: dict[str, Any], canary: dict[str, Any], words: str
):
    async with place() as cluster:
        wanted = {name: value for name, value in (ROUTE | route).items() if value}
        await cluster.canary({"setWeight": 50}, route=wanted, **canary)
        await cluster.until(lambda: words in cluster.condition("Degraded").get("message", ""))
        assert not cluster.changes


@virtual
async def test_without_the_right_to_read_the_class_a_canary_is_refused():
    async with place() as cluster:
        why = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403}

        def refuse(call: Call) -> ServerResponse | None:
            return ServerResponse(403, msgspec.json.encode(why)) if "/ingressclasses/" in call.path else None

        allow = cluster.world.intercept(refuse)
        await cluster.canary({"setWeight": 50})
        await cluster.until(
            lambda: "ingressclass/nginx cannot be read" in cluster.condition("Degraded").get("message", "")
        )
        allow()
        await cluster.serving()


@virtual
async def test_a_class_of_another_controller_in_mid_rollout_moves_nothing():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        body = {"metadata": {"name": "other"}, "spec": {"controller": "example.com/other"}}
        await cluster.user.create(INGRESS_CLASSES, body)
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        cluster.take()
        await cluster.change(route=ROUTE | {"className": "other"})
        await cluster.until(lambda: "is of example.com/other" in cluster.condition("Degraded").get("message", ""))
        for key in (KEY, CANARY):
            assert cluster.world.find(INGRESSES, key)["spec"]["ingressClassName"] == "nginx"
        await cluster.change(route=ROUTE)
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")


@virtual
async def test_a_canary_ingress_that_somebody_points_at_the_main_service_is_put_right():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        cluster.take()
        path = cluster.world.find(INGRESSES, CANARY)["spec"]["rules"][0]["http"]["paths"][0]
        path["backend"]["service"]["name"] = "chat-1"
        rules = [{"host": "chat.example.com", "http": {"paths": [path]}}]
        await cluster.user.patch(INGRESSES, CANARY, merge_patch({"spec": {"rules": rules}}))
        assert cluster.early.pop(), "it is an outage"
        await cluster.until(lambda: cluster.last_of("chat-canary")[0].text == "chat-canary chat-2-canary 50")
        assert [each.text for each in cluster.changes][1:] == [
            "chat-canary chat-2-canary 0",
            "chat-canary chat-2-canary 50",
        ]


@virtual
async def test_an_experiment_on_an_ingress_is_refused():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        cluster.take()
        spec = {
            "endpoint": {"name": "chat"},
            "variants": [{"name": "long", "weight": 10, "overrides": {"runtime": NEXT}}],
        }
        await cluster.user.create(EXPERIMENTS, {"metadata": {"namespace": "default", "name": "ab"}, "spec": spec})
        await cluster.until(lambda: cluster.status().get("experiments"))
        claim = cluster.status()["experiments"][0]
        assert claim["phase"] == "Refused"
        assert "A route of kind Ingress cannot share requests between Services" in claim["message"]
        await asyncio.sleep(60)
        assert not cluster.take()


@virtual
async def test_while_a_canary_ingress_cannot_be_deleted_its_revision_stays_and_the_next_canary_waits():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        why = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "not now", "code": 403}

        def refuse(call: Call) -> ServerResponse | None:
            is_meant = call.method == "DELETE" and call.path.endswith("/ingresses/chat-canary")
            return ServerResponse(403, msgspec.json.encode(why)) if is_meant else None

        allow = cluster.world.intercept(refuse)
        await cluster.change(runtime={"args": ["--ctx-size", "8192"]})
        await cluster.until(lambda: "ingress/chat-canary of the former rollout" in str(cluster.status()))
        cluster.take()
        await asyncio.sleep(300)
        assert cluster.take() == []
        assert "Deployment/chat-2" in cluster.parts()
        allow()
        await cluster.rolled("Pausing", 2)
        assert cluster.rollout["revision"] == "chat-3"
        assert cluster.take() == ["chat-canary gone", "chat-canary chat-3-canary 0", "chat-canary chat-3-canary 50"]


@virtual
async def test_another_host_in_mid_rollout_is_written_into_both_ingresses_one_by_one():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)

        def moved(key: ObjectKey) -> bool:
            return bool(cluster.world.find(INGRESSES, key)["spec"]["rules"][0]["host"] == "new.example.com")

        await cluster.change(route=ROUTE | {"host": "new.example.com"})
        await cluster.until(lambda: moved(KEY))
        assert not moved(CANARY)
        begun = asyncio.get_running_loop().time()
        await cluster.until(lambda: moved(CANARY))
        assert asyncio.get_running_loop().time() - begun >= 4
        assert cluster.backends == {"chat": "chat-1", "chat-canary": "chat-2-canary"}


@virtual
async def test_an_operator_that_starts_anew_in_mid_shift_goes_on_from_the_two_ingresses():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50})
        await cluster.serving()
        await cluster.change(runtime=NEXT)
        await cluster.until(lambda: cluster.changes[-1].text == "chat-canary chat-2-canary 100")
        cluster.managers[-1].stop()
        await asyncio.sleep(30.0)
        cluster.take()
        cluster.operate()
        await cluster.rolled("Promoted")
        assert cluster.take() == ["chat chat-2", "chat-canary chat-2-canary 0"]
