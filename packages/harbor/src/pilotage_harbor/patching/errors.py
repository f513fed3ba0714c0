"""Refusals of patches."""

from __future__ import annotations

from typing import Any

from pilotage_harbor.apimachinery.errors import StatusError

_UNPROCESSABLE = "the server rejected our request due to an error in our request"


class PatchError(StatusError):
    """A patch that cannot be applied. `why` says it in full; `message` is what kube-apiserver tells the client.

    The two differ for 422 alone: there kube-apiserver keeps the reason to itself.
    """

    def __init__(self, why: str, code: int = 400) -> None:
        details: dict[str, Any] | None = None
        message = why
        if code == 422:
            message, details = _UNPROCESSABLE, {}
        elif code == 413:
            message = f"Request entity too large: {why}"
        super().__init__(code, _REASONS.get(code, ""), message, details=details)
        self.why = why


_REASONS = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}
