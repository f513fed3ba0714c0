"""HTTP/1.1 without I/O: any answer, cut anywhere, is the same answer; and what is none is said to be none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube.http1 import AnswerParser, BadAnswer, encode_request

BODY = b'{"kind": "Status"}\r\n0\r\n\r\n'  # resembles the end of chunks, and is not
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: 1\r\n\r\n%s" % (len(BODY), BODY)
EMPTY = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
INFORMED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + end


ANSWERS = {
    "sized": (SIZED, BODY),
    "empty": (EMPTY, b""),
    "no content": (NO_CONTENT, b""),
    "after a 100": (INFORMED, BODY),
    "chunked": (chunked(BODY, b"\r\n", BODY), BODY + b"\r\n" + BODY),
    "chunked with trailers": (chunked(BODY, end=b"0\r\nX-Sum: 1\r\nY: 2\r\n\r\n"), BODY),
}


def parse(parser: AnswerParser, raw: bytes, cuts: list[int]) -> bytes:
    """Feed the answer in pieces that end at the cuts."""
    at, body = 0, b""
    for cut in [*sorted({cut % (len(raw) + 1) for cut in cuts}), len(raw)]:
        body += b"".join(parser.feed(raw[at:cut]))
        at = cut
    return body


@given(st.sampled_from(sorted(ANSWERS)), st.lists(st.integers(0, 10_000), max_size=30))
def test_an_answer_is_the_same_wherever_it_is_cut(name, cuts):
    raw, body = ANSWERS[name]
    parser = AnswerParser()
    assert parse(parser, raw, cuts) == body
    assert parser.complete
    parser.end()


@given(st.sampled_from(sorted(ANSWERS)), st.data())
def test_an_answer_that_breaks_off_is_never_complete(name, data):
    raw, body = ANSWERS[name]
    parser = AnswerParser()
    assert body.startswith(b"".join(parser.feed(raw[: data.draw(st.integers(0, len(raw) - 1))])))
    assert not parser.complete
    with pytest.raises(BadAnswer):
        parser.end()


def test_without_a_length_the_end_of_the_connection_is_the_end():
    parser = AnswerParser()
    assert parser.feed(b"HTTP/1.0 200 OK\r\n\r\nab") + parser.feed(b"cd") == [b"ab", b"cd"]
    assert not parser.complete
    parser.end()
    assert parser.complete


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
    ],
)
def test_whether_the_connection_may_be_used_again(head, kept):
    parser = AnswerParser()
    parser.feed(head + b"Content-Length: 0\r\n\r\n")
    assert parser.head is not None
    assert parser.head.keep_alive is kept


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        chunked(b"abc", end=b"")[:-2] + b"x\r\n",
        chunked(end=b"-1\r\n"),
        chunked(end=b"0x1\r\n"),
        chunked(end=b"\r\n"),
        chunked(end=b"1" * 5000),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(raw):
    with pytest.raises(BadAnswer):
        AnswerParser().feed(raw)


def test_a_request_in_bytes():
    headers = [("Host", "h:1"), ("Impersonate-Group", "x"), ("Impersonate-Group", "y")]
    assert encode_request("PUT", "/a?b=c", headers, b"{}") == (
        b"PUT /a?b=c HTTP/1.1\r\nHost: h:1\r\nImpersonate-Group: x\r\nImpersonate-Group: y\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\rb", "\u2603"])
def test_a_header_cannot_smuggle_in_another(value):
    with pytest.raises(ValueError):
        encode_request("GET", "/", [("Authorization", value)], None)
