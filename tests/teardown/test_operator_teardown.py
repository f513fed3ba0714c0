"""Endpoints that an operator takes down, followed by its records: what is not known is never taken for gone."""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID
from pilotage.kube import Client, Discovery, Forbidden, Json, Object
from pilotage.kube.transport import Request, Response
from pilotage.teardown.engine.decision import Decision
from pilotage.teardown.engine.progress import Step
from pilotage.teardown.session import Session
from pilotage.teardown.session.operator_lease import OperatorPresence
from pilotage.teardown.session.operator_teardown import EndpointEnd, EndpointResult, OperatorTeardown
from pilotage_sim.loop import virtual
from tests.support.transports import MemoryResponse, answer

TIMEOUT = 30.0
PART = {"apiVersion": "apps/v1", "kind": "Deployment", "resource": "deployments", "name": "a-1", "uid": "u-1"}


class Server:
    """An API server with one endpoint, which is gone once it is deleted, and records of its teardown."""

    def __init__(self) -> None:
        self.endpoint: Json = {
            "apiVersion": ENDPOINTS.api_version,
            "kind": ENDPOINTS.kind,
            "metadata": {"name": "a", "namespace": "chat", "uid": "u", "resourceVersion": "1"},
            "spec": {"model": {"source": "hf://a/b/c.gguf"}},
            "status": {"ledger": [PART]},
        }
        self.records: list[Json] = []
        self.refused: dict[str, int] = {}
        """Status codes, by what they answer: ``DELETE endpoint``, ``GET endpoint``, ``LIST teardowns``."""
        self.asked: list[str] = []

    async def send(self, request: Request) -> Response:
        if "watch=1" in request.target:
            return MemoryResponse([], silent=True)
        teardowns = "/teardowns" in request.target
        asked = "LIST teardowns" if teardowns else f"{request.method} endpoint"
        self.asked.append(asked)
        if asked in self.refused:
            return self._status(self.refused[asked])
        if teardowns:
            return answer({"metadata": {"resourceVersion": "5"}, "items": self.records})
        return self._status(404) if self.asked.count("DELETE endpoint") else answer(self.endpoint)

    async def close(self) -> None:
        pass

    def record(self, name: str, phase: str, created: str) -> None:
        target = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "namespace": "chat", "name": "a"}
        meta = {"name": name, "namespace": "chat", "uid": name, "resourceVersion": "4", "creationTimestamp": created}
        self.records.append(
            {
                "metadata": meta | {"labels": {LABEL_ENDPOINT_UID: "u"}},
                "spec": {"target": target | {"uid": "u"}, "reason": "Deleted"},
                "status": {"phase": phase},
            }
        )

    def _status(self, code: int) -> MemoryResponse:
        reason = {403: "Forbidden", 404: "NotFound", 500: "InternalError"}[code]
        body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}
        return answer(body | {"details": {"name": "a", "kind": "servingendpoints"}}, status=code)


class Quiet:
    """An observer that does not care."""

    def step(self, step: Step) -> None: ...

    def decision(self, decision: Decision, now: dt.datetime) -> None: ...


@contextlib.asynccontextmanager
async def operated(server: Server) -> AsyncIterator[OperatorTeardown]:
    client = Client(server)
    session = Session(client, Discovery(client), "https://cluster.example")
    found = [Object.from_dict(server.endpoint)]
    yield OperatorTeardown(session, OperatorPresence(True, "chat", "fresh"), found, [], TIMEOUT)


async def followed(server: Server) -> EndpointResult:
    async with operated(server) as teardown:
        await teardown.start()
        (each,) = teardown.teardowns
        return await each.follow(Quiet())


@virtual
async def test_an_endpoint_that_cannot_be_read_is_not_gone() -> None:
    server = Server()
    server.record("r", "done", "2026-01-01T00:00:00Z")
    server.refused = {"GET endpoint": 500}
    assert (await followed(server)).end is EndpointEnd.ITSELF_LEFT


@virtual
async def test_one_that_is_under_way_counts_before_one_that_has_ended() -> None:
    server = Server()
    server.record("later", "done", "2026-01-02T00:00:00Z")
    server.record("earlier", "stop", "2026-01-01T00:00:00Z")
    result = await followed(server)
    assert (result.end, result.record, result.left) == (EndpointEnd.LEFT, "earlier", 2)


@virtual
async def test_nothing_is_deleted_if_the_records_may_not_be_read() -> None:
    server = Server()
    server.refused = {"LIST teardowns": 403}
    async with operated(server) as teardown:
        with pytest.raises(Forbidden):
            await teardown.start()
    assert server.asked == ["LIST teardowns"]


@pytest.mark.parametrize(
    ("ledger", "end"), [([PART], EndpointEnd.NO_RECORD), ([], EndpointEnd.NOTHING_MADE)], ids=["parts", "none"]
)
def test_one_that_is_gone_without_a_record_is_only_proven_if_nothing_was_made(ledger: Any, end: EndpointEnd) -> None:
    @virtual
    async def play() -> None:
        server = Server()
        server.endpoint["status"]["ledger"] = ledger
        result = await followed(server)
        assert (result.end, result.receipt) == (end, None)

    play()
