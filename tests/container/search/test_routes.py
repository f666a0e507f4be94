"""Requests that the core answers by itself: each has the answer of the general way, byte for byte, whatever happens."""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from typing import Final

import orjson
import pytest

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.document.operations import Put
from paperwasp.http import http1
from paperwasp.http.compression import compress, gunzip
from tests.chance import SEED
from tests.container.search.routed_port import RoutedPort, connected, get, post, read_answer, run, turn
from tests.container.search.search_nodes import put
from tests.container.search.text_peers import (
    FILTERS,
    ORDERS,
    PLAIN,
    Peers,
    document,
    filled_peers,
    grouping,
    query,
    text,
)

ASKED: Final = int(os.environ.get("PAPERWASP_ROUTED_QUERIES", "400"))
ALL: Final = "select * from music where userQuery()"
FIXED: Final = {"yql": ALL, "type": "any", "ranking": "body", "default-index": "body", "timeout": "60s"}
DOCUMENTS: Final = 300
_DATE: Final = re.compile(rb"date: [^\r]*\r\n")


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    with filled_peers(DOCUMENTS, seed=7) as found:
        yield found


def wanted(shared: Peers, **parameters: object) -> bytes:
    return shared.general.answer(**parameters).body


def inflated(answer: tuple[bytes, bytes]) -> bytes:
    """The body of an answer."""
    head, body = answer
    return gunzip(body, 1 << 30) if b"content-encoding: gzip" in head else body


def template(choice: random.Random) -> dict[str, object]:
    """What many requests have in common."""
    index, ranking = choice.choice(PLAIN)
    count = choice.choice((0, 0, 1))
    filters = [choice.choice(FILTERS).format(choice.choice((1, 5, 30))) for _ in range(count)]
    return {
        "yql": " and ".join([ALL, *filters])
        + choice.choice(("", "", f" {choice.choice(ORDERS)}", f" | {grouping(choice)}")),
        "type": choice.choice(("any", "all", "phrase", "weakAnd")),
        "ranking": ranking,
        "default-index": index,
        "timeout": "60s",
        "hits": choice.choice((0, 1, 3, 10)),
        "presentation.summary": choice.choice(("default", "default", "columns")),
    }


def test_random_texts_have_the_general_answers(shared: Peers) -> None:
    choice = random.Random(SEED)
    asked = [
        each | {"query": text(choice, 5)} for each in (template(choice) for _ in range(12)) for _ in range(ASKED // 12)
    ]
    bodies = [wanted(shared, **each) for each in asked]
    requests = [choice.choice((get, post))(**each) for each in asked]
    gzip = b"\r\nAccept-Encoding: gzip, deflate\r\n\r\n"
    requests = [choice.choice((each, each, each.replace(b"\r\n\r\n", gzip, 1))) for each in requests]

    async def ask(port: RoutedPort) -> None:
        for connections in (1, 8):
            found = await port.ask(requests, connections)
            assert list(map(inflated, found)) == bodies
        heads = {_DATE.sub(b"", re.sub(rb"length: \d+", b"length: n", head)) for head, _ in found}
        assert len(heads) == 2, heads

    port = run(shared, ask)
    # Of twice as many: of some templates none, of others those of letters of ASCII.
    assert len(port.sent) > ASKED // 10
    assert all(sent.answers.shown.status == 200 and sent.routed.elapsed_ns > 0 for sent in port.sent)


def test_what_only_looks_like_a_text_has_the_general_answers(shared: Peers) -> None:
    choice = random.Random(SEED)
    asked = [query(choice) | {"timeout": "60s"} for _ in range(150)]
    bodies = [wanted(shared, **each) for each in asked]

    async def ask(port: RoutedPort) -> None:
        for _ in range(3):
            assert [body for _, body in await port.ask([get(**each) for each in asked], 4)] == bodies

    run(shared, ask)


@pytest.mark.parametrize(
    "more",
    [
        {"presentation.summary": "columns"},
        {"yql": f"{ALL} order by year desc"},
        {"yql": f"{ALL} order by year desc", "presentation.summary": "columns"},
        {"yql": f"{ALL} | all(group(name) max(3) order(-count()) each(output(count())))"},
        {"yql": f"{ALL} | all(group(year) each(output(count())))", "hits": 0},
        {"yql": f"{ALL} | all(group(shelf) each(output(count())))", "presentation.summary": "columns"},
    ],
)
def test_columns_orders_and_facets_are_answered_by_the_core(shared: Peers, more: dict[str, object]) -> None:
    asked = FIXED | more
    texts = ("the of", "a", "blue", "cats the")
    bodies = [wanted(shared, **asked | {"query": each}) for each in texts]

    async def ask(port: RoutedPort) -> None:
        for _ in range(3):
            assert [body for _, body in await port.ask([get(**asked, query=each) for each in texts])] == bodies

    assert len(run(shared, ask).sent) >= 4


def test_odd_texts_have_the_general_answers_and_many_are_known(shared: Peers) -> None:
    texts = ("the of", "ref:x", "-the of", '"the of"', "der und nicht les dans", "w1  w2", "a\tb", "z" * 300, "qqq zzz")
    bodies = [wanted(shared, **FIXED, query=each) for each in texts]

    async def ask(port: RoutedPort) -> None:
        for _ in range(4):
            assert [body for _, body in await port.ask([get(**FIXED, query=each) for each in texts])] == bodies
        assert len(port.known) == 1

    assert run(shared, ask).sent


def test_a_hit_that_is_in_no_row_is_written_the_general_way(shared: Peers) -> None:
    async def ask(port: RoutedPort) -> None:
        request = get(**FIXED, query="the newest")
        for number in range(DOCUMENTS, DOCUMENTS + 5):
            shared.compiled.apply(document(random.Random(number), number))
            for _ in range(5):
                ((_, body),) = await port.ask([request])
                found.append(body)

    found: list[bytes] = []
    run(shared, ask)
    assert found[-1] == wanted(shared, **FIXED, query="the newest")
    totals = [orjson.loads(body)["root"]["fields"]["totalCount"] for body in found]
    assert totals == sorted(totals)
    shared.fill_rows()


def test_every_answer_is_of_what_was_answered_before(shared: Peers) -> None:
    """A document is found as soon as its put is answered."""

    async def ask(port: RoutedPort) -> None:
        request = get(**FIXED, query="appearing")
        for number in range(20):
            shared.compiled.apply(document_of(DOCUMENTS + 10 + number, "appearing"))
            for _ in range(4):
                ((_, body),) = await port.ask([request])
                assert orjson.loads(body)["root"]["fields"]["totalCount"] == number + 1

    run(shared, ask)
    shared.fill_rows()


def document_of(number: int, body: str) -> Put:
    return put(number, title="t", body=body)


def test_what_is_sent_ahead_waits_for_its_turn(shared: Peers) -> None:
    texts = ["the of", "a", "blue", "cats the"] * 5
    bodies = [wanted(shared, **FIXED, query=each) for each in texts]

    async def ask(port: RoutedPort) -> None:
        await port.ask([get(**FIXED, query="warm")] * 3)
        async with connected(port.server.port) as (reader, writer):
            writer.write(get(**FIXED, query=texts[0]))
            await turn()
            writer.write(b"".join(get(**FIXED, query=each) for each in texts[1:]))
            assert [(await read_answer(reader))[1] for _ in texts] == bodies

    run(shared, ask)


def test_a_client_that_leaves_takes_no_other_with_it(shared: Peers) -> None:
    body = wanted(shared, **FIXED, query="the of")
    request = get(**FIXED, query="the of")

    async def ask(port: RoutedPort) -> None:
        await port.ask([request] * 3)
        for _ in range(30):
            async with connected(port.server.port) as (_, writer), connected(port.server.port) as (_, other):
                writer.write(request)
                other.write(request)
                await writer.drain()
        assert [found for _, found in await port.ask([request] * 20, 5)] == [body] * 20

    run(shared, ask)


def test_who_stops_the_server_has_its_answer_first(shared: Peers) -> None:
    body = wanted(shared, **FIXED, query="the of")
    request = get(**FIXED, query="the of")

    async def ask(port: RoutedPort) -> None:
        await port.ask([request] * 8)
        before = len(port.sent)
        async with connected(port.server.port) as (reader, writer), connected(port.server.port) as (second, other):
            for each in (writer, other):
                each.write(request)
            answers = asyncio.gather(read_answer(reader), read_answer(second))
            async with asyncio.timeout(20):
                while len(port.sent) < before + 2:  # both have come
                    await turn()
            await port.server.restart()
            assert [found for _, found in await answers] == [body] * 2
            assert await reader.read() == b""

    run(shared, ask)


def test_who_does_not_read_has_the_rest_later(shared: Peers) -> None:
    large = 400
    shared.compiled.apply(*(document_of(5000 + number, "bulky " * 1500) for number in range(large)))
    shared.fill_rows()
    asked = FIXED | {"query": "bulky", "hits": large, "ranking": "tuned"}
    body = wanted(shared, **asked)
    assert len(body) > 16 * limits.HTTP_WRITE_BUFFER_BYTES

    async def ask(port: RoutedPort) -> None:
        await port.ask([get(**asked)] * 3)
        before = len(port.sent)
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(plain, ("127.0.0.1", port.server.port))
        await loop.sock_sendall(plain, get(**asked))
        while len(port.sent) == before:  # what fits is written; the rest waits
            await turn()
        assert port.sent[-1].routed.unsent
        reader, writer = await asyncio.open_connection(sock=plain)
        assert (await read_answer(reader))[1] == body
        writer.write(get(**FIXED, query="the of"))
        assert (await read_answer(reader))[1] == small
        writer.close()

    small = wanted(shared, **FIXED, query="the of")
    run(shared, ask)


def test_what_has_no_time_left_is_told_so(shared: Peers) -> None:
    """Of those that are asked at once most wait for a thread longer than a microsecond."""
    asked = FIXED | {"timeout": "0.001ms", "query": "the of"}
    body = wanted(shared, **FIXED, query="the of")

    async def ask(port: RoutedPort) -> None:
        late = 0
        for head, found in await port.ask([get(**asked)] * 100, 8):
            if not head.startswith(b"HTTP/1.1 200 "):
                assert head.startswith(b"HTTP/1.1 504 ")
                assert orjson.loads(found)["root"]["errors"][0]["code"] == 12
                late += 1
            else:
                assert found == body
        assert late

    run(shared, ask)


def test_what_waits_is_given_back_when_its_time_is_over(shared: Peers) -> None:
    pool: _core.PlanPool[object] = _core.PlanPool(1, limits.INLINE_QUERY_NS)
    pool.give_up(1 << 62)
    assert pool.take() == []


def test_the_time_of_an_answer_begins_when_its_request_comes(shared: Peers) -> None:
    """However long it waits for a thread: the last of many has all that came before in its time."""

    async def ask(port: RoutedPort) -> None:
        await port.ask([get(**FIXED, query="the of")] * 3)
        before, began_ns = len(port.sent), time.monotonic_ns()
        await port.ask([get(**FIXED, query="the of")] * 40, 8)
        ended_ns = time.monotonic_ns()
        for sent in port.sent[before:]:
            routed = sent.routed
            assert began_ns <= routed.begun_ns <= routed.begun_ns + routed.elapsed_ns <= ended_ns

    assert run(shared, ask).sent


def test_more_than_may_wait_goes_the_general_way(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose queue is bounded too: `test_text_failures.py`."""
    body = wanted(shared, **FIXED, query="the of")
    monkeypatch.setattr(limits, "QUERY_QUEUE_LENGTH", 0)
    _core.forget_routes()

    async def ask(port: RoutedPort) -> None:
        assert [found for _, found in await port.ask([get(**FIXED, query="the of")] * 20, 5)] == [body] * 20

    assert not run(shared, ask).sent
    _core.forget_routes()


def test_a_client_that_takes_gzip_has_it(shared: Peers) -> None:
    body = wanted(shared, **FIXED, query="the of")
    request = get(**FIXED, query="the of").replace(b"\r\n\r\n", b"\r\nAccept-Encoding: gzip\r\n\r\n")

    heads = set()

    async def ask(port: RoutedPort) -> None:
        for head, found in await port.ask([request] * 5):
            assert gunzip(found, limits.HTTP_INLINE_GZIP_BYTES) == body
            heads.add(_DATE.sub(b"", head))

    sent = run(shared, ask).sent
    assert len(heads) == 1 and b"content-encoding: gzip" in heads.pop()
    assert sent and all(each.sent_bytes == len(compress(body)) < len(body) for each in sent)


@pytest.mark.parametrize("limit", ["HTTP_COMPRESSED_LEAST_BYTES", "HTTP_INLINE_GZIP_BYTES"])
def test_what_is_not_compressed_here_is_answered_the_general_way(
    shared: Peers, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    is_least = limit == "HTTP_COMPRESSED_LEAST_BYTES"
    monkeypatch.setattr(limits, limit, 1 << 30 if is_least else 1)
    request = get(**FIXED, query="the of").replace(b"\r\n\r\n", b"\r\nAccept-Encoding: gzip\r\n\r\n")
    body = wanted(shared, **FIXED, query="the of")

    async def ask(port: RoutedPort) -> None:
        for head, found in await port.ask([request] * 5):
            assert (b"content-encoding" in head) != is_least
            assert (found if is_least else gunzip(found, len(body))) == body
        assert len(port.known) == 1

    assert not run(shared, ask).sent


def test_whoever_changes_what_answers_depend_on_forgets_the_routes(shared: Peers) -> None:
    service = shared.service
    config = shared.compiled.handler._config
    reader = shared.compiled.nodes["media"].reader
    changes: dict[str, Callable[[], object]] = {
        "a view": lambda: reader.show(reader.view()),
        "a configuration": lambda: shared.compiled.handler.configure(config),
        "threads": lambda: service.resize(limits.QUERY_THREADS + 1),
        "schemas": lambda: service._served.compile_all(reader.view().schemas, {}),
    }

    async def ask(port: RoutedPort) -> None:
        request = get(**FIXED, query="the of")
        for name, change in changes.items():
            found = {body for _, body in await port.ask([request] * 4)}
            assert len(port.known) == 1, name
            before = _core.route_changes()
            change()
            assert len(port.known) == 0 and _core.route_changes() > before, name
            assert {body for _, body in await port.ask([request] * 4)} == found

    run(shared, ask)


# The parts


@pytest.mark.parametrize("now", [0, 951_782_400, 1_700_000_000, 4_102_444_799])
@pytest.mark.parametrize("closes", [False, True])
def test_the_last_lines_of_a_head_are_those_of_the_twin(
    monkeypatch: pytest.MonkeyPatch, now: int, closes: bool
) -> None:
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(http1, "_last_date", (-1, b""))
    framing = (http1.CLOSE if closes else b"") + http1.length_line(200, 1234)
    whole = http1.head_bytes(200, "application/json", {}, framing, False)
    start = http1.start_of_head(200, "application/json", False) + http1.SERVER
    assert start + _core.last_lines(1234, closes, now) == whole


def test_a_socket_takes_what_fits_and_nothing_once_it_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        written = _core.AnswerSocket(ours.fileno())
        body = bytes(1 << 22)
        rest = written.send(b"HTTP/1.1 200 OK\r\n", body)
        assert 0 < len(rest) < len(body)
        assert len(written.send(b"", b"more")) > len(b"more")  # with its head: nothing fits
        written.close()
        assert written.send(b"", b"more") == b""
        theirs.setblocking(False)
        assert theirs.recv(1 << 10).startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 4194304\r\ndate: ")


def test_who_is_to_end_says_so() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        written = _core.AnswerSocket(ours.fileno())
        written.end_soon()
        assert written.send(b"HTTP/1.1 200 OK\r\n", b"x") == b""
        assert b"\r\nconnection: close\r\n" in theirs.recv(1 << 10)
