"""The housekeeping's client of the API: its requests pass authorization and admission like all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.apimachinery.calls import JSON, Call, ServerResponse
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import AUTHENTICATED, MASTERS, UserInfo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pilotage_harbor.apimachinery.calls import Stream
    from pilotage_harbor.kinds import Json, Kind

    Handle = Callable[[Call], Awaitable[ServerResponse | Stream]]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def controller(name: str) -> UserInfo:
    """One of kube-controller-manager's controllers. Nothing is refused to it, whatever the roles say."""
    groups = (MASTERS, "system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:kube-system:{name}", groups=groups)


class Asker:
    """Asks as one user, with one program's name."""

    def __init__(self, handle: Handle, user: UserInfo, program: str) -> None:
        self._handle = handle
        self._user = user
        self._agent = f"{program}/v1.36"

    async def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        media: str = JSON,
        query: Mapping[str, list[str]] | None = None,
    ) -> Json:
        """The decoded answer; raises StatusError where it is a refusal. Of a list that comes in pieces, nothing."""
        headers = {"user-agent": self._agent, "accept": JSON}
        if body is not None:
            headers["content-type"] = media
        raw = msgspec.json.encode(body) if body is not None else b""
        answer = await self._handle(Call(method, path, query or {}, headers, raw, self._user))
        if not isinstance(answer, ServerResponse):
            answer.close()  # what a collection held that has been deleted: nobody here looks at it
            return {}
        try:
            decoded: Any = msgspec.json.decode(answer.body) if answer.body else {}
        except msgspec.DecodeError:  # where nothing is served at all, the answer is text
            decoded = {"message": answer.body.decode(errors="replace").strip()}
        if answer.status >= 400:
            raise StatusError(
                answer.status,
                decoded.get("reason", ""),
                decoded.get("message", ""),
                details=decoded.get("details"),
            )
        result: Json = decoded
        return result


def path_of(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Path of an object, or of a collection."""
    parts = ["/apis", kind.group, kind.version] if kind.group else ["/api", kind.version]
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    parts.append(kind.plural)
    return "/".join([*parts, *(part for part in (name, subresource) if part)])
