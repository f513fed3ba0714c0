"""Pilotage: a ServingEndpoint with an Experiment on it, and the operator as users run it."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial

from bench.experiments.gateway import gateway
from bench.experiments.stage import EDGE, NOWHERE, Stage, contour, install, until
from bench.experiments.subject import SHARE, Column, NotStarted, Subject
from controlplane.processes import Supervisor
from field import FieldError
from field.ground.backends import PORT
from pilotage.api.names import ENDPOINTS, EXPERIMENTS
from pilotage.kube import Json, ObjectKey, Propagation, Resource, merge_patch
from pilotage.operator.crds import crds
from pilotage.traffic.routers import ROUTERS

VARIANT = "variant"
SYSTEM = "pilotage-system"
COMMAND_SECONDS_MAX = 120.0
PARENTS: Mapping[str, Json] = {"HTTPRoute": {"gateway": {"namespace": EDGE, "name": EDGE}}}
"""Fields of `spec.route` beside its kind and its host."""


class PilotageExperiment(Subject):
    """Pilotage with a route of some kind."""

    def __init__(self, stage: Stage, namespace: str, *, kind: str) -> None:
        super().__init__(stage, namespace)
        self._router = ROUTERS[kind]
        self._route = {"kind": kind, "host": self.host, **PARENTS.get(kind, {})}
        # Its name is the model's, too, which the gateway keeps for a former endpoint of another namespace for a while.
        self._endpoint, self._experiment = ObjectKey(namespace, namespace), ObjectKey(namespace, VARIANT)
        self._receipts = tempfile.TemporaryDirectory(prefix="receipts-")
        self._command: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        spec = {
            "model": {"source": "hf://org/repo/model.gguf"},
            "runtime": {"port": PORT},
            "nodeSelector": NOWHERE,
            "route": self._route,
            "deletion": {"drainSeconds": 20},
        }
        await self.client.create(
            ENDPOINTS, {"metadata": {"name": self._endpoint.name}, "spec": spec}, namespace=self.namespace
        )
        await until("endpoint that serves", self._serves)

    async def shift(self) -> str:
        variant = {"name": VARIANT, "weight": SHARE, "overrides": {"runtime": {"args": ["--alias", VARIANT]}}}
        spec = {"endpoint": {"name": self._endpoint.name}, "variants": [variant], "duration": "1h"}
        await self.client.create(EXPERIMENTS, {"metadata": {"name": VARIANT}, "spec": spec}, namespace=self.namespace)
        try:
            return await until("route with the variant", self._given)
        except TimeoutError as error:
            found = await self.client.get(EXPERIMENTS, self._experiment)
            raise NotStarted(f"{error}; its status is {found.get('status', default=None)}") from None

    async def runs(self) -> None:
        await until("Experiment that runs", self._runs)

    async def end(self) -> None:
        await self._change({"duration": "1s"})  # counted from the moment at which all of it was programmed

    async def terminate(self) -> None:
        await self._change({"terminate": True})

    async def delete_experiment(self) -> None:
        await self._delete(EXPERIMENTS, self._experiment)

    async def delete_endpoint(self) -> None:
        await self._delete(ENDPOINTS, self._endpoint)

    async def delete_namespace_in_order(self) -> None:
        cluster = self.stage.cluster
        argv = [sys.executable, "-m", "pilotage", "delete", f"ns/{self.namespace}", "--yes"]
        argv += ["--kubeconfig", str(cluster.kubeconfig)]
        env = {**os.environ, "XDG_STATE_HOME": self._receipts.name}
        mark = cluster.audit_mark()
        self._command = await asyncio.create_subprocess_exec(*argv, env=env, stdout=subprocess.DEVNULL)

        async def deletes() -> bool:
            return bool(cluster.audit(since=mark, namespace=self.namespace, verb="delete"))

        await until("DELETE by the command", deletes)

    async def close(self) -> None:
        with self._receipts:
            if self._command is None:
                return
            code = await asyncio.wait_for(self._command.wait(), COMMAND_SECONDS_MAX)
            if code:
                raise FieldError(f"pilotage delete ns/{self.namespace} ended with exit code {code}")

    async def _serves(self) -> bool:
        found = await self.client.get(ENDPOINTS, self._endpoint)
        return bool(found.get("status", "phase", default="") == "Serving")

    async def _given(self) -> str:
        """The Service of the variant, once the route gives it requests."""
        assert self._router.resource is not None
        route = await self.client.get(self._router.resource, self._endpoint)
        backends = self._router.mix(route.to_dict()).backends
        return next((each.service for each in backends if each.weight == SHARE), "")

    async def _runs(self) -> bool:
        found = await self.client.get(EXPERIMENTS, self._experiment)
        return bool(found.get("status", "phase", default="") == "Running")

    async def _change(self, spec: Json) -> None:
        await self.client.patch(EXPERIMENTS, self._experiment, merge_patch({"spec": spec}))

    async def _delete(self, kind: Resource, key: ObjectKey) -> None:
        found = await self.client.get(kind, key, metadata_only=True)
        await self.client.delete(kind, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)


@contextlib.contextmanager
def operator(stage: Stage, *flags: str) -> Iterator[None]:
    """The operator, with its kinds."""
    install(stage.cluster, crds())
    if stage.cluster.find(f"/api/v1/namespaces/{SYSTEM}") is None:
        stage.cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
    with Supervisor() as supervisor:
        argv = [sys.executable, "-m", "pilotage", "operator", "--kubeconfig", str(stage.cluster.kubeconfig)]
        argv += ["--no-leader-election", "--metrics-address", "", "--fetch-image", "pilotage:none"]
        argv += ["--cache-root", str(supervisor.folder / "cache"), *flags]
        supervisor.start("operator", argv, env=os.environ)
        yield


def beside_contour(stage: Stage) -> contextlib.AbstractContextManager[None]:
    """The operator, which asks the Envoys of the stage for what they have loaded."""
    return operator(stage, *(word for each in stage.networks for word in ("--envoy-admins", f"unix://{each.admin}")))


COLUMNS: Mapping[str, Column] = {
    "pilotage-httpproxy": Column(
        "Pilotage, HTTPProxy", contour, beside_contour, partial(PilotageExperiment, kind="HTTPProxy")
    ),
    "pilotage-httproute": Column(
        "Pilotage, HTTPRoute", contour, beside_contour, partial(PilotageExperiment, kind="HTTPRoute")
    ),
    "pilotage-gateway": Column(
        "Pilotage, its own gateway", gateway, operator, partial(PilotageExperiment, kind="PilotageGateway")
    ),
}
