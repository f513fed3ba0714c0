"""Small files that are like the real ones."""

import json
import math
import struct

U32, STRING, ARRAY, U64 = 4, 8, 9, 10
BLOCKS = {0: (1, 4), 12: (256, 144)}
"""Parameters and bytes of a block, by type of a tensor: F32 and Q4_K."""


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def gguf(
    *,
    architecture: str = "qwen3",
    context: int = 32768,
    file_type: int | None = 15,
    tensors: tuple[tuple[str, tuple[int, ...], int], ...] = (("a.weight", (64, 32), 12), ("b.bias", (32,), 0)),
    filler: int = 0,
) -> bytes:
    """A GGUF file: a header with a vocabulary, the tensors, and this many bytes after them."""
    words = ["<s>", "</s>", "hello"]
    entries = [
        entry("general.architecture", STRING, text(architecture)),
        entry("general.name", STRING, text("Tiny")),
        entry(f"{architecture}.context_length", U64, struct.pack("<Q", context)),
        entry("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, len(words)) + b"".join(map(text, words))),
        entry("tokenizer.ggml.types", ARRAY, struct.pack("<IQ", U32, 3) + struct.pack("<3I", 3, 3, 1)),
    ]
    if file_type is not None:
        entries.append(entry("general.file_type", U32, struct.pack("<I", file_type)))
    infos, end = [], 0
    for name, shape, kind in tensors:
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, end))
        elements, size = BLOCKS[kind]
        end = (end + math.prod(shape) // elements * size + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    body = head + b"".join(entries) + b"".join(infos)
    end = min(end, 1 << 20)  # of those that claim to have more, nobody reads that far
    return body + bytes(-len(body) % 32) + bytes(index * 7 % 251 for index in range(end + filler))


def safetensors(*sizes: int) -> bytes:
    """A Safetensors file with tensors of these sizes in bytes."""
    begins = [sum(sizes[:number]) for number in range(len(sizes))]
    tensors = {
        f"t{number}": {"dtype": "U8", "shape": [size], "data_offsets": [begin, begin + size]}
        for number, (begin, size) in enumerate(zip(begins, sizes, strict=True))
    }
    header = json.dumps({"__metadata__": {"format": "pt"}, **tensors}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + bytes(index % 251 for index in range(sum(sizes)))
