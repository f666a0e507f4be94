"""Feeds are answered, logged, stored and found the same, whether operations are plain and go the short way or not.

The peer is a content cluster of its own, in which no field is plain (`feed_ways.GeneralWay`). Authority: the general
way, which has tests of its own (`test_document_v1.py`, `tests/document`, `tests/content`).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
import pytest

from paperwasp import limits
from paperwasp.container.document.plain_changes import PlainChanges
from paperwasp.coordination import operation_log
from paperwasp.http.messages import Request
from paperwasp.http.request_batch import RequestBatch
from tests.chance import SEED
from tests.container.document.feed_ways import Ways

FEEDS: Final = int(os.environ.get("PAPERWASP_RANDOM_FEEDS", "40"))
RESTARTED_EVERY: Final = 50
WORDS: Final = (
    "",
    "a",
    "the",
    "of",
    "blue",
    "runs",
    "running",
    "cats",
    "don't",
    "rock-n-roll",
    "Straße",
    "3.5",
    "x=y",
    "日本語",
)
NUMBERS: Final = (0, 1, -1, 7, 127, 128, -129, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63)
NUMBERS_WITH_POINT: Final = (0.0, -0.0, 1.5, 1e39, 1e-320)
Value = Callable[[random.Random], Any]


def text(choice: random.Random) -> str:
    found = " ".join(choice.choice(WORDS) for _ in range(choice.choice((0, 1, 2, 5, 30))))
    return found if choice.random() < 0.99 else found + choice.choice(("\ufffd", "\x00", "\ud83d", '"\\\n\t'))


def number(choice: random.Random) -> float:
    return choice.choice(NUMBERS + NUMBERS_WITH_POINT) if choice.random() < 0.05 else choice.randrange(-100, 100)


def texts(choice: random.Random) -> list[str]:
    return [text(choice) for _ in range(choice.randrange(4))]


def vector(choice: random.Random) -> Any:
    cells = [number(choice) / 4 for _ in range(3 if choice.random() < 0.95 else 2)]
    return cells if choice.random() < 0.5 else {"values": cells}


FIELDS: Final[Mapping[str, Value]] = {
    **dict.fromkeys(("title", "body", "name", "genre", "shown"), text),
    **dict.fromkeys(("parts", "labels"), texts),
    **dict.fromkeys(("whole", "small", "long", "double", "single"), number),
    "truth": lambda choice: choice.random() < 0.5,
    "vector": vector,
    "doubles": lambda choice: [number(choice), number(choice)],
    "bytes": lambda choice: [choice.randrange(-130, 130), 1],
}
OTHERS: Final[Mapping[str, Value]] = {
    "cells": lambda choice: {"cells": {"a": number(choice)}} if choice.random() < 0.8 else {},
    "weights": lambda choice: {text(choice): choice.randrange(9) for _ in range(choice.randrange(3))},
    "numbers": lambda choice: [choice.randrange(9) for _ in range(choice.randrange(3))],
    "pairs": lambda choice: {text(choice): choice.randrange(9) for _ in range(choice.randrange(3))},
    "raw": lambda choice: choice.choice(("", "aGVsbG8=", "!")),
    "place": lambda choice: {"lat": 1.5, "lng": choice.randrange(-180, 180)},
    "uri": lambda choice: choice.choice(("", "http://example.com/a?b#c")),
    "unknown": number,
}
ODD: Final[tuple[Value, ...]] = (*FIELDS.values(), *OTHERS.values(), lambda _: None, lambda _: {"assign": 1})
ALL_FIELDS: Final = {**FIELDS, **OTHERS}
BOOK: Final[Mapping[str, Value]] = {"title": text, "pages": number}
OPERATIONS: Final = ("increment", "add", "remove", "assign", "match", "bogus")


def fields(choice: random.Random, kind: str) -> dict[str, Any]:
    """Mostly plain fields with values of their own kinds."""
    known = FIELDS if kind == "music" else BOOK
    names = choice.sample(sorted(known), choice.choice((0, 1, 2, len(known)) if kind == "music" else (0, 1, 2)))
    found = {name: known[name](choice) for name in names}
    if choice.random() < 0.15:
        name = choice.choice(sorted(ALL_FIELDS))
        found[name] = ALL_FIELDS[name](choice)
    if names and choice.random() < 0.1:
        found[names[0]] = choice.choice(ODD)(choice)
    return found


def written(choice: random.Random, content: Any) -> bytes:
    """JSON in one of the forms that clients write, and sometimes broken."""
    separators = choice.choice(((",", ":"), (",", ":"), (", ", ": "), (" ,\n", "\t: ")))
    body = json.dumps(content, ensure_ascii=choice.random() < 0.3, separators=separators).encode(errors="surrogatepass")
    if choice.random() < 0.05 and body:
        place = choice.randrange(len(body))
        body = body[:place] + choice.choice((b"", b'"', b"\\", b"\xff", b"0", b"}", b",")) + body[place + 1 :]
    return body


def query(choice: random.Random, kind: str) -> str:
    if choice.random() < 0.8:
        return choice.choice(("", "timeout=180s"))
    options = {
        "create": choice.choice(("true", "false", "")),
        "condition": choice.choice((f"{kind}.{'whole' if kind == 'music' else 'pages'} > 3", kind, "", "no (", "true")),
        "route": choice.choice(("default", "media", "nowhere")),
        "cluster": choice.choice(("media", "other")),
        "dryRun": choice.choice(("true", "false")),
        "timeout": choice.choice(("5", "x")),
        "fieldSet": "[all]",
    }
    return urlencode({name: options[name] for name in choice.sample(sorted(options), choice.choice((1, 1, 2)))})


def path(choice: random.Random, kind: str) -> str:
    name = f"d{choice.randrange(12)}"
    odd = choice.random()
    if odd < 0.03:
        return f"/document/v1/n/{choice.choice(('nothing', 'mu%73ic', ''))}/docid/{name}"
    if odd < 0.06:
        return f"/document/v1/n/{kind}/{choice.choice(('number/7', 'group/g', 'group/%C3%A9', 'number/x'))}/{name}"
    if odd < 0.12:
        name = choice.choice((quote("é ü"), "a+b", "a%20b", "a/b", "a:b", "", "%ff", "a/docid/b", "%E0%B8"))
    return f"/document/v1/n/{kind}/docid/{name}"


def changes(choice: random.Random, count: int) -> list[Request]:
    """Requests that come together: half of the time they are of one kind, as those of a feed are."""
    if choice.random() < 0.5:
        return [change(choice, *start(choice)) for _ in range(count)]
    kind, method, asked = start(choice)
    return [change(choice, kind, method, asked) for _ in range(count)]


def start(choice: random.Random) -> tuple[str, str, str]:
    """Document type, method and query string."""
    kind = "music" if choice.random() < 0.8 else "book"
    method = choice.choices(("POST", "PUT", "DELETE", "PATCH"), (50, 35, 14, 1))[0]
    return kind, method, query(choice, kind)


def change(choice: random.Random, kind: str, method: str, asked: str) -> Request:
    content: dict[str, Any] = {"fields": fields(choice, kind)}
    if method == "PUT":
        for name, value in content["fields"].items():
            usual = choice.random() < 0.9
            content["fields"][name] = {"assign" if usual else choice.choice(OPERATIONS): value}
    if choice.random() < 0.06:
        content |= choice.choice(({"condition": kind}, {"create": True}, {"put": "id:n:music::d1"}, {"fields": 3}))
    body = b"" if method == "DELETE" else written(choice, content)
    return Request(method, path(choice, kind), asked, {}, body)


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[Ways]:
    found = Ways(tmp_path)
    yield found
    found.close()


QUERIES: Final = (
    "true",
    "title contains 'running'",
    "body contains 'the'",
    "parts contains 'cats'",
    "name contains 'blue'",
    "genre contains 'a'",
    "labels contains 'of'",
    "whole > 3",
    "long = 7",
    "truth = true",
    "heading contains 'book'",
    "uri contains 'example'",
)


def compare(ways: Ways, requests: list[Request], choice: random.Random) -> None:
    """Documents that were changed, and what some queries find."""
    touched = dict.fromkeys(request.raw_path for request in requests if request.raw_path.startswith("/document/v1/n/"))
    ways.send([Request("GET", each) for each in touched if not each.endswith("/")])
    for where in (QUERIES[0], *choice.sample(QUERIES, 3)):
        ways.search(yql=f"select * from sources * where {where}", hits=100, nocache="true")


@pytest.mark.parametrize("seed", [SEED])
def test_random_feeds_are_the_same_either_way(ways: Ways, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each feed is some batches. At last all that was logged is applied again, without a checkpoint."""
    choice = random.Random(seed)
    counts = {"short": 0, "together": 0, 200: 0, 400: 0, 412: 0}
    read, read_batch = PlainChanges.read, PlainChanges.read_batch

    def counted(self: PlainChanges, request: Request) -> Any:
        counts["short"] += (found := read(self, request)) is not None
        return found

    def counted_together(self: PlainChanges, batch: RequestBatch) -> Any:
        found = read_batch(self, batch)
        counts["together"] += len(found) if len(found) > 1 else 0
        return found

    monkeypatch.setattr(PlainChanges, "read", counted)
    monkeypatch.setattr(PlainChanges, "read_batch", counted_together)
    monkeypatch.setattr(operation_log, "sync_data", lambda _: None)
    monkeypatch.setattr(limits, "GATHERING_PAUSES", 0)
    for feed in range(1, FEEDS + 1):
        requests = []
        for _ in range(choice.choice((1, 2, 4))):
            batch = changes(choice, choice.choice((1, 2, 5, 20)))
            for answer in ways.send(batch):
                counts[answer.status] = counts.get(answer.status, 0) + 1
            ways.pass_time(choice.choice((0, 1000, 10**9)))
            requests += batch
        if feed % RESTARTED_EVERY == 0 or feed == FEEDS:
            ways.restart(checkpoint=choice.random() < 0.5 and feed < FEEDS)
        compare(ways, requests, choice)
    assert counts["short"] > FEEDS and counts["together"] > FEEDS // 4, counts
    assert min(counts[200], counts[400], counts[412]) > 0, counts


def test_the_two_ways_are_two(ways: Ways) -> None:
    """The peer reads no field by the short way, and a difference between the two fails the comparison."""
    body = orjson.dumps({"fields": {"title": "blue"}})
    ways.send([Request("POST", "/document/v1/n/music/docid/1", "", {}, body)])
    ways.short.send([Request("POST", "/document/v1/n/music/docid/2", "", {}, body)])
    with pytest.raises(AssertionError):
        ways.search(yql="select * from music where true")
    with pytest.raises(AssertionError):
        ways.send([Request("GET", "/document/v1/n/music/docid/2")])
