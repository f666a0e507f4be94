"""Requests for what is near that the core answers by itself: each has the answer of the general way, byte for byte."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

import orjson
import pytest

from tests.chance import SEED
from tests.container.search.routed_port import RoutedPort, get, post, run
from tests.container.search.search_nodes import put
from tests.container.search.test_near_requests import document, random_vector, schema, vector_of
from tests.container.search.text_peers import Peers, peers, text

ASKED: Final = int(os.environ.get("PAPERWASP_ROUTED_QUERIES", "400"))
NEAR: Final = "({label: 'here', targetHits: 9}nearestNeighbor(plain, q))"
FIXED: Final = {"yql": f"select * from music where {NEAR}", "ranking": "plain", "timeout": "60s"}
SHOWN: Final = ("numbers", "numbers", "vectors", "short", "default", "default")
HYBRID: Final = ("both", "hybrid", "fused", "fusion", "linear", "crossed")


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    with peers(schema()) as found:
        found.feed(document)
        yield found


def template(choice: random.Random) -> dict[str, object]:
    """What many requests have in common but for their vectors, and texts if they have them."""
    near = choice.choice((NEAR, NEAR, NEAR.replace("9", "40"), NEAR.replace("label", "approximate: false, label")))
    words = choice.choice(("userQuery()", "({defaultIndex: 'body'}userInput(@words))"))
    where = choice.choice((near, near, f"{near} or {words}", f"{words} or {near}", f"rank({near}, {words})"))
    filtered = choice.choice(("", "", " and year < 30", " and name contains 'n3'"))
    return {
        "yql": f"select * from music where ({where}){filtered}",
        "type": choice.choice(("any", "all", "weakAnd")),
        "default-index": "body",
        "ranking": choice.choice(("plain", "plain", "raw", "near") if where == near else HYBRID),
        "presentation.summary": choice.choice(SHOWN),
        "hits": choice.choice((1, 3, 10, 60)),
        "timeout": "60s",
    }


def with_values(choice: random.Random, parameters: dict[str, object]) -> tuple[dict[str, object], bytes]:
    """A request of a template: its parameters, and how it is sent."""
    vector = random_vector(choice) if choice.random() < 0.95 else [1, 2, 3]
    asked = {**parameters, "input.query(q)": vector if choice.random() < 0.7 else json.dumps(vector)}
    for name, place in (("query", "userQuery"), ("words", "@words")):
        if place in str(parameters["yql"]):
            asked[name] = text(choice, 4)
    names = choice.sample([*asked], k=len(asked)) if choice.random() < 0.1 else [*asked]
    asked = {name: asked[name] for name in names}
    written = {name: _compact(value) if isinstance(value, list) else value for name, value in asked.items()}
    return written, post(**asked) if choice.random() < 0.8 else get(**written)


def _compact(vector: list[float]) -> str:
    return orjson.dumps(vector).decode()


def test_random_vectors_have_the_general_answers(shared: Peers) -> None:
    choice = random.Random(SEED)
    asked = [with_values(choice, each) for each in (template(choice) for _ in range(16)) for _ in range(ASKED // 16)]
    bodies = [shared.general.answer(**parameters).body for parameters, _ in asked]

    async def ask(port: RoutedPort) -> None:
        for connections in (1, 8):
            found = await port.ask([request for _, request in asked], connections)
            assert [body for _, body in found] == bodies

    assert len(run(shared, ask).sent) > ASKED // 10


@pytest.mark.parametrize("summary", ["numbers", "default"])
def test_answers_are_written_by_the_core(shared: Peers, summary: str) -> None:
    async def ask(port: RoutedPort) -> None:
        found = await port.ask(
            [post(**FIXED, **{"presentation.summary": summary, "input.query(q)": [1, 2, 3, 4]})] * 30
        )
        assert len({body for _, body in found}) == 1

    shared.fill_rows()
    assert len(run(shared, ask).sent) >= 10


def test_what_is_no_vector_has_the_general_answer(shared: Peers) -> None:
    odd = ("[1,2,3]", "[1,2,3,4,5]", "[]", "[1e39,0,0,0]", "[1,2,x,4]", "[", "{a:1}", "[1 2 3 4]", "[1,2,3,4]x")
    others = [{**FIXED, "input.query(q)": vector} for vector in odd]
    bodies = [shared.general.answer(**each).body for each in others]

    async def ask(port: RoutedPort) -> None:
        await port.ask([post(**FIXED, **{"input.query(q)": [1, 2, 3, 4]})] * 4)
        for _ in range(2):
            for way in (get, post):
                assert [body for _, body in await port.ask([way(**each) for each in others])] == bodies

    run(shared, ask)


def test_what_has_no_time_left_is_told_so(shared: Peers) -> None:
    asked = {**FIXED, "timeout": "0.001ms", "input.query(q)": [1, 2, 3, 4]}
    body = shared.general.answer(**{**FIXED, "input.query(q)": "[1,2,3,4]"}).body

    async def ask(port: RoutedPort) -> None:
        for head, found in await port.ask([post(**asked)] * 60, 8):
            if head.startswith(b"HTTP/1.1 200 "):
                assert found == body
            else:
                assert orjson.loads(found)["root"]["errors"][0]["code"] == 12

    run(shared, ask)


def test_a_vector_that_is_put_is_found_at_once(shared: Peers) -> None:
    async def ask(port: RoutedPort) -> None:
        for number in range(900, 910):
            place = [100.0 + number, 0, 0, 0]
            shared.compiled.apply(put(number, year=number, plain=vector_of("plain", place)))
            asked = {**FIXED, "presentation.summary": "numbers", "input.query(q)": place, "hits": 1}
            for _, body in await port.ask([post(**asked)] * 4):
                assert orjson.loads(body)["root"]["children"][0]["relevance"] == 1.0

    run(shared, ask)


def test_a_text_and_a_vector_are_those_of_the_request(shared: Peers) -> None:
    """Requests of one route under way at once keep their own values apart."""
    choice = random.Random(SEED)
    fixed = {**FIXED, "yql": f"select * from music where {NEAR} or userQuery()", "default-index": "body"}
    fixed |= {"ranking": "both", "presentation.summary": "numbers"}
    asked = [fixed | {"query": text(choice, 3), "input.query(q)": str(random_vector(choice))} for _ in range(80)]
    bodies = [shared.general.answer(**each).body for each in asked]

    async def ask(port: RoutedPort) -> None:
        for _ in range(2):
            assert [body for _, body in await port.ask([post(**each) for each in asked], 8)] == bodies

    assert run(shared, ask).sent


def test_a_request_by_url_has_the_answer_of_one_with_a_body(shared: Peers) -> None:
    asked = {**FIXED, "input.query(q)": "[1,2,0.5,4]"}
    body = shared.general.answer(**asked).body
    escaped = f"GET /search/?{urlencode(asked)} HTTP/1.1\r\nHost: h\r\n\r\n"
    plain = escaped.replace("%5B", "[").replace("%5D", "]").replace("%2C", ",")

    async def ask(port: RoutedPort) -> None:
        for request in (escaped.encode(), plain.encode()):
            assert {found for _, found in await port.ask([request] * 5)} == {body}

    run(shared, ask)
