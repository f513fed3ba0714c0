"""Pods, and the ReplicaSets that make them, that were made from parts and that no cache has shown.

A watch can lag behind: a pod that it has not told of would be missed, and what the pod needs would go before it. So
once nothing that runs is known to be left, pods are asked for afresh, before anything goes that they may need.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_REVISION
from pilotage.controllers.caches import Seen
from pilotage.controllers.proof import is_proven
from pilotage.kube import PODS
from pilotage.serving.resources import REPLICA_SETS

if TYPE_CHECKING:
    from collections.abc import Container

    from pilotage.api.teardown import TeardownSpec
    from pilotage.controllers.caches import Caches
    from pilotage.controllers.seals import Identity
    from pilotage.kube import Client
    from pilotage.teardown.planning.ledger import Ledger


def selector_of(spec: TeardownSpec, ledger: Ledger) -> str:
    """The labels of all pods that go: those of the endpoint, or of some of its revisions."""
    selector = f"{LABEL_ENDPOINT_UID}={spec.target.uid}"
    if spec.all_parts:
        return selector
    tails = (entry.name.removeprefix(f"{spec.target.name}-") for entry in ledger.going)
    revisions = sorted({tail for tail in tails if tail.isdecimal()})
    return f"{selector},{LABEL_REVISION} in ({','.join(revisions)})" if revisions else ""


async def late_parts(
    client: Client, caches: Caches, whose: Identity, selector: str, known: Container[str]
) -> list[Seen]:
    """Pods, and what makes them, of which nothing is known yet. An ApiError if they cannot be read.

    `known`: the uids of what goes already; what one of these owns counts, too.
    """
    kinds = (REPLICA_SETS, PODS)
    pages = await asyncio.gather(
        *(client.list(each, whose.namespace, labels=selector, metadata_only=True) for each in kinds)
    )
    return [
        Seen(resource, obj, False)
        for resource, page in zip(kinds, pages, strict=True)
        for obj in page.items
        if obj.meta.uid not in known
        and (
            any(owner.uid in known for owner in obj.meta.owner_references)
            or await is_proven(client, caches, whose, resource, obj)
        )
    ]
