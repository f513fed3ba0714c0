"""Variants of an endpoint, as parts of the specs of experiments and of rollouts in steps."""

from typing import Annotated, Any

from msgspec import Meta

from pilotage.api.base import REPLICAS_MAX, Schema, matches
from pilotage.api.traffic import MirrorRule, Percent

VARIANTS_MAX = 8
VariantName = Annotated[str, matches("^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]


class VariantSpec(Schema, frozen=True):
    """Variant of the endpoint: what is different about it, and what it gets."""

    name: VariantName
    """Name of the variant."""
    weight: Percent | None = None
    """Percentage of the requests that take part. Exactly one of `weight` and `mirror`."""
    mirror: MirrorRule | None = None
    """Copies of requests instead of requests."""
    replicas: Annotated[int, Meta(ge=1, le=REPLICAS_MAX)] = 1
    """Number of replicas."""
    overrides: dict[str, Any] | None = None
    """Fields of the endpoint's spec that are different, merged over it; `model` is replaced as a whole. Exactly one of
    `overrides`, `revision` and `same`."""
    revision: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    """Revision of the endpoint, from its history."""
    same: bool = False
    """Whether it is the serving revision once more, on servers of its own: as cold, as small and as new."""
