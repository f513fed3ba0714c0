"""A namespace with endpoints, and a stand-in for the operator: it writes the statuses that one would write."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import ENDPOINTS
from pilotage.kube import LEASES, Absent, Client, Object, ObjectKey, Resource, merge_patch
from pilotage.kube.wire import format_micro_time
from pilotage.runtime.clock import utc_now
from tests.cli.running import Ran, ask, run
from tests.support.waiting import until

T = TypeVar("T")
Json = dict[str, Any]
SOURCE = "hf://acme/small/model.gguf"
OTHER = "hf://acme/large/model.gguf"
SINCE = "2026-01-01T00:00:00Z"


class Chat(NamedTuple):
    """A namespace, and who may do all in it."""

    kubeconfig: Path
    namespace: str

    def ask(self, what: Callable[[Client], Awaitable[T]]) -> T:
        """One thing that a client does there."""
        return ask(self.kubeconfig, what)

    def run(self, *args: str | Path, stdin: str | None = None) -> Ran:
        """Run a command in this process, without a terminal."""
        return run(*args, "-n", self.namespace, kubeconfig=self.kubeconfig, stdin=stdin)

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    def make(self, name: str, status: Json | None = None, **more: Any) -> Object:
        """Create an endpoint, with a status if one is given. `more` is merged into its spec, except for `metadata`."""
        meta = {"name": name, **more.pop("metadata", {})}
        body = {"metadata": meta, "spec": {"model": {"source": SOURCE}} | more}
        made = self.create(ENDPOINTS, body)
        return self.write(name, status) if status is not None else made

    def create(self, resource: Resource, body: Json, status: Json | None = None) -> Object:
        """Any object, with a status if one is given."""

        async def create(client: Client) -> Object:
            made = await client.create(resource, body, namespace=self.namespace)
            if status is None:
                return made
            return await client.patch(resource, made.key, merge_patch({"status": status}), subresource="status")

        return self.ask(create)

    def write(self, name: str, status: Json) -> Object:
        """Write the status of an endpoint, as an operator does."""
        patch = merge_patch({"status": status})
        return self.ask(lambda client: client.patch(ENDPOINTS, self.key(name), patch, subresource="status"))

    def find(self, name: str, resource: Resource = ENDPOINTS) -> Object | None:
        async def read(client: Client) -> Object | None:
            with contextlib.suppress(Absent):
                return await client.get(resource, self.key(name))
            return None

        return self.ask(read)

    def spec(self, name: str) -> Json:
        found = self.find(name)
        assert found is not None
        return found.to_dict()["spec"]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def meanwhile(self, work: Callable[[Client], Awaitable[object]]) -> Iterator[None]:
        """Run another client's work while the block runs. Its errors are raised at the end."""
        problems: list[BaseException] = []

        def body() -> None:
            try:
                self.ask(work)
            except BaseException as error:  # noqa: BLE001
                problems.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        try:
            yield
        finally:
            thread.join(30)
        if problems:
            raise problems[0]

    def answering(self, name: str, *statuses: Json, generation: int = 1) -> contextlib.AbstractContextManager[None]:
        """Answer as an operator does to an endpoint of this generation, while the block runs."""

        async def answer(client: Client) -> None:
            await until(
                client,
                ENDPOINTS,
                self.key(name),
                lambda obj: obj is not None and obj.meta.generation >= generation,
            )
            for status in statuses:
                patch = merge_patch({"status": status | {"observedGeneration": generation}})
                await client.patch(ENDPOINTS, self.key(name), patch, subresource="status")

        return self.meanwhile(answer)

    def hold_lease(self, *, ago: float = 0.0, namespace: str = "") -> None:
        """An operator's Lease, renewed this many seconds ago."""

        async def hold(client: Client) -> None:
            import datetime as dt

            renewed = format_micro_time(utc_now() - dt.timedelta(seconds=ago))
            spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": renewed, "acquireTime": renewed}
            body = {"metadata": {"name": "pilotage-operator"}, "spec": spec}
            await client.create(LEASES, body, namespace=namespace or self.namespace)

        self.ask(hold)


def condition(type_: str, status: bool, reason: str = "AsExpected", message: str = "") -> Json:
    return {
        "type": type_,
        "status": str(status),
        "reason": reason,
        "message": message,
        "lastTransitionTime": SINCE,
    }


def revision(number: int, state: str, source: str = SOURCE, message: str = "", **spec: Any) -> Json:
    made = EndpointSpec.read({"model": {"source": source}} | spec).written()
    return {"number": number, "created": SINCE, "state": state, "message": message, "spec": made}


def part(kind: str, name: str, revision: int | None = None, uid: str = "", group: str = "apps/v1") -> Json:
    """A line of an endpoint's ledger."""
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    entry = {"apiVersion": group, "kind": kind, "resource": plural, "name": name, "uid": uid}
    return entry if revision is None else entry | {"revision": revision}


def serving(name: str, number: int = 1, *older: Json, **more: Any) -> Json:
    """The status of an endpoint that serves."""
    return {
        "phase": "Serving",
        "url": f"http://{name}.example.com/v1",
        "revision": f"{name}-{number}",
        "replicas": {"ready": 1, "desired": 1},
        "conditions": [
            condition("Available", True, "ReplicasReady"),
            condition("Progressing", False, "Arrived"),
            condition("Degraded", False),
        ],
        "history": [*older, revision(number, "Current")],
    } | more


STEPS: list[Json] = [
    {"setWeight": 5},
    {"pause": {"duration": "10m"}},
    {"analysis": {"atMost": "30m"}},
    {"setWeight": 25},
    {"setScale": {"replicas": 2}},
    {"pause": {}},
]
CANARY: Json = {"type": "Canary", "canary": {"steps": STEPS}}


def rolling(name: str, phase: str, step: int, *, weight: int | Json = 5, **more: Any) -> Json:
    """The status of an endpoint with a rollout in steps from its first revision to its second."""
    begun = [("setWeight 5", "00:01:00"), ("pause", "00:02:00"), ("analysis", "00:12:00"), ("setWeight 25", "00:20:00")]
    decisions = [
        {"what": "Shifting", "step": number, "at": f"2026-01-01T{at}Z", "text": text}
        for number, (text, at) in enumerate(begun[:step], 1)
    ]
    state = {
        "revision": f"{name}-2",
        "phase": phase,
        "step": step,
        "of": len(STEPS),
        "since": SINCE,
        "weight": weight if isinstance(weight, dict) else dict.fromkeys(("wanted", "programmed", "effective"), weight),
        "replicas": {"serving": "3 of 3", "candidate": "1 of 1"},
        "decisions": decisions,
    }
    made = serving(name) | {"phase": "Redeploying", "rollout": state | more}
    made["conditions"][1] = condition("Progressing", True, "Rolling")
    made["history"].append(revision(2, "Starting", OTHER))
    return made


def verdict_of(result: str, **more: Any) -> Json:
    """A comparison of the second revision with the first."""
    metric = {
        "name": "ttft",
        "candidate": "388ms",
        "other": "365ms",
        "difference": "+6.2%",
        "low": "-2.6%",
        "high": "+15.8%",
        "limit": "+10%",
        "result": result,
    }
    return {
        "result": result,
        "text": "ttft is not decided",
        "at": SINCE,
        "candidate": "a-2",
        "against": "a-1",
        "requests": {"a-2": 2214, "a-1": 2187},
        "seconds": 2880,
        "metrics": [metric],
        "advice": ["About 13,000 more requests each would decide it."],
    } | more


@contextlib.contextmanager
def with_ctrl_c() -> Iterator[None]:
    """SIGINT does what it does at a terminal: tests that run in the background have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def press_ctrl_c() -> None:
    """Send SIGINT as soon as the command handles it: it handles SIGTERM from the same moment on."""
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # noqa: ASYNC110 - it is no event
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
