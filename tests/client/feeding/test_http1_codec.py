"""HTTP/1.1 of the feed client without input and output: answers cut anywhere, and what is no answer."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.feeding.http1_codec import Http1Codec
from paperwasp.client.feeding.operations import Flight, OperationType
from paperwasp.client.feeding.settings import Endpoint, make_settings
from paperwasp.core.http.http2_client import ClientEvent

SETTINGS = make_settings("http://h:1")


def codec() -> Http1Codec:
    """A connection with a request that waits for its answer."""
    made = Http1Codec(SETTINGS.endpoints[0], SETTINGS)
    assert made.request(flight(b"body"), (("x", "é"),)) == 1
    return made


def flight(body: bytes) -> Flight:
    return Flight(OperationType.PUT, "POST", "/p?q", body, False, "id", 0.0, lambda _: None)


def test_a_request() -> None:
    made = codec()
    head, _, body = made.take_output().partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /p?q HTTP/1.1",
        b"host: h:1",
        b"x: \xe9",
        b"accept: application/json",
        b"content-type: application/json",
        b"content-length: 4",
    ]
    assert body == b"body"
    assert (made.room, made.request(flight(b""), ()), made.take_output()) == (0, 0, b"")


def test_addresses_with_colons_stand_in_brackets() -> None:
    assert Endpoint.parse("http://[::1]:8080").authority == "[::1]:8080"


def receive_in_pieces(made: Http1Codec, sent: bytes, cuts: list[int]) -> list[ClientEvent]:
    places = sorted({cut % (len(sent) + 1) for cut in cuts} | {0, len(sent)})
    return [event for at, end in pairwise(places) for event in made.receive(sent[at:end])]


_BODIES = st.binary(max_size=300)
_CUTS = st.lists(st.integers(0, 2000), max_size=20)


@given(st.integers(200, 599).filter(lambda status: status not in (204, 304)), _BODIES, _CUTS, st.integers(0, 3))
def test_answers_with_a_length(status: int, body: bytes, cuts: list[int], interim: int) -> None:
    made = codec()
    sent = b"HTTP/1.1 100 Continue\r\n\r\n" * interim
    sent += b"HTTP/1.1 %d\r\nA:b\r\nCONTENT-LENGTH:  %d \r\n\r\n%b" % (status, len(body), body)
    assert receive_in_pieces(made, sent, cuts) == [("response", 1, status, body)]
    assert (made.room, made.is_leaving) == (1, False)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=10), _CUTS, st.sampled_from([b"", b"X: y\r\n"]))
def test_answers_in_chunks(chunks: list[bytes], cuts: list[int], trailers: bytes) -> None:
    made = codec()
    sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    sent += b"".join(b"%X;n=v\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n" + trailers + b"\r\n"
    assert receive_in_pieces(made, sent, cuts) == [("response", 1, 200, b"".join(chunks))]
    assert made.is_leaving


@given(_BODIES, _CUTS)
def test_answers_that_end_with_the_connection(body: bytes, cuts: list[int]) -> None:
    made = codec()
    assert receive_in_pieces(made, b"HTTP/1.0 200 OK\r\n\r\n" + body, cuts) == []
    assert made.end() == [("response", 1, 200, body)]


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 099 A\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a" * 70_000,
        b"a" * 70_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + bytes(5 << 20),
    ],
)
def test_what_is_no_answer(sent: bytes) -> None:
    made = codec()
    events = made.receive(sent)
    assert [event[0] for event in events] == ["over"]
    assert (made.room, made.is_leaving) == (0, True)


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    ],
)
def test_an_answer_that_is_cut_off(sent: bytes) -> None:
    made = codec()
    assert made.receive(sent) == []
    assert [event[0] for event in made.end()] == ["over"]


def test_an_answer_to_no_request() -> None:
    made = codec()
    made.receive(b"HTTP/1.1 204 None\r\n\r\n")
    assert [event[0] for event in made.receive(b"HTTP/1.1 200 OK\r\n\r\n")] == ["over"]


def test_a_body_of_very_small_chunks_is_bounded() -> None:
    made = codec()
    made.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"1\r\na\r\n" * 10_000
    events: list[ClientEvent] = []
    for _ in range(400):
        events += made.receive(piece)
        if events:
            break
    assert events[0][0] == "over"
