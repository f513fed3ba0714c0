"""Small files that are like the real ones."""

import struct

U32, STRING, ARRAY, U64 = 4, 8, 9, 10


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
    """A GGUF file: a header with a vocabulary, and this many bytes in place of tensors."""
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
    infos = [
        text(name)
        + struct.pack("<I", len(shape))
        + struct.pack(f"<{len(shape)}Q", *shape)
        + struct.pack("<IQ", kind, 0)
        for name, shape, kind in tensors
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    body = head + b"".join(entries) + b"".join(infos)
    return body + bytes(index * 7 % 251 for index in range(filler))
