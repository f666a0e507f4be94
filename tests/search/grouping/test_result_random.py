"""Random trees and pages, against a plain twin that makes one group at a time by the definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.container.search.groups_json import hits_in, root_json
from paperwasp.search.grouping.continuation import UNSTABLE, PagePosition, Pages, Path, decode, encode
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level, OrderKey, ResultLayout
from paperwasp.search.grouping.shown_groups import shown
from tests.search.grouping.results import groups, root

COUNT, HITS = Expression("count"), Expression("summary")
BY = Expression("attribute", ("a",))
ORDER = (OrderKey(COUNT, is_ascending=False),)

Tree = list[tuple[str, int, list[int], "Tree"]]
"""Groups of one list: id, count, hits, the groups within."""
Json = dict[str, Any]


def trees(depth: int) -> st.SearchStrategy[Any]:
    below = trees(depth - 1) if depth > 1 else st.just([])
    group = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 99), st.lists(st.integers(0, 9), max_size=4), below)
    return st.lists(group, max_size=5, unique_by=lambda each: each[0])


MAXES = st.none() | st.integers(1, 3)


@st.composite
def statements(draw: st.DrawFn) -> tuple[ResultLayout, list[PartialResult], list[Tree]]:
    """Two requests that share the level of tag 2, over trees of which one may lack groups, or have another order."""
    tree = draw(trees(2))
    other = draw(st.permutations(tree)) if draw(st.booleans()) else tree
    if draw(st.booleans()):
        tree = tree[: draw(st.integers(0, len(tree)))]
    shared = Level(2, BY, order=ORDER, aggregations=(Aggregation(3, COUNT), Aggregation(4, HITS)))
    inner = Level(5, BY, order=ORDER, aggregations=(Aggregation(6, COUNT), Aggregation(7, HITS)))
    outer = Level(2, BY, order=ORDER, aggregations=(Aggregation(3, COUNT),))
    requests = (GroupingRequest(0, 1, levels=(shared,)), GroupingRequest(1, 1, levels=(outer, inner)))
    maxes = {tag: most for tag in (2, 4, 5, 7) if (most := draw(MAXES)) is not None}
    labels = {2: "a", 3: "count()", 4: "hits", 5: "b", 6: "n", 7: "inner hits"}
    first = groups(2, [0] * len(tree), [g[0] for g in tree], [g[1] for g in tree], [g[2] for g in tree])
    second = groups(2, [0] * len(other), [g[0] for g in other], [g[1] for g in other])
    within = [(place, each) for place, group in enumerate(other) for each in group[3]]
    third = groups(5, [p for p, _ in within], *([each[number] for _, each in within] for number in range(3)))
    results = [PartialResult(0, (root(), first)), PartialResult(1, (root(), second, third))]
    return ResultLayout(0, requests, labels, maxes), results, [tree, other]


def answer(layout: ResultLayout, results: list[PartialResult]) -> Json:
    found = shown(layout, {result.number: result for result in results})
    assert found is not None
    answered: Json = orjson.loads(root_json(found, iter([orjson.dumps(hit) for hit in hits_in(found.groups)])))
    return answered


class Twin:
    """Vespa's ResultBuilder on plain lists."""

    def __init__(self, layout: ResultLayout, found: list[Tree]) -> None:
        self.layout, self.this = layout, list[PagePosition]()
        merged: dict[str, tuple[int, list[int] | None, Tree]] = {id_: (n, hits, []) for id_, n, hits, _ in found[0]}
        for id_, count, _, below in found[1]:
            known = merged.get(id_)
            merged[id_] = (count, None, below) if known is None else (known[0], known[1], below)
        self.outer = merged

    def root(self) -> Json:
        listed = self.groups(2, (0, 0, 0), list(self.outer.items()), True)
        shown_root: Json = {"id": "group:root:0", "relevance": 1.0, "continuation": {"this": encode(self.this)}}
        return shown_root | ({"children": [listed]} if self.outer else {})

    def page(self, tag: int, path: Path, length: int, stable: bool) -> tuple[range, Json]:
        most = self.layout.maxes.get(tag)
        if most is None:
            return range(length), {}
        first = self.layout.pages.by_path.get(path, 0) if stable and length else 0
        last, turns = min(length, first + most), {}
        if last < length:
            turns["next"] = encode([PagePosition(path, tag, last, UNSTABLE)])
        if first > 0:
            turns["prev"] = encode([PagePosition(path, tag, max(0, min(first, last) - most), UNSTABLE)])
        return range(first, last), {"continuation": turns} if turns else {}

    def note(self, tag: int, path: Path, page: range) -> None:
        if page.start > 0:
            self.this.append(PagePosition(path, tag, page.start))

    def groups(self, tag: int, path: Path, entries: list[Any], stable: bool) -> Json:
        page, turns = self.page(tag, path, len(entries), stable)
        below = stable and path not in self.layout.pages.unstable
        children = [
            self.group(tag, (*path, place), entries[place], (page.stop - place) / len(page), below) for place in page
        ]
        self.note(tag, path, page)
        return self.listed("grouplist", tag, turns, children)

    def group(self, tag: int, path: Path, entry: Any, relevance: float, stable: bool) -> Json:
        id_, (count, hits, below) = entry
        found: Json = {"id": f"group:string:{id_}", "relevance": relevance, "value": id_}
        found["fields"] = {self.layout.labels[tag + 1]: count}
        children = [] if hits is None else [self.hits(tag + 2, (*path, 0), hits, stable)]
        if below:
            entries: list[Any] = [(each[0], (each[1], each[2], [])) for each in below]
            children.append(self.groups(5, (*path, 0), entries, stable))
        return found | ({"children": children} if children else {})

    def hits(self, tag: int, path: Path, hits: list[int], stable: bool) -> Json:
        page, turns = self.page(tag, path, len(hits), stable)
        self.note(tag, path, page)
        return self.listed("hitlist", tag, turns, [hits[place] for place in page])

    def listed(self, kind: str, tag: int, turns: Json, children: list[Any]) -> Json:
        label = self.layout.labels[tag]
        found: Json = {"id": f"{kind}:{label}", "relevance": 1.0, "label": label}
        return found | turns | ({"children": children} if children else {})


PATHS = st.sampled_from([(0, 0, 0), *[(0, 0, 0, place, 0) for place in range(4)], (0, 0, 0, 0, 0, 1, 0)])
POSITIONS = st.builds(PagePosition, PATHS, st.just(2), st.integers(0, 4), st.integers(0, 1))


@settings(max_examples=300)
@given(statements(), st.lists(POSITIONS, max_size=4))
def test_pages_are_as_the_twin_says(
    statement: tuple[ResultLayout, list[PartialResult], list[Tree]], positions: list[PagePosition]
) -> None:
    layout, results, found = statement
    paged = ResultLayout(0, layout.requests, layout.labels, layout.maxes, Pages.of(0, positions))
    shown_root = answer(paged, results)
    assert shown_root == Twin(paged, found).root()
    again = Pages.of(0, decode(shown_root["continuation"]["this"]))
    stable = ResultLayout(0, layout.requests, layout.labels, layout.maxes, again)
    if not Pages.of(0, positions).unstable:
        assert answer(stable, results) == shown_root


def turned(node: Json) -> Iterator[tuple[Json, str]]:
    """The lists below a group that have a page that follows, with its continuation."""
    for child in node.get("children", ()):
        if isinstance(child, dict):
            if text := child.get("continuation", {}).get("next"):
                yield child, text
            yield from turned(child)


@settings(max_examples=200)
@given(trees(1), st.integers(1, 3))
def test_following_pages_show_every_group_once(tree: Tree, most: int) -> None:
    level = Level(2, BY, order=ORDER, aggregations=(Aggregation(3, COUNT),))
    request = GroupingRequest(0, 1, levels=(level,))
    found = PartialResult(0, (root(), groups(2, [0] * len(tree), [g[0] for g in tree], [g[1] for g in tree])))
    seen: list[str] = []
    given_texts: list[str] = []
    for _ in range(len(tree) + 1):
        pages = Pages.of(0, [position for text in given_texts for position in decode(text)])
        page = answer(ResultLayout(0, (request,), {2: "a", 3: "n"}, {2: most}, pages), [found])
        seen += [each["value"] for listed in page.get("children", ()) for each in listed.get("children", ())]
        following = [text for _, text in turned(page)]
        if not following:
            break
        given_texts = [page["continuation"]["this"], *following]
    assert seen == [group[0] for group in tree]
