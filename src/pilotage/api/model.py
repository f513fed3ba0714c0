"""`Model`: weights, where they come from, and whether they are here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pilotage.api.base import Conditions, Part, SecretRef

Source = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2048,
        pattern=r"^(file|https?|hf|s3|gs|az|oci|pvc)://[^\pC\pZ]+$",  # nothing that a terminal would act on
        description="Where the weights are: file:// https:// hf:// s3:// gs:// az:// oci:// or pvc://CLAIM/PATH.",
    ),
]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of the whole file; checked while it is fetched.")]


class Cache(Part):
    """What becomes of fetched files."""

    policy: Annotated[
        Literal["Delete", "Retain"], Field(description="Whether the files go with the Model, or stay.")
    ] = "Delete"


class ModelSpec(Part):
    """What is wanted."""

    source: Source
    sha256: Sha256 | None = None
    format: Annotated[
        Literal["GGUF", "Safetensors", "Any"] | None,
        Field(description="What the file has to be. Without it, what is recognised is reported."),
    ] = None
    cache: Cache = Field(default_factory=Cache)
    secret_ref: Annotated[SecretRef | None, Field(description="A Secret with the credentials of the source.")] = None


class Format(Part):
    """What the file is, read from its header."""

    kind: str
    architecture: str | None = None
    quantization: str | None = None
    context_length: int | None = None


class Bytes(Part):
    """How far the fetch is."""

    done: int = 0
    total: int | None = None


class ModelStatus(Part):
    """What is."""

    phase: Literal["Pending", "Fetching", "Ready", "Failed", "Deleting"] | None = None
    observed_generation: int | None = None
    conditions: Conditions = Field(default_factory=list)
    format: Format | None = None
    bytes: Bytes | None = None
    path: Annotated[str | None, Field(description="Where the file lies, where the operator has fetched it.")] = None


class Model(Part):
    """Weights that endpoints serve."""

    spec: ModelSpec
    status: ModelStatus = Field(default_factory=ModelStatus)
