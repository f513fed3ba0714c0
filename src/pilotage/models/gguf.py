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

_TENSOR_TYPES = dict(
    enumerate(
        [
            "F32",
            "F16",
            "Q4_0",
            "Q4_1",
            "Q4_2",
            "Q4_3",
            "Q5_0",
            "Q5_1",
            "Q8_0",
            "Q8_1",
            "Q2_K",
            "Q3_K",
            "Q4_K",
            "Q5_K",
            "Q6_K",
            "Q8_K",
            "IQ2_XXS",
            "IQ2_XS",
            "IQ3_XXS",
            "IQ1_S",
            "IQ4_NL",
            "IQ3_S",
            "IQ2_S",
            "IQ4_XS",
            "I8",
            "I16",
            "I32",
            "I64",
            "F64",
            "IQ1_M",
            "BF16",
        ]
    )
) | {34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}


class GgufError(ValueError):
    """The file is not what it should be; the message says in which way."""


class Gguf(NamedTuple):
    """Selected fields of a header; None and "" for those that it does not have."""

    version: int
    architecture: str
    name: str
    quantization: str
    context_length: int | None
    parameters: int
    remark: str = ""
    """Claims of the header that are left out, because they cannot be true."""


def read_gguf(file: BinaryIO) -> Gguf:
    """The header of a file that is read from its beginning; `GgufError` if it has none, or a broken one."""
    reader = _Reader(file)
    if reader.take(4) != MAGIC:
        raise GgufError("it does not begin like a GGUF file")
    version = reader.begin()
    tensors = reader.count("tensors", TENSORS_MAX)
    entries = reader.count("metadata entries", ENTRIES_MAX)
    said = dict(_entry(reader) for _ in range(entries))
    parameters, by_type = _tensors(reader, tensors)
    architecture = _text(said.get("general.architecture"))
    context, remark = _context(said.get(f"{architecture}.context_length"))
    file_type = said.get("general.file_type")
    return Gguf(
        version,
        architecture,
        _text(said.get("general.name")),
        (_FILE_TYPES.get(file_type, "") if isinstance(file_type, int) else "") or _most(by_type),
        context,
        parameters,
        remark,
    )


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


def _tensors(reader: _Reader, tensors: int) -> tuple[int, collections.Counter[int]]:
    """Number of parameters, in all and by type."""
    by_type: collections.Counter[int] = collections.Counter()
    for _ in range(tensors):
        reader.text()
        dimensions = reader.number("I")
        if dimensions > DIMENSIONS_MAX:
            raise GgufError(f"it has a tensor of {dimensions} dimensions")
        size = math.prod(reader.number("Q") for _ in range(dimensions))
        by_type[reader.number("I")] += size
        reader.number("Q")
    if by_type.total() > PARAMETERS_MAX:
        raise GgufError("its tensors claim to have more parameters than any model has")
    return by_type.total(), by_type


def _most(by_type: collections.Counter[int]) -> str:
    """The type of most parameters."""
    return _TENSOR_TYPES.get(by_type.most_common(1)[0][0], "") if by_type else ""


def _text(value: object) -> str:
    """Text that is fit to be shown, and short."""
    return "".join(filter(str.isprintable, value))[:200] if isinstance(value, str) else ""


class _Reader:
    """Reads the file in order, and never more of it than a header may have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = HEADER_BYTES_MAX
        self._order = "<"

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
            raise GgufError("it ends in the middle of its header")
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
