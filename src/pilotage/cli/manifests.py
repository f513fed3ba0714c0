"""Our kinds in manifests: what ``-f`` gives `deploy` and `redeploy`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, NamedTuple

from pilotage.cli.errors import BadTarget

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pilotage.kube import Json


class Manifests(NamedTuple):
    """The objects of our kinds in manifests, each with its namespace."""

    models: list[Json]
    endpoints: list[Json]


async def read_manifests(files: Sequence[Path | Literal["-"]], namespace: str, default: str) -> Manifests:
    """Models and endpoints. `namespace`: what ``-n`` says, which a manifest may not contradict. Raises BadTarget."""
    from pilotage.api.names import ENDPOINTS, MODELS
    from pilotage.teardown.snapshot.dump import manifests

    found = Manifests([], [])
    for document in await asyncio.to_thread(manifests, files):
        kind, meta = document["kind"], document["metadata"]
        what = f"{kind.lower()}/{meta.get('name', '?')}"
        if not meta.get("name"):
            raise BadTarget(f"A {kind} in a manifest has no metadata.name. Give it one: it is changed by its name.")
        place = meta.setdefault("namespace", namespace or default)
        if namespace and place != namespace:
            raise BadTarget(f"{what} is in namespace {place}, and -n says {namespace}.")
        if (document["apiVersion"], kind) == (ENDPOINTS.api_version, ENDPOINTS.kind):
            found.endpoints.append(document)
        elif (document["apiVersion"], kind) == (MODELS.api_version, MODELS.kind):
            found.models.append(document)
        else:
            raise BadTarget(f"{what} is neither a ServingEndpoint nor a Model: apply it with kubectl.")
    if not found.endpoints:
        raise BadTarget("There is no ServingEndpoint in the files.")
    return found
