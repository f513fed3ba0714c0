"""What all of our kinds share: how fields are named on the wire, metadata, conditions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """A part of an object. Fields are camelCase on the wire; what is not known is left alone.

    The API server prunes and validates by the CRD; a newer version's fields must not break an older controller.
    """

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="ignore")

    @classmethod
    def read(cls, value: object) -> Self:
        """From what the wire has; None reads as nothing given. Raises pydantic's ValidationError."""
        return cls.model_validate({} if value is None else value)

    def written(self) -> dict[str, Any]:
        """As the wire has it, without what is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Condition(Part):
    """As the Kubernetes conventions have it."""

    type: Annotated[str, Field(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(max_length=1024)]
    message: Annotated[str, Field(max_length=32768)] = ""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    observed_generation: int | None = None


Conditions = Annotated[
    list[Condition], Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
]


ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
]
"""The name of an object; nothing in it leads into another namespace."""


class SecretRef(Part):
    """A Secret in the same namespace."""

    name: ObjectName
