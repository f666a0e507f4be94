"""Requests of which all but the text is known have the answers that they have otherwise: as GET and as JSON, from the
cache and past it, under one configuration and the next."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import orjson
import pytest

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.container.search.benchmark import _REQUEST
from paperwasp.http.messages import Request, Response
from tests.container.search.search_nodes import put
from tests.container.search.text_peers import Peers, peers

ASKED = {
    "yql": "select * from music where userQuery()",
    "type": "any",
    "ranking": "body",
    "default-index": "body",
    "timeout": "60s",
}


@pytest.fixture
def found() -> Iterator[Peers]:
    with peers() as made:
        made.compiled.apply(*(put(number, body=f"one w{number}", year=number) for number in range(20)))
        made.fill_rows()
        yield made


def get(**parameters: object) -> Request:
    return Request("GET", "/search/", urlencode(ASKED | parameters))


def post(**parameters: object) -> Request:
    return Request(
        "POST", "/search/", headers={"content-type": "application/json"}, body=orjson.dumps(ASKED | parameters)
    )


def answer(peers: Peers, request: Request) -> Response:
    return peers.compiled._loop.run_until_complete(peers.compiled.handler.handle(request))


def known(peers: Peers) -> int:
    return len(peers.compiled.handler._known)


def total(response: Response) -> int:
    return int(orjson.loads(response.body)["root"]["fields"]["totalCount"])


@pytest.mark.parametrize("request_of", [get, post])
def test_the_second_text_of_a_request_is_not_read_as_a_request(
    found: Peers, request_of: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("w1", "w2"):  # the first prepares the shape, the second makes the rest known
        answer(found, request_of(query=text))
    assert known(found) == 1
    before = found.answered
    monkeypatch.setattr(type(found.compiled.handler), "_begin_new", None)
    assert [total(answer(found, request_of(query=text))) for text in ("w3", "one", "w99", "w4 w5")] == [1, 20, 0, 2]
    assert found.answered == before + 4


def test_what_else_a_request_says_is_part_of_what_is_known(found: Peers) -> None:
    for text in ("w1", "w2", "w3"):
        assert total(answer(found, get(query=text))) == 1
        assert len(orjson.loads(answer(found, get(query="one", hits=3)).body)["root"]["children"]) == 3
        filtered = ASKED["yql"] + " and year < 5"
        assert total(answer(found, get(query=f"one {text}", yql=filtered))) == 5
        assert total(answer(found, post(query=f"one {text}", yql=filtered))) == 5
    assert known(found) == 4


def test_answers_are_kept_as_those_that_are_read(found: Peers) -> None:
    cache = found.compiled.handler.cache
    for text in ("w1", "w2", "w3"):
        answer(found, get(query=text))
    hits, lookups = cache.hits, cache.lookups
    wanted = answer(found, get(query="w3"))
    assert (cache.hits, cache.lookups) == (hits + 1, lookups + 1)
    for _ in range(2):
        assert wanted.body == answer(found, get(query="w3", nocache="true")).body
    hits, lookups = cache.hits, cache.lookups
    answer(found, get(query="w4"))
    answer(found, get(query="w4", nocache="true"))
    assert (cache.hits, cache.lookups) == (hits, lookups + 1)
    found.compiled.apply(put(50, body="w3"))
    found.fill_rows()
    assert total(answer(found, get(query="w3"))) == 2


def test_a_parameter_in_the_statement_is_read(found: Peers) -> None:
    yql = "select * from music where userQuery() and title contains @query"
    for text in ("w1", "w2", "w3"):
        assert total(answer(found, get(query=text, yql=yql))) == 0
    assert known(found) == 0


def test_a_client_that_measures_has_its_headers(found: Peers) -> None:
    for text in ("w1", "w2", "w3"):
        answer(found, get(query=text))
        measured = answer(found, replace(get(query=text), headers={_REQUEST: "true"}))
        assert measured.headers["X-Yahoo-Vespa-TotalHitCount"] == "1"


def test_the_format_that_is_accepted_is_part_of_what_is_known(found: Peers) -> None:
    for text in ("w1", "w2", "w3"):
        assert answer(found, get(query=text)).body.startswith(b"{")
        packed = answer(found, replace(get(query=text), headers={"accept": "application/cbor"}))
        assert packed.content_type == "application/cbor"


def test_a_body_of_another_type_is_not_looked_at(found: Peers) -> None:
    """Its text is that of the query string. Vespa: SearchHandler.java takes parameters from JSON bodies alone."""
    headers = {"content-type": "text/plain"}
    for text in ("w1", "w2", "w1", "w3"):
        asked = replace(post(query=text), query=get(query="w1").query, headers=headers)
        ids = [hit["id"] for hit in orjson.loads(answer(found, asked).body)["root"]["children"]]
        assert ids == ["id:n:music::1"]
    assert known(found) == 0


def test_a_text_beside_words_of_the_statement_is_not_what_is_looked_for(found: Peers) -> None:
    """Also where both are the same."""
    yql = "select * from music where body contains 'w1'"
    for text in ("w1", "w2", yql, "w3", yql.replace("w1", "w2"), "w1"):
        ids = [hit["id"] for hit in orjson.loads(answer(found, get(query=text, yql=yql)).body)["root"]["children"]]
        assert ids == ["id:n:music::1"]
    other = yql.replace("w1", "w2")
    ids = [hit["id"] for hit in orjson.loads(answer(found, get(query=yql, yql=other)).body)["root"]["children"]]
    assert ids == ["id:n:music::2"]
    assert known(found) == 0


def test_another_configuration_forgets_all(found: Peers) -> None:
    for text in ("w1", "w2"):
        answer(found, get(query=text))
    handler = found.compiled.handler
    handler.configure(replace(handler._config))
    answer(found, get(query="w3"))
    assert known(found) == 0


def test_what_is_known_has_a_bound(found: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_FORMS", 3)
    for hits in range(1, 9):
        answer(found, get(query="one", hits=hits))
        assert known(found) <= 3
    assert known(found)
    monkeypatch.setattr(limits, "REQUEST_FORM_BYTES", 10)
    answer(found, get(query="one", nocache="true"))
    before = found.answered
    assert total(answer(found, get(query="one", nocache="true"))) == 20
    assert found.answered == before + 1
