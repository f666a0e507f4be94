"""The kernel that cuts text and vector out of a request: it cuts as the plain twin does, and the rest says where."""

from __future__ import annotations

import json
import random
from urllib.parse import parse_qsl, quote_plus

import pytest

from paperwasp.core import _core
from tests.oracles import request_text

PARTS = (
    "query",
    "query=",
    "query=a",
    "query=a+b",
    "query=%41%20b",
    "query=%4",
    "query=%zz",
    "query=\u00e9",
    "query=%C3%A9",
    "input.query(q)=[1,-2.5]",
    "input.query%28q%29=%5B1%2c+2%5D",
    "input.query(q)=3",
    "input.query(q)",
    "input.query=[1]",
)
INPUTS = (
    "words=a+b",
    "words=c",
    "words=",
    "yql=userInput(@words)",
    "yql=userInput%28%40words%29",
    "words=userInput(@words)",
    "yql=userInput(@query)",
    "yql=userInput(@words",
    "yql=userInput(words)",
)
OTHERS = ("hits=3", "%71uery=x", "yql=select+*", "queryProfile=p", "Query=x", "", "a=query=b", "query.x=1", "x")


def test_query_strings_are_cut_as_by_the_twin() -> None:
    choice, cut = random.Random(41), 0
    for _ in range(3000):
        parts = [
            choice.choice(choice.choices((PARTS, INPUTS, OTHERS), weights=(2, 2, 3))[0])
            for _ in range(choice.randint(0, 4))
        ]
        query = "&".join(parts)
        found = _core.cut_query_string(query)
        assert found == request_text.cut_query_string(query), query
        cut += found is not None
    assert cut > 100


def test_json_is_cut_as_by_the_twin() -> None:
    choice, cut = random.Random(41), 0
    values: tuple[object, ...] = (
        "a b",
        'x"y',
        "caf\u00e9",
        "",
        3,
        None,
        ["query"],
        {"query": "x"},
        "back\\slash",
        "don't",
        "\n",
        [1, 2.5],
        "[1,2]",
        [],
        [[1], 2],
        "userInput(@words)",
        "userInput(@words)",
        "userInput(@query)",
    )
    for _ in range(3000):
        names = choice.choices(
            ("query", "yql", "hits", "que\u00e9ry", "input", "words", "words"), k=choice.randint(0, 4)
        )
        vectors = ("input.query(q)", "input.query(other)", "input.query", "xinput.query(q)")
        names += choice.choices(vectors, k=choice.choice((0, 0, 1, 1, 2)))
        choice.shuffle(names)
        members = [f"{json.dumps(name)}:{json.dumps(choice.choice(values), separators=(',', ':'))}" for name in names]
        body = ("{" + ",".join(members) + "}").encode()
        found = _core.cut_json(body)
        assert found == request_text.cut_json(body), body
        cut += found is not None
    assert cut > 100


def test_a_text_in_a_query_string_is_what_a_form_has() -> None:
    text = "".join(map(chr, range(0x20, 0x7F)))
    found = _core.cut_query_string(f"a=b&query={quote_plus(text)}&c=d")
    assert found == ("a=b&query=&c=d", text, b"")
    assert dict(parse_qsl(f"query={quote_plus(text)}"))["query"] == text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'["query", "a"]',
        b'{"query": "a"',
        b'{"query": "a", "query": "b"}',
        b'{"query": "a", "qu\\u0065ry": "b"}',
        b'{"query": "a\\u0062"}',
        b'{"query": 3}',
        b'{"query": "a", \'x\': \'"query": "b"\'}',
        b'{/* "query": */ "query": "a"}',
        b'{"x": {"query": "a"}}',
        b'{"query": "a',
        b'{"x": "a\\',
        b'{"input.query(q)": [1, "]"]}',
        b'{"input.query(q)": [[1], [2]]}',
        b'{"input.query(q)": [1], "input.query(p)": [2]}',
        b'{"input.query(q)": [1',
        b'{"x": {"input.query(q)": [1]}}',
    ],
)
def test_what_may_mean_something_else_is_not_cut(body: bytes) -> None:
    found = _core.cut_json(body)
    assert found is None or body == b'{"query": "a"'  # what is broken in the rest is for others to see


def test_spaces_of_json_stay_in_the_rest() -> None:
    assert _core.cut_json(b' { "a" : [1, {"b": 2}] , "query" : "x y" } ') == (
        b' { "a" : [1, {"b": 2}] , "query" : "" } ',
        "x y",
        b"",
    )


def test_a_vector_is_cut_as_it_is_written() -> None:
    assert _core.cut_json(b'{"input.query(q)" : [ 1, 2.5e0 ], "query": "a"}') == (
        b'{"input.query(q)" : , "query": ""}',
        "a",
        b"[ 1, 2.5e0 ]",
    )
    assert _core.cut_query_string("a=b&input.query%28q%29=%5B1%2C+2%5D") == ("a=b&input.query%28q%29=", "", b"[1, 2]")


def test_the_text_of_a_parameter_that_the_statement_names_is_cut_where_there_is_no_query() -> None:
    body = b'{"yql": "select * from a where userInput(@words)", "words": "x y"}'
    assert _core.cut_json(body) == (body.replace(b"x y", b""), "x y", b"")
    assert _core.cut_json(body.replace(b"x y", b"userInput(@words)")) is None, "the rest alone says the name"
    assert _core.cut_query_string("yql=userInput%28%40a.b%29&a.b=x+y") == ("yql=userInput%28%40a.b%29&a.b=", "x y", b"")
    with_query = body[:-1] + b', "query": "z"}'
    assert _core.cut_json(with_query) == (with_query.replace(b'"z"', b'""'), "z", b"")


def test_whole_requests_are_cut_as_by_the_twin() -> None:
    choice, cut = random.Random(41), 0
    texts = ("a b", "ref:x", "%41+b", "x", "a#b", "caf\u00e9")
    fields = ("host: h", "accept: */*", "content-type: application/json", "x-query: query=a")
    vectors: tuple[object, ...] = ([1, 2.5], "[1,2]", [[1]], "x", None)
    for _ in range(3000):
        lines = choice.sample(fields, k=choice.randint(1, 4))
        text, method = choice.choice(texts), choice.choice(("GET", "POST", "PUT"))
        written = choice.choice(("", "", "&input.query(q)=[1,2]", "&input.query%28q%29=%5B1%5D"))
        body, query = b"", f"hits=1&query={choice.choice(texts[:4]).replace(' ', '+')}&x=y{written}"
        query = query if choice.random() < 0.9 else written[1:]
        if method != "GET" or choice.random() < 0.1:
            query = choice.choice(("", "hits=1"))
            members: dict[str, object] = {"yql": "y", "query": text}
            if choice.random() < 0.4:
                members["input.query(q)"] = choice.choice(vectors)
            names = choice.sample([*members], k=len(members) - choice.choice((0, 0, 1)))
            body = json.dumps({name: members[name] for name in names}, separators=(",", ":")).encode()
            lines.append(f"content-length: {len(body) + choice.choice((0, 0, 0, 1))}")
        choice.shuffle(lines)
        head = "\r\n".join((f"{method} /search/?{query} HTTP/1.1", *lines)) + "\r\n\r\n"
        request = head.encode() + body
        found = _core.cut_whole_request(request)
        assert found == request_text.cut_whole_request(request), request
        cut += found is not None
    assert cut > 100


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"GET /search/?query=a HTTP/1.1\r\n",
        b"GET /search/ HTTP/1.1\r\nx: ?query=a HTTP/1.1\r\n\r\n",
        b"GET /search/?query=a HTTP/1.1\r\n\r\nGET /search/?query=a HTTP/1.1\r\n\r\n",
        b"GET /search/?query=a\xc3\xa9 HTTP/1.1\r\n\r\n",
        b"GET /search/?query=a#b HTTP/1.1\r\n\r\n",
        b"GET /search/?input.query(q)=[1]#b HTTP/1.1\r\n\r\n",
        b"GET  /search/?query=a HTTP/1.1\r\n\r\n",
        b"HEAD /search/?query=a HTTP/1.1\r\n\r\n",
        b'POST /search/ HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{"query":"a"}',
        b'POST /search/ HTTP/1.1\r\ncontent-length: 13\r\nContent-Length: 13\r\n\r\n{"query":"a"}',
        b'POST /search/ HTTP/1.1\r\ncontent-length: 13x\r\n\r\n{"query":"a"}',
        b'POST /search/ HTTP/1.1\r\ncontent-length: 12\r\n\r\n{"query":"a"}',
        b'POST /search/ HTTP/1.1\r\ncontent-length: 9999999999\r\n\r\n{"query":"a"}',
    ],
)
def test_what_is_no_single_whole_request_with_a_plain_text_is_not_cut(request_bytes: bytes) -> None:
    assert _core.cut_whole_request(request_bytes) is None


def test_text_and_vector_are_cut_out_of_a_whole_request_in_any_order() -> None:
    head = b"POST /search/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
    for body in (b'{"input.query(q)":[1, 2],"query":"a b"}', b'{"query":"a b","input.query(q)":[1, 2]}'):
        rest = body.replace(b"a b", b"").replace(b"[1, 2]", b"")
        found = _core.cut_whole_request(head % len(body) + body)
        assert found == (head.replace(b"%d", b"") + rest, "a b", b"[1, 2]")


def test_a_length_is_no_part_of_what_is_left() -> None:
    shorter, longer = (
        b'POST /search/ HTTP/1.1\r\nContent-Length:%d\r\n\r\n{"query":"%b"}' % (12 + len(text), text)
        for text in (b"a", b"ab")
    )
    assert _core.cut_whole_request(shorter) == (
        b'POST /search/ HTTP/1.1\r\nContent-Length:\r\n\r\n{"query":""}',
        "a",
        b"",
    )
    found = _core.cut_whole_request(longer)
    assert found is not None and found[0] == b'POST /search/ HTTP/1.1\r\nContent-Length:\r\n\r\n{"query":""}'
