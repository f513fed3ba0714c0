"""Requests, wherever their bytes are cut."""

from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.server.http1 import encode_chunks
from pilotage_harbor.server.requests import Requests
from tests.harbor.server.support import request


def wire(path: str, body: bytes, chunked: bool):
    if not chunked:
        return request(path, "POST", body)
    return request(path, "POST", Transfer_Encoding="chunked") + encode_chunks([body]) + b"0\r\n\r\n"


@given(
    st.lists(st.tuples(st.sampled_from(["/a", "/b"]), st.binary(max_size=30), st.booleans()), max_size=5),
    st.data(),
)
def test_what_is_sent_is_what_is_taken(sent, data):
    whole = b"".join(wire(*each) for each in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    requests = Requests(1000)
    taken = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        requests.feed(whole[start:end])
        while (one := requests.next()) is not None:
            taken.append((one[0].path, one[1]))
    assert taken == [(path, body) for path, body, _ in sent]
    assert (requests.begun, requests.waiting) == ("", 0)
