"""Requests and responses: decoding by the rules of forms, and routing. Authority: the facts on HTTP paths."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request, Response, decode, decode_form, json_response, path_segments
from paperwasp.http.routing import Handler, Router
from tests.exchanges import whole


@pytest.mark.parametrize(
    ("raw", "decoded"),
    [
        ("a", "a"),
        ("a+b", "a b"),
        ("a%20b", "a b"),
        ("a%2Bb", "a+b"),
        ("a%2fb", "a/b"),
        ("%C3%A9", "é"),
        ("%25", "%"),
    ],
)
def test_decoding(raw: str, decoded: str) -> None:
    assert decode(raw) == decoded


@pytest.mark.parametrize("raw", ["%", "%2", "%zz", "a%", "%ff", "%C3", "%+2", "% 2"])
def test_broken_escapes_are_refused(raw: str) -> None:
    with pytest.raises(InvalidInput):
        decode(raw)


def test_a_slash_in_an_escape_stays_in_its_segment() -> None:
    assert path_segments("/document/v1/a+b/3%2Fx/") == ("document", "v1", "a b", "3/x", "")


def test_of_equal_parameters_the_last_wins() -> None:
    assert decode_form("a=1&b=x%26y&a=2&&c&d=") == {"a": "2", "b": "x&y", "c": "", "d": ""}
    assert Request("GET", "/", "yql=select+*").parameters() == {"yql": "select *"}


def test_the_media_type_stands_without_parameters() -> None:
    request = Request("POST", "/x", headers={"content-type": "Application/JSON; charset=utf-8"}, host="h:1")
    assert request.content_type == "application/json"
    assert request.header("Content-Type").endswith("utf-8")
    assert Request("GET", "/").content_type == ""
    assert request.url == "http://h:1/x"


@given(st.text())
def test_decoding_gives_text_or_refuses(text: str) -> None:
    try:
        decode_form(text)
        path_segments(text)
    except InvalidInput:
        pass


def answering(name: str) -> Handler:
    async def answer(request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {name: dict(names)})

    return answer


def route(method: str, path: str) -> tuple[int, bytes]:
    router = Router()
    router.add("GET", "/a/{x}", answering("one"))
    router.add("GET", "/a/{x}/b/{rest...}", answering("rest"))
    router.add("PUT", "/a/{x}", answering("put"))
    router.add("GET", "/a/", answering("slash"))
    response = whole(asyncio.run(router.handle(Request(method, path))))
    return response.status, response.body


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/a/1%2F2", 200, b'{"one":{"x":"1/2"}}'),
        ("HEAD", "/a/1", 200, b'{"one":{"x":"1"}}'),
        ("PUT", "/a/1", 200, b'{"put":{"x":"1"}}'),
        ("GET", "/a/1/b/c%20/d/", 200, b'{"rest":{"x":"1","rest":"c%20/d/"}}'),
        ("GET", "/a/1/b/", 200, b'{"rest":{"x":"1","rest":""}}'),
        ("GET", "/a/", 200, b'{"slash":{}}'),
    ],
)
def test_routes(method: str, path: str, status: int, body: bytes) -> None:
    assert route(method, path) == (status, body)


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/a", 404), ("GET", "/a/1/", 404), ("POST", "/a/1", 405), ("GET", "/", 404)]
)
def test_what_no_route_fits(method: str, path: str, status: int) -> None:
    assert route(method, path)[0] == status


def test_what_is_allowed_is_told() -> None:
    router = Router()
    router.add("GET", "/a", answering("get"))
    router.add("PUT", "/a", answering("put"))
    response = asyncio.run(router.handle(Request("DELETE", "/a")))
    assert response.status == 405
    assert response.headers["Allow"] == "GET, PUT"


def test_too_many_escapes_are_refused_before_they_are_decoded() -> None:
    with pytest.raises(InvalidInput, match="500001 percent escapes; at most 500000"):
        decode("%25" * 500_001)
    with pytest.raises(InvalidInput) as raised:
        decode("%zz" * 100_000)
    assert len(raised.value.message) < 2000
