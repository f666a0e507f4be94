"""Facets in compiled plans are those of the general steps, byte for byte: random groupings beside random words.

The specification is grouping/facets.py with grouping/shown_groups.py. Vespa: GroupingExecutor.java, group.cpp
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import orjson
import pytest

from paperwasp import limits
from paperwasp.storage.attributes.string import StringView
from tests.container.search.search_nodes import put, remove, update
from tests.container.search.text_peers import Peers, document, grouping, peers, query, statement

QUERIES = int(os.environ.get("PAPERWASP_COMPILED_QUERIES", "600"))
ASKED = {
    "yql": "select * from music where userQuery() | all(group(name) max(3) order(-count()) each(output(count())))",
    "query": "one",
    "type": "any",
    "ranking": "body",
    "default-index": "body",
    "nocache": "true",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    """A node with random documents, some of them removed, replaced or changed in place."""
    choice = random.Random(8)
    with peers() as found:
        found.compiled.apply(*(document(choice, number) for number in range(600)))
        found.compiled.apply(*(remove(number) for number in range(0, 600, 13)))
        found.compiled.apply(*(document(choice, number) for number in range(0, 600, 29)))
        found.fill_rows()
        found.compiled.apply(*(update(number, year=7, name="n1") for number in range(5, 600, 37)))
        yield found


@pytest.mark.parametrize("seed", range(4))
def test_random_facets_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        asked = (query if choice.random() < 0.5 else statement)(choice)
        shared.compare(**asked | {"yql": f"{asked['yql']} | {grouping(choice)}"})
    assert shared.answered - before > QUERIES // 30, "plans have answered too few queries to say anything"


def lists_of(body: bytes) -> list[list[tuple[str, int]]]:
    """The (value, count) of each list."""
    (root,) = [child for child in orjson.loads(body)["root"]["children"] if child["id"].startswith("group:root")]
    return [
        [(group["value"], group["fields"]["count()"]) for group in each["children"]]
        for each in root.get("children", ())
    ]


def test_values_that_are_fed_or_changed_later_are_counted() -> None:
    with peers() as found:
        found.compiled.apply(*(put(number, body="one", name=f"n{number % 5}") for number in range(20)))
        found.fill_rows()
        before = found.answered
        assert lists_of(found.compare(**ASKED)) == [[("n0", 4), ("n1", 4), ("n2", 4)]]
        found.compiled.apply(put(20, body="one", name="new"), *(update(number, name="new") for number in range(9)))
        assert lists_of(found.compare(**ASKED)) == [[("new", 10), ("n4", 3), ("n0", 2)]]
        assert found.answered == before + 3, "all but the first"


def test_a_group_that_is_alone_shows_its_relevance(shared: Peers) -> None:
    """Without an order, groups are in that of their best hits."""
    yql = "select * from music where userQuery() and name contains 'n5' | all(group(name) each(output(count())))"
    for hits in (0, 10):
        before = shared.answered
        root = orjson.loads(shared.compare(**ASKED | {"yql": yql, "query": "the", "hits": hits}))["root"]["children"]
        (group,) = next(child for child in root if child["id"].startswith("group:root"))["children"][0]["children"]
        assert group["relevance"] > 0 and shared.answered > before


def test_facets_without_matches_or_hits(shared: Peers) -> None:
    before = shared.answered
    for asked in ({"query": "nowhere"}, {"query": "the", "hits": 0}, {"query": "the", "offset": 1000}):
        assert (len(lists_of(shared.compare(**ASKED | asked))) > 0) == (asked["query"] == "the")
    assert shared.answered == before + 3, "all but the first of each shape"


def test_more_groups_than_are_written_at_once_go_the_general_way(
    shared: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INLINE_GROUPS", 5)
    for most, by_plan in ((4, True), (5, False)):  # one more says whether there is another page
        asked = {"query": "the", "yql": ASKED["yql"].replace("max(3)", f"max({most}) precision({most})")}
        before = shared.answered
        shared.compare(**ASKED | asked)
        assert shared.answered - before == by_plan


def test_strings_that_are_no_text_go_the_general_way() -> None:
    """A surrogate cannot be written as UTF-8."""
    with peers() as found:
        found.compiled.apply(put(1, body="one", name="n"))
        column = found.compiled.nodes["media"].reader.view().columns["music", "name"]
        assert isinstance(column, StringView)
        strings = column.dictionary._strings  # no plan has read them yet
        strings[strings.index("n")] = "n\ud800"
        found.compare(**ASKED)
        before = found.answered
        assert lists_of(found.compare(**ASKED)) == [[("n?", 1)]]
        assert found.answered == before + 1, "only what is asked before, which finds nothing"


def test_hits_of_a_relevance_of_one_come_before_the_groups() -> None:
    """Vespa: Hit.java, HitGroupsLastComparator.java"""
    with peers() as found:
        found.compiled.apply(*(put(number, body="one " * (1 + number % 9), name="n") for number in range(40)))
        found.compiled.apply(*(put(number, body="two", name="n") for number in range(40, 90)))
        found.fill_rows()
        found.compiled.apply(*(update(number, year=3) for number in range(0, 40, 7)))
        places = set()
        for text in ("one", "two", "one two"):
            before = found.answered
            children = orjson.loads(found.compare(**ASKED | {"query": text, "hits": 90}))["root"]["children"]
            assert found.answered > before
            places.add([child["id"].startswith("group:") for child in children].index(True))
        assert len(places) > 1 and max(places) > 0
