"""Objects that are shown while they change are kept current by a watch, or by lists where that fails."""

import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotage.kube import Client, Forbidden, Json, KindNotServed, Unavailable
from pilotage.kube.transport import Request, Response, TransportError
from pilotage.runtime.live_objects import POLL_SECONDS, LiveObjects
from pilotage_sim.loop import virtual
from tests.support.kinds import CONFIG_MAPS
from tests.support.transports import MemoryResponse, answer

FORBIDDEN = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}
NOT_SERVED = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no such page"}


class Server:
    """A server with one list of objects; watches tell nothing, unless they are given something to say."""

    def __init__(self) -> None:
        self.names = ["a"]
        self.watch: Json | list[Json] | None = None
        self.refusal: Json | TransportError | None = None
        self.lists = 0

    async def send(self, request: Request) -> Response:
        if "watch=1" in request.target:
            if isinstance(self.watch, dict):
                return answer(self.watch, status=int(self.watch["code"]))
            told, self.watch = self.watch or [], None
            return MemoryResponse([msgspec.json.encode(event) + b"\n" for event in told], silent=True)
        self.lists += 1
        if isinstance(self.refusal, TransportError):
            raise self.refusal
        if self.refusal is not None:
            return answer(self.refusal, status=int(self.refusal["code"]))
        items = [{"metadata": meta(name, "5")} for name in self.names]
        return answer({"metadata": {"resourceVersion": "5"}, "items": items})

    async def close(self) -> None:
        pass


def meta(name: str, version: str) -> Json:
    return {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": version}


@contextlib.asynccontextmanager
async def live(server: Server) -> AsyncIterator[LiveObjects]:
    async with LiveObjects(Client(server), CONFIG_MAPS, "shop") as found:
        yield found


@virtual
async def test_a_watch_keeps_them_current() -> None:
    server = Server()
    server.watch = [
        {"type": "ADDED", "object": {"metadata": meta("b", "6")}},
        {"type": "DELETED", "object": {"metadata": meta("a", "7")}},
    ]
    async with live(server) as found:
        while set(found.objects) != {"b"}:
            await found.changed(60)
    assert server.lists == 1


@virtual
async def test_what_may_not_be_watched_is_listed_again_and_again() -> None:
    server = Server()
    server.watch = FORBIDDEN
    async with live(server) as found:
        server.names = ["b"]
        await found.changed(POLL_SECONDS)
        assert (set(found.objects), found.problem) == ({"b"}, "")
        server.names = ["c"]
        await found.changed(POLL_SECONDS)
        assert set(found.objects) == {"c"}


@virtual
async def test_an_error_that_passes_is_told_and_one_that_does_not_is_raised() -> None:
    server = Server()
    server.watch = FORBIDDEN
    async with live(server) as found:
        server.refusal = TransportError("connection refused", sent=False)
        await found.changed(POLL_SECONDS)
        assert "connection refused" in found.problem
        assert set(found.objects) == {"a"}
        server.refusal = None
        await found.changed(POLL_SECONDS)
        assert found.problem == ""
        server.refusal = FORBIDDEN
        with pytest.raises(Forbidden):
            await found.changed(POLL_SECONDS)
        server.refusal = NOT_SERVED
        with pytest.raises(KindNotServed):
            await found.changed(POLL_SECONDS)


@virtual
async def test_the_first_list_raises_whatever_goes_wrong() -> None:
    server = Server()
    server.refusal = TransportError("connection refused", sent=False)
    with pytest.raises(Unavailable):
        async with live(server):
            pass
