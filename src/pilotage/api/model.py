"""`Model`: weights, their source, and whether they have been fetched."""

from typing import Annotated, Literal

from msgspec import Meta

from pilotage.api.base import Conditions, Schema, SecretRef, Stored, matches, one_of
from pilotage.kube.wire import ObjectMeta

SCHEMES = ("file", "https", "http", "hf", "s3", "gs", "az", "oci", "pvc")
_SCHEME = "|".join(SCHEMES)
Source = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2048,
        pattern=rf"^({_SCHEME})://\S+\Z",
        description=f"Location of the weights: a URL whose scheme is one of {', '.join(SCHEMES)}.",
        # Nothing that a terminal would act on. Python's patterns cannot say it: `models.parse_source` does.
        extra_json_schema={"pattern": rf"^({_SCHEME})://[^\pC\pZ]+$"},
    ),
]
Sha256 = Annotated[
    str,
    matches("^[0-9a-f]{64}$", description="SHA-256 digest of the whole file, verified while it is fetched."),
]


class Cache(Schema, frozen=True):
    """Handling of fetched files."""

    policy: Literal["Delete", "Retain"] = "Delete"
    """Whether the fetched files are deleted with the Model (Delete) or kept (Retain)."""


class ModelSpec(Schema, frozen=True):
    """Desired state of the Model."""

    source: Source
    sha256: Sha256 | None = None
    format: Literal["GGUF", "Safetensors", "Any"] | None = None
    """Required format of the file. If unset, the format that is recognised is reported."""
    cache: Cache = Cache()
    secret_ref: SecretRef | None = None
    """Secret in the same namespace with the credentials of the source."""


class Format(Schema, frozen=True):
    """Format of the file, read from its header."""

    kind: str
    """Name of the format, such as GGUF."""
    architecture: str | None = None
    """Architecture of the model, such as llama."""
    quantization: str | None = None
    """Quantization of the weights, such as Q4_K_M."""
    context_length: int | None = None
    """Context length that the model was trained with."""


class FetchedBytes(Schema, frozen=True):
    """Progress of the fetch."""

    done: int = 0
    """Number of bytes fetched so far."""
    total: int | None = None
    """Size of the file in bytes, if the source tells it."""


class ModelStatus(Schema, frozen=True):
    """Observed state of the Model, written by the operator."""

    phase: Annotated[str, one_of("Pending", "Fetching", "Ready", "Failed", "Deleting")] | None = None
    """Summary of the conditions."""
    observed_generation: int | None = None
    """Generation that the status is about."""
    conditions: Conditions = []
    format: Format | None = None
    bytes: FetchedBytes | None = None
    path: str | None = None
    """Path of the file in the operator's cache, if the operator has fetched it."""


class Model(Schema, frozen=True):
    """Weights that ServingEndpoints serve."""

    spec: ModelSpec
    metadata: ObjectMeta = ObjectMeta()
    status: ModelStatus = ModelStatus()


class StoredModel(Stored, frozen=True):
    """A Model as a client reads it."""

    status: ModelStatus = ModelStatus()
