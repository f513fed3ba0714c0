"""The format of weights, from the content of the file. A web page that says "not found" is no model."""

from pathlib import Path
from typing import Any, NamedTuple

from pilotage.models.gguf import MAGIC, GgufError, read_gguf
from pilotage.models.problems import PermanentError, Reason

GGUF, SAFETENSORS, UNKNOWN, ANY = "GGUF", "Safetensors", "Unknown", "Any"
SAFETENSORS_HEADER_BYTES_MAX = 100_000_000


class WeightsFormat(NamedTuple):
    """Format and metadata of a file of weights."""

    kind: str
    architecture: str = ""
    quantization: str = ""
    context_length: int | None = None
    name: str = ""
    parameters: int | None = None
    remark: str = ""
    """Claim of the file that cannot be true, in a sentence."""


def read_format(path: Path, shown: str, wanted: str = "") -> WeightsFormat:
    """Look into a file. `PermanentError` (InvalidFormat) if it is broken, or not of the wanted kind. Blocks.

    Without a wanted kind, a file that is called .gguf or .safetensors has to be one; ``Any`` takes everything.
    """
    expected = "" if wanted == ANY else wanted or _by_name(shown)
    with path.open("rb") as file:
        start = file.read(9)
        file.seek(0)
        kind = _kind(start)
        if expected and kind != expected:
            raise _bad(shown, f"it is no {expected} file" + (f" but {kind}" if kind != UNKNOWN else ""))
        if kind != GGUF or wanted == ANY:
            return WeightsFormat(kind)
        try:
            found = read_gguf(file)
        except GgufError as error:
            raise _bad(shown, str(error)) from error
    return WeightsFormat(
        kind,
        found.architecture,
        found.quantization,
        found.context_length,
        found.name,
        found.parameters,
        found.remark,
    )


def format_from(value: Any) -> WeightsFormat:  # noqa: ANN401 - JSON
    """A format that was written down as a list."""
    return WeightsFormat(*value)


def _kind(start: bytes) -> str:
    if start.startswith(MAGIC):
        return GGUF
    length = int.from_bytes(start[:8], "little")
    if len(start) == 9 and start[8:] == b"{" and 2 <= length <= SAFETENSORS_HEADER_BYTES_MAX:
        return SAFETENSORS
    return UNKNOWN


def _by_name(shown: str) -> str:
    name = shown.lower()
    return GGUF if name.endswith(".gguf") else SAFETENSORS if name.endswith(".safetensors") else ""


def _bad(shown: str, why: str) -> PermanentError:
    return PermanentError(
        Reason.BAD_FORMAT, f"{shown} cannot be used: {why}", "Replace the file, or change spec.source or spec.format"
    )
