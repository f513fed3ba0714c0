"""The format of weights, from the content of the file. A web page that says "not found" is no model.

The header of a GGUF or a Safetensors file says how long the file is: one that was cut short is recognised by it.
"""

import os
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec

from pilotage.models.gguf import MAGIC, GgufCutShort, GgufError, read_gguf_untrusted
from pilotage.models.problems import PermanentError, Reason

GGUF, SAFETENSORS, UNKNOWN, ANY = "GGUF", "Safetensors", "Unknown", "Any"
SAFETENSORS_HEADER_BYTES_MAX = 32 << 20
"""Room for 200,000 tensors. The format allows 100 MB, which would take a gigabyte of memory to read."""


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


class Truncated(PermanentError):
    """The file is shorter than its header says."""

    def __init__(self, shown: str, size: int, least: int | None) -> None:
        """`least`: the size that its header describes; None where it ends before that is known."""
        described = "ends in its header" if least is None else f"its header describes at least {least}"
        what = f"{shown} is incomplete: it has {size} bytes, and {described}"
        super().__init__(Reason.BAD_FORMAT, what, "Replace the file by a complete one, or change spec.source")


def read_format(path: Path, shown: str, wanted: str = "") -> WeightsFormat:
    """Look into a file. `PermanentError` (InvalidFormat) if it is broken, too short or not of the wanted kind. Blocks.

    Without a wanted kind, a file that is called .gguf or .safetensors has to be one; ``Any`` takes everything.
    """
    expected = "" if wanted == ANY else wanted or _by_name(shown)
    with path.open("rb") as file:
        start = file.read(9)
        file.seek(0)
        kind = _kind(start)
        if expected and kind != expected:
            raise _bad(shown, f"it is no {expected} file" + (f" but {kind}" if kind != UNKNOWN else ""))
        if kind == UNKNOWN or wanted == ANY:
            return WeightsFormat(kind)
        size = os.fstat(file.fileno()).st_size
        found, least = (_gguf if kind == GGUF else _safetensors)(file, shown, size)
    if least > size:
        raise Truncated(shown, size, least)
    return found


def _gguf(file: BinaryIO, shown: str, size: int) -> tuple[WeightsFormat, int]:
    try:
        found = read_gguf_untrusted(file)
    except GgufCutShort:
        raise Truncated(shown, size, None) from None
    except GgufError as error:
        raise _bad(shown, str(error)) from error
    about = found.architecture, found.quantization, found.context_length, found.name, found.parameters, found.remark
    return WeightsFormat(GGUF, *about), found.length


def _safetensors(file: BinaryIO, shown: str, size: int) -> tuple[WeightsFormat, int]:
    length = int.from_bytes(file.read(8), "little")
    header = file.read(length)
    if len(header) < length:
        raise Truncated(shown, size, None)
    try:
        return WeightsFormat(SAFETENSORS), 8 + length + safetensors_data_untrusted(header)
    except ValueError as error:
        raise _bad(shown, str(error)) from error


_Offset = Annotated[int, msgspec.Meta(ge=0)]


class _Tensor(msgspec.Struct, gc=False):
    """A tensor in the header of a Safetensors file; without offsets, it is the metadata of the whole."""

    data_offsets: tuple[_Offset, _Offset] = (0, 0)


def safetensors_data_untrusted(header: bytes) -> int:
    """Number of bytes that follow the header of a Safetensors file; ValueError if it is none."""
    try:
        tensors = msgspec.json.decode(header, type=dict[str, _Tensor])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise ValueError("its header is no list of tensors") from None
    return max((end for tensor in tensors.values() for end in tensor.data_offsets), default=0)


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
