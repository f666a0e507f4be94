"""Groups are walked page by page over HTTP, while other documents are fed and other queries run.

Whatever is written meanwhile belongs to no group of the walks, so that each group is met once, with what is in it.
Authority: https://docs.vespa.ai/en/reference/querying/grouping-language.html#continuations
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any, NamedTuple

import pytest

from tests import web
from tests.chance import SEED
from tests.service.in_process import Deployed, active, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="content" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="part" mode="index"/></documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
  </content>
</services>
"""
SCHEMA = """schema part {
  document part {
    field shelf type string { indexing: attribute | summary }
    field box type int { indexing: attribute }
    field place type int { indexing: attribute | summary }
    field is_walked type bool { indexing: attribute }
  }
  rank-profile default { first-phase { expression: attribute(place) } }
}
"""
WALKED = "select * from part where is_walked = true"
ALL = "select * from part where true"
PLACES = range(210)
BOXES = 12


class Part(NamedTuple):
    """Of place n the shelf is one of 7, and the box one of 12: each shelf has parts in all boxes, and 30 parts."""

    shelf: str
    box: int
    place: int

    @classmethod
    def at(cls, place: int) -> Part:
        return cls(f"shelf{place % 7}", place // 7 % BOXES, place)


PARTS = [Part.at(place) for place in PLACES]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("pages")) as service:
        active(service.deploy({"services.xml": SERVICES, "schemas/part.sd": SCHEMA}))
        for part in PARTS:
            put(service, f"walked{part.place}", {**part._asdict(), "is_walked": True})
        with others(service):
            yield service


def put(service: Deployed, name: str, fields: dict[str, Any]) -> None:
    answer = web.post(f"{service.url}/document/v1/ns/part/docid/{name}", json={"fields": fields}, timeout=30)
    assert answer.status_code == 200, answer.text


@contextmanager
def others(service: Deployed) -> Iterator[None]:
    """Until the end, documents are written that the walks do not match, and others query and group all documents."""
    is_over = Event()

    def feed(seed: int) -> None:
        chance = random.Random(seed)
        while not is_over.is_set():
            part = Part.at(chance.randrange(10_000))
            fields = {**part._asdict(), "shelf": f"other{chance.randrange(300)}", "is_walked": False}
            name = f"other{chance.randrange(400)}"
            if chance.random() < 0.2:
                answer = web.delete(f"{service.url}/document/v1/ns/part/docid/{name}", timeout=30)
                assert answer.status_code == 200, answer.text
            else:
                put(service, name, fields)

    def query() -> None:
        while not is_over.is_set():
            statement = "all(group(shelf) max(5) order(-count()) each(max(1) output(count()) each(output(summary()))))"
            (root,) = (child for child in asked(service, statement, query=ALL, hits=3) if "group:" in child["id"])
            assert len(children(root)) == 5

    with ThreadPoolExecutor(3) as workers:
        working = [workers.submit(feed, SEED), workers.submit(feed, SEED + 1), workers.submit(query)]
        try:
            yield
        finally:
            is_over.set()
    for work in working:
        work.result()


def asked(
    service: Deployed, statement: str, continuations: Sequence[str] = (), query: str = WALKED, hits: int = 0
) -> list[dict[str, Any]]:
    """What is below the root of the answer."""
    pages = ", ".join(f"'{each}'" for each in continuations)
    body = {"yql": f"{query} | {{continuations: [{pages}]}}{statement}", "hits": hits, "timeout": "20s"}
    answer = web.post(f"{service.url}/search/", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["root"].get("children", []))


def page(service: Deployed, statement: str, *continuations: str) -> dict[str, Any]:
    (root,) = asked(service, statement, continuations)
    return root


def children(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of its only list."""
    (only,) = node["children"]
    return list(only.get("children", []))


def this(root: dict[str, Any]) -> str:
    return str(root["continuation"]["this"])


def pages(
    service: Deployed, statement: str, way: Sequence[str] = (), start: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """All pages of the list at the end of a way of values, from the one at `start`: lists with their entries."""
    found: list[dict[str, Any]] = []
    continuations = list(start)
    while True:
        root = page(service, statement, *continuations)
        node = root
        for value in way:
            node = next(group for group in children(node) if group.get("value") == value)
        (only,) = node["children"]
        found.append(only)
        if "next" not in only.get("continuation", {}):
            return found
        continuations = [this(root), only["continuation"]["next"]]


def values_on(found: Sequence[dict[str, Any]]) -> list[list[str]]:
    return [[group["value"] for group in each["children"]] for each in found]


def split(values: Sequence[str], size: int) -> list[list[str]]:
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


SHELVES = [f"shelf{number}" for number in range(7)]
"""By the sums of their places; and the best of shelf 6 is at 209, of shelf 5 at 208, and so on."""


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(("order", "shelves"), [("order(sum(place))", SHELVES), ("", SHELVES[::-1])])
def test_a_walk_meets_each_group_once(service: Deployed, size: int, order: str, shelves: list[str]) -> None:
    statement = f"all(group(shelf) max({size}) {order} each(output(count(), sum(place))))"
    found = pages(service, statement)
    assert values_on(found) == split(shelves, size)
    for group in (group for each in found for group in each["children"]):
        places = [part.place for part in PARTS if part.shelf == group["value"]]
        assert group["fields"] == {"count()": 30, "sum(place)": sum(places)}


def test_prev_goes_the_same_way_back(service: Deployed) -> None:
    statement = "all(group(shelf) max(2) order(sum(place)) each(output(count())))"
    forward, root = [], page(service, statement)
    while True:
        (only,) = root["children"]
        forward.append(only)
        if "next" not in only["continuation"]:
            break
        root = page(service, statement, this(root), only["continuation"]["next"])
    backward = [only]
    while "prev" in only["continuation"]:
        root = page(service, statement, this(root), only["continuation"]["prev"])
        (only,) = root["children"]
        backward.append(only)
    assert values_on(backward) == values_on(forward)[::-1] == split(SHELVES, 2)[::-1]


def test_this_is_the_same_page(service: Deployed) -> None:
    statement = "all(group(shelf) max(2) order(sum(place)) each(output(sum(place)) max(1) each(output(summary()))))"
    first = page(service, statement)
    assert page(service, statement, this(first)) == first
    second = page(service, statement, this(first), first["children"][0]["continuation"]["next"])
    assert page(service, statement, this(second)) == second
    assert values_on(second["children"]) == [SHELVES[2:4]]


def test_lists_below_are_walked_by_themselves(service: Deployed) -> None:
    """On the second page of shelves, all boxes of one of them, while the other stays on its first page."""
    statement = (
        "all(group(shelf) max(2) order(sum(place)) each(group(box) max(5) order(max(box)) each(output(count()))))"
    )
    first = page(service, statement)
    second = page(service, statement, this(first), first["children"][0]["continuation"]["next"])
    shelf, other = children(second)
    assert [shelf["value"], other["value"]] == SHELVES[2:4]
    boxes = [str(box) for box in range(BOXES)]
    (before,) = other["children"]
    root, met = second, []
    while True:
        shelf, other = children(root)
        (only,) = shelf["children"]
        met += [(group["value"], group["fields"]["count()"]) for group in only["children"]]
        assert other["children"] == [before] and values_on([before]) == [boxes[:5]]
        if "next" not in only["continuation"]:
            break
        root = page(service, statement, this(root), only["continuation"]["next"])
    counts = [sum(part.shelf == SHELVES[2] and part.box == box for part in PARTS) for box in range(BOXES)]
    assert met == list(zip(boxes, counts, strict=True)) and sum(counts) == 30


def test_two_lists_are_turned_at_once(service: Deployed) -> None:
    statement = (
        "all(group(shelf) max(2) order(sum(place)) each(group(box) max(5) order(max(box)) each(output(count()))))"
    )
    root = page(service, statement)
    turns = [group["children"][0]["continuation"]["next"] for group in children(root)]
    both = page(service, statement, this(root), *turns)
    boxes = [str(box) for box in range(5, 10)]
    assert [values_on(group["children"]) for group in children(both)] == [[boxes], [boxes]]
    back = page(service, statement, this(both), children(both)[0]["children"][0]["continuation"]["prev"])
    assert values_on(children(back)[0]["children"]) == [[str(box) for box in range(5)]]
    assert values_on(children(back)[1]["children"]) == [boxes]


def test_hits_of_a_group_are_walked(service: Deployed) -> None:
    """The best first: of a shelf each has a relevance of its own."""
    statement = "all(group(shelf) max(1) order(sum(place)) each(max(7) each(output(summary()))))"
    met = [hit["relevance"] for each in pages(service, statement, [SHELVES[0]]) for hit in each["children"]]
    assert met == sorted((part.place for part in PARTS if part.shelf == SHELVES[0]), reverse=True)


def test_a_page_of_all_levels_is_every_part_once(service: Deployed) -> None:
    """Each shelf, each box of it and each hit in that, one at a time."""
    statement = (
        "all(group(shelf) max(1) order(sum(place)) each(group(box) max(1) order(max(box)) "
        "each(max(1) each(output(summary())))))"
    )
    met: list[tuple[str, str, float]] = []
    shelves = page(service, statement)
    while True:
        (shelf,) = children(shelves)
        boxes = shelves
        while True:
            (box,) = children(children(boxes)[0])
            for hits in pages(service, statement, [shelf["value"], box["value"]], [this(boxes)]):
                met += [(shelf["value"], box["value"], hit["relevance"]) for hit in hits["children"]]
            turn = children(boxes)[0]["children"][0].get("continuation", {})
            if "next" not in turn:
                break
            boxes = page(service, statement, this(boxes), turn["next"])
        turn = shelves["children"][0].get("continuation", {})
        if "next" not in turn:
            break
        shelves = page(service, statement, this(shelves), turn["next"])
    expected = [(part.shelf, str(part.box), part.place) for part in PARTS]
    assert sorted(met) == sorted(expected)
