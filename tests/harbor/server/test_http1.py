"""Bytes into requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.server.http1 import (
    BadRequest,
    ChunkedBody,
    encode_chunks,
    encode_head,
    parse_headers,
    parse_request_line,
    parse_target,
)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/api", "/api", {}),
        ("/api/v1/pods?watch=1&watch=2&limit=", "/api/v1/pods", {"watch": ["1", "2"], "limit": [""]}),
        ("/a%2Fb%20c?labelSelector=a%3Db%2Cc+d", "/a/b c", {"labelSelector": ["a=b,c d"]}),
        ("/x?a=%zz&b=1&c;d=2", "/x", {"b": ["1"]}),
        ("https://here:6443/api?x=1", "/api", {"x": ["1"]}),
    ],
)
def test_a_target_is_a_path_and_a_query(target, path, query):
    assert parse_target(target) == (path, query)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET / HTTP/1.1 x", 400),
        (b"G(T / HTTP/1.1", 400),
        (b"GET pods HTTP/1.1", 400),
        (b"GET /%zz HTTP/1.1", 400),
        (b"GET /\x01 HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET / HTTP/2.0", 505),
        (b"GET / http/1.1", 400),
    ],
)
def test_what_is_no_request_line_is_refused(line, status):
    with pytest.raises(BadRequest) as caught:
        parse_request_line(line)
    assert caught.value.status == status


def test_headers_are_found_whatever_their_case_and_repeated_ones_are_kept():
    headers = parse_headers(b"Host: h\r\nImpersonate-Group: a\r\nIMPERSONATE-group:\t b \r\nContent-Length: 12\r\n")
    assert headers.values == {"host": "h", "impersonate-group": "a", "content-length": "12"}
    assert headers.more == (("impersonate-group", "b"),)
    assert headers.length == 12


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"no colon\r\n", 400),
        (b"bad name: x\r\n", 400),
        (b" folded: x\r\n", 400),
        (b"a: b\n", 400),
        (b"a: \0\r\n", 400),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n", 400),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: +1\r\n", 400),
        (b"Content-Length: 99999999999999999999\r\n", 400),
        (b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Transfer-Encoding: gzip\r\n", 501),
        (b"Host: a\r\nHost: a\r\n", 400),
        (b"Expect: miracles\r\n", 417),
    ],
)
def test_headers_that_could_be_misunderstood_are_refused(block, status):
    with pytest.raises(BadRequest) as caught:
        parse_headers(block)
    assert caught.value.status == status


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.binary(max_size=10), st.data())
def test_chunks_are_put_together_wherever_they_are_cut(pieces, behind, data):
    whole = encode_chunks(pieces) + b"0\r\n\r\n" + behind
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    body = ChunkedBody(10_000)
    rest = b""
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        if body.complete:
            rest += whole[start:end]
        else:
            body.feed(whole[start:end])
            rest += body.rest
    assert body.complete
    assert bytes(body.data) == b"".join(pieces)
    assert rest == behind


@pytest.mark.parametrize("text", [b"x\r\n", b"\r\n", b"-1\r\n", b"1\r\nab\r\n", b"1" * 5000])
def test_what_are_no_chunks_is_refused(text):
    with pytest.raises(BadRequest):
        ChunkedBody(10_000).feed(text)


def test_chunks_that_are_too_much_are_refused_before_they_come():
    assert not ChunkedBody(10).feed(b"b\r\n")
    assert ChunkedBody(10).feed(b"a\r\n")


def test_a_header_of_several_lines_is_several_headers_and_nothing_else_gets_in():
    head = encode_head(200, {"Warning": 'a\r\nb: "ü"'}, b"Date: now\r\n", 3, close=False)
    assert head == (
        b'HTTP/1.1 200 OK\r\nCache-Control: no-cache, private\r\nWarning: a \r\nWarning: b: "\xc3\xbc"\r\n'
        b"Content-Type: application/json\r\nContent-Length: 3\r\nDate: now\r\n\r\n"
    )
