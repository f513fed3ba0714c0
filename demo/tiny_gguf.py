"""A model that fits into 200 kB: it says one sentence, word by word, whatever it is asked.

Its weights are a table, not a training: each word of the sentence leads to the next one, everything else leads to the
first. Attention and feed-forward layers are there, as a server expects them, and add zeros. What is tested with it is
real all the same: the server, its tokens, its streams.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

SENTENCE = "Nothing is left behind: in order, proven, explained."
TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
_GAP = "\u2581"
"""Character that the tokenizer writes for the space before a word."""
_WIDTH = 64
"""Numbers per token: one that all tokens share, and one for each word of the sentence."""
_HEADS = 4
_ALIGNMENT = 32
_UNKNOWN, _BEGIN, _END = 0, 1, 2

# How strongly a token pulls, as logits before the norm: the shared number leads to the first word, a word's own number
# to the next one, which has to win; what is no word is out of reach.
_SHARED, _OWN = 2.0, 8.0
_TO_FIRST, _TO_NEXT, _NEVER = 8.0, 8.0, -40.0


class _Token(NamedTuple):
    text: str
    score: float
    kind: int


_NORMAL, _KIND_UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


def write(path: Path, *, sentence: str = SENTENCE, endless: bool = False, template: str = TEMPLATE) -> None:
    """Write the model to a file. `endless`: the last word leads to the first again, so only ``max_tokens`` ends it.

    `template`: its chat template. ValueError for a sentence without words, with too many, or with one twice.
    """
    words = [_GAP + word for word in sentence.split()]
    if not 0 < len(words) < _WIDTH or len(set(words)) < len(words):
        raise ValueError(f"a sentence has 1 to {_WIDTH - 1} different words")
    tokens = _tokens(words)
    place = {token.text: index for index, token in enumerate(tokens)}
    said = [place[word] for word in words]
    inward = [[_SHARED] + [0.0] * (_WIDTH - 1) for _ in tokens]
    outward = [[0.0 if token.kind == _NORMAL else _NEVER] + [0.0] * (_WIDTH - 1) for token in tokens]
    outward[_END][0] = 0.0
    outward[said[0]][0] = _TO_FIRST
    following = [*said[1:], said[0] if endless else _END]
    for own, (this, next_) in enumerate(zip(said, following, strict=True), start=1):
        inward[this][own] = _OWN
        outward[next_][own] = _TO_NEXT
    path.write_bytes(_file(_metadata(tokens, template), _tensors(inward, outward)))


def _tokens(words: list[str]) -> list[_Token]:
    """Vocabulary for the tokenizer to find every word: all bytes, all characters, and each prefix of each word."""
    found = {
        token.text: token
        for token in (
            _Token("<unk>", 0.0, _KIND_UNKNOWN),
            _Token("<s>", 0.0, _CONTROL),
            _Token("</s>", 0.0, _CONTROL),
            *(_Token(f"<0x{byte:02X}>", 0.0, _BYTE) for byte in range(256)),
            *(_Token(character, -1000.0, _NORMAL) for character in (_GAP, *map(chr, range(33, 127)))),
        )
    }
    for word in words:
        for length in range(2, len(word) + 1):
            found.setdefault(word[:length], _Token(word[:length], length - 100.0, _NORMAL))
    return list(found.values())


class _Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]
    """The length of a row first."""
    kind: int
    """0: 32 bits, 1: 16 bits."""
    data: bytes


def _tensors(inward: list[list[float]], outward: list[list[float]]) -> list[_Tensor]:
    def table(name: str, rows: list[list[float]]) -> _Tensor:
        return _Tensor(name, (len(rows[0]), len(rows)), 1, b"".join(struct.pack(f"<{len(row)}e", *row) for row in rows))

    def zeros(name: str) -> _Tensor:
        return _Tensor(name, (_WIDTH, _WIDTH), 1, bytes(2 * _WIDTH * _WIDTH))

    def ones(name: str) -> _Tensor:
        return _Tensor(name, (_WIDTH,), 0, struct.pack(f"<{_WIDTH}f", *[1.0] * _WIDTH))

    layer = [
        ones("blk.0.attn_norm.weight"),
        *(zeros(f"blk.0.attn_{part}.weight") for part in ("q", "k", "v", "output")),
        ones("blk.0.ffn_norm.weight"),
        *(zeros(f"blk.0.ffn_{part}.weight") for part in ("gate", "up", "down")),
    ]
    return [
        table("token_embd.weight", inward),
        ones("output_norm.weight"),
        table("output.weight", outward),
        *layer,
    ]


def _metadata(tokens: list[_Token], template: str) -> list[bytes]:
    numbers = {
        "general.file_type": 1,
        "general.alignment": _ALIGNMENT,
        "llama.vocab_size": len(tokens),
        "llama.context_length": 4096,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _WIDTH,
        "llama.attention.head_count": _HEADS,
        "llama.attention.head_count_kv": _HEADS,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "tokenizer.ggml.bos_token_id": _BEGIN,
        "tokenizer.ggml.eos_token_id": _END,
        "tokenizer.ggml.unknown_token_id": _UNKNOWN,
    }
    texts = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "general.description": "a table of words, not a trained model",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.chat_template": template,
    }
    answers = {
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": True,
    }
    count = len(tokens)
    return [
        *(_named(name, 4, struct.pack("<I", value)) for name, value in numbers.items()),
        *(_named(name, 8, _text(value)) for name, value in texts.items()),
        *(_named(name, 7, struct.pack("<?", value)) for name, value in answers.items()),
        _named("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
        _listed("tokenizer.ggml.tokens", 8, count, b"".join(_text(each.text) for each in tokens)),
        _listed("tokenizer.ggml.scores", 6, count, struct.pack(f"<{count}f", *(each.score for each in tokens))),
        _listed("tokenizer.ggml.token_type", 5, count, struct.pack(f"<{count}i", *(each.kind for each in tokens))),
    ]


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _named(name: str, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value


def _listed(name: str, kind: int, count: int, values: bytes) -> bytes:
    return _named(name, 9, struct.pack("<IQ", kind, count) + values)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def _file(metadata: list[bytes], tensors: list[_Tensor]) -> bytes:
    table, data = b"", b""
    for each in tensors:
        shape = struct.pack(f"<I{len(each.shape)}Q", len(each.shape), *each.shape)
        table += _text(each.name) + shape + struct.pack("<IQ", each.kind, len(data))
        data += _padded(each.data)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    return _padded(head + b"".join(metadata) + table) + data
