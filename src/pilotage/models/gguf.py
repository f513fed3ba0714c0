"""The header of a GGUF file, read with bounds on everything that the file itself claims.

The layout (integers in the byte order of the file, strings with a 64-bit length): ``GGUF``, version, number of tensors,
number of metadata entries; the entries (key, type, value); a description of each tensor (name, dimensions, type,
offset). A file that says something impossible is refused with `GgufError`, whatever its bytes are.
"""

from __future__ import annotations

import collections
import math
import struct
from typing import BinaryIO, NamedTuple

MAGIC = b"GGUF"
VERSIONS = (2, 3)
HEADER_BYTES_MAX = 64 << 20
"""The vocabularies of the largest models known take some 20 MB."""
ENTRIES_MAX = 1 << 16
TENSORS_MAX = 1 << 20
STRING_BYTES_MAX = 16 << 20
DIMENSIONS_MAX = 8
NESTING_MAX = 4
ALIGNMENT, ALIGNMENT_MAX = 32, 1 << 20
"""Alignment of the data, where the header does not say another one; and the largest that is believed."""
CONTEXT_MAX = (1 << 31) - 1
PARAMETERS_MAX = (1 << 63) - 1
"""Larger numbers than any model has, and the largest that an API object can hold."""

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

_FILE_TYPES = dict(
    enumerate(
        [
            "F32",
            "F16",
            "Q4_0",
            "Q4_1",
            "Q4_1_F16",
            "Q4_2",
            "Q4_3",
            "Q8_0",
            "Q5_0",
            "Q5_1",
            "Q2_K",
            "Q3_K_S",
            "Q3_K_M",
            "Q3_K_L",
            "Q4_K_S",
            "Q4_K_M",
            "Q5_K_S",
            "Q5_K_M",
            "Q6_K",
            "IQ2_XXS",
            "IQ2_XS",
            "Q2_K_S",
            "IQ3_XS",
            "IQ3_XXS",
            "IQ1_S",
            "IQ4_NL",
            "IQ3_S",
            "IQ3_M",
            "IQ2_S",
            "IQ2_M",
            "IQ4_XS",
            "IQ1_M",
            "BF16",
        ]
    )
) | {36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE"}
"""`general.file_type`: what most of the file is quantised to."""

_TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
"""Name of a tensor type, parameters in a block of it, and bytes of a block."""


class GgufError(ValueError):
    """The file is not what it should be; the message says in which way."""


class GgufCutShort(GgufError):
    """The file ends in the middle of its header."""


class Gguf(NamedTuple):
    """Selected fields of a header; None and "" for those that it does not have."""

    version: int
    architecture: str
    name: str
    quantization: str
    context_length: int | None
    parameters: int
    length: int
    """Least size of the file in bytes: the header, and the end of the last tensor that it describes."""
    remark: str = ""
    """Claims of the header that are left out, because they cannot be true."""


class _Tensors(NamedTuple):
    parameters: int
    by_type: collections.Counter[int]
    """Number of parameters of each type."""
    end: int
    """End of the last tensor, counted from the beginning of the data."""


def read_gguf_untrusted(file: BinaryIO) -> Gguf:
    """The header of a file that is read from its beginning; `GgufError` if it has none, or a broken one."""
    reader = _Reader(file)
    if reader.take(4) != MAGIC:
        raise GgufError("it does not begin like a GGUF file")
    version = reader.begin()
    tensors = reader.count("tensors", TENSORS_MAX)
    entries = reader.count("metadata entries", ENTRIES_MAX)
    said = dict(_entry(reader) for _ in range(entries))
    found = _tensors(reader, tensors)
    architecture = _text(said.get("general.architecture"))
    context, remark = _context(said.get(f"{architecture}.context_length"))
    file_type = said.get("general.file_type")
    return Gguf(
        version,
        architecture,
        _text(said.get("general.name")),
        (_FILE_TYPES.get(file_type, "") if isinstance(file_type, int) else "") or _most(found.by_type),
        context,
        found.parameters,
        _aligned(reader.position, said.get("general.alignment", ALIGNMENT)) + found.end if tensors else reader.position,
        remark,
    )


def _aligned(position: int, alignment: object) -> int:
    """The beginning of the data, after a header that ends at this position."""
    if type(alignment) is not int or not 0 < alignment <= ALIGNMENT_MAX or alignment & (alignment - 1):
        raise GgufError("its alignment is no small power of two")
    return -(-position // alignment) * alignment


def _context(said: object) -> tuple[int | None, str]:
    """The context length, or what is wrong with it."""
    if not isinstance(said, int) or said <= 0:
        return None, ""
    if said > CONTEXT_MAX:
        return None, f"Its header claims a context of more than {CONTEXT_MAX} tokens, which is left out."
    return said, ""


def _entry(reader: _Reader) -> tuple[str, object]:
    """One metadata entry; only single values are kept, lists are passed over."""
    key = reader.text()
    kind = reader.number("I")
    if kind == _ARRAY:
        _skip_array(reader, 0)
        return key, None
    return key, reader.text() if kind == _STRING else reader.scalar(kind)


def _skip_array(reader: _Reader, depth: int) -> None:
    if depth == NESTING_MAX:
        raise GgufError("its lists are nested too deeply")
    kind, length = reader.number("I"), reader.number("Q")
    if kind in _SCALARS:
        reader.skip(length * struct.calcsize(_SCALARS[kind]))
        return
    reader.fits(length * 8)  # each string, each list has a length of its own
    for _ in range(length):
        if kind == _STRING:
            reader.skip(reader.number("Q"))
        elif kind == _ARRAY:
            _skip_array(reader, depth + 1)
        else:
            raise GgufError(f"it has a value of an unknown type ({kind})")


def _tensors(reader: _Reader, tensors: int) -> _Tensors:
    by_type: collections.Counter[int] = collections.Counter()
    end = 0
    for _ in range(tensors):
        reader.text()
        dimensions = reader.number("I")
        if dimensions > DIMENSIONS_MAX:
            raise GgufError(f"it has a tensor of {dimensions} dimensions")
        size = math.prod(reader.number("Q") for _ in range(dimensions))
        kind, offset = reader.number("I"), reader.number("Q")
        by_type[kind] += size
        _, parameters, block = _TENSOR_TYPES.get(kind, ("", 1, 0))  # a type of the future has a size that nobody knows
        end = max(end, offset + size // parameters * block)
    if by_type.total() > PARAMETERS_MAX:
        raise GgufError("its tensors claim to have more parameters than any model has")
    return _Tensors(by_type.total(), by_type, end)


def _most(by_type: collections.Counter[int]) -> str:
    """The type of most parameters."""
    return _TENSOR_TYPES.get(by_type.most_common(1)[0][0], ("",))[0] if by_type else ""


def _text(value: object) -> str:
    """Text that is fit to be shown, and short."""
    return "".join(filter(str.isprintable, value))[:200] if isinstance(value, str) else ""


class _Reader:
    """Reads the file in order, and never more of it than a header may have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = HEADER_BYTES_MAX
        self._order = "<"

    @property
    def position(self) -> int:
        """Number of bytes that were read."""
        return HEADER_BYTES_MAX - self._left

    def begin(self) -> int:
        """The version, from which the byte order is known, too."""
        raw = self.take(4)
        for order in "<>":
            version: int = struct.unpack(f"{order}I", raw)[0]
            if version in VERSIONS:
                self._order = order
                return version
        raise GgufError(f"its version is {int.from_bytes(raw, 'little')}; {VERSIONS[0]} and {VERSIONS[1]} are known")

    def fits(self, size: int) -> None:
        """Refuse what would not fit into a header."""
        if size > self._left:
            raise GgufError("its header claims to be larger than any header is")

    def take(self, size: int) -> bytes:
        """The next bytes."""
        self.fits(size)
        self._left -= size
        data = self._file.read(size)
        if len(data) != size:
            raise GgufCutShort("it ends in the middle of its header")
        return data

    def skip(self, size: int) -> None:
        """Pass over so many bytes, which must be there."""
        while size > 0:
            size -= len(self.take(min(size, 1 << 20)))

    def number(self, code: str) -> int:
        """An integer of a `struct` code."""
        value: int = struct.unpack(self._order + code, self.take(struct.calcsize(code)))[0]
        return value

    def count(self, what: str, most: int) -> int:
        """A number of things that are still to come."""
        number = self.number("Q")
        if number > most:
            raise GgufError(f"it claims to have {number} {what}")
        return number

    def text(self) -> str:
        """A string."""
        length = self.number("Q")
        if length > STRING_BYTES_MAX:
            raise GgufError("it has a text that is too long")
        return self.take(length).decode(errors="replace")

    def scalar(self, kind: int) -> object:
        """One number or truth value."""
        if kind not in _SCALARS:
            raise GgufError(f"it has a value of an unknown type ({kind})")
        code = _SCALARS[kind]
        value: object = struct.unpack(self._order + code, self.take(struct.calcsize(code)))[0]
        return value
