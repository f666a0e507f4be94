"""Every script beside this file gives what it says: where_, completed_, statement_, simple_ and so on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paperwasp.errors import PaperwaspError
from paperwasp.query_languages.yql import (
    OrderBy,
    UserText,
    complete,
    filtered,
    parse_recall,
    parse_select,
    parse_simple,
    parse_yql,
)
from paperwasp.query_languages.yql.indexes import Indexes, Reading
from tests.query_languages.yql.yql_scripts import SCRIPTS, dump, run

PARAMETERS = {
    "text": "free text",
    "number": "7",
    "range": "<1.5;7]",
    "values": "10, 20,'a b'",
    "empty": "",
    "word": "it's",
    "map": "{a: 1, 'b:c': 2}",
    "pairs": "[[11, 1], [37,2]]",
}
INDEXES = Indexes(
    {
        "default",
        "title",
        "body",
        "year",
        "my.field",
        "sddocname",
        "persons",
        "persons.first",
        "persons.last",
        "url.hostname",
        "tag",
        "code",
        "artist",
        "dotted",
    },
    {
        "tag": Reading(is_whole=True, terminator="@@"),
        "code": Reading(is_whole=True, terminator="@%"),
        "artist": Reading(is_whole=True),
        "dotted": Reading(phrases=True),
    },
)
SELECT = "select * from sources * where "


def scripts(prefix: str) -> list[Path]:
    found = sorted(SCRIPTS.glob(f"{prefix}_*.txt"))
    assert found, prefix
    return found


def where(text: str) -> str:
    """The tree of a condition; and it must read back from what it is written as."""
    try:
        tree = parse_yql(SELECT + text, PARAMETERS).tree
    except PaperwaspError as error:
        return re.sub(r"line 1, column (\d+)", lambda m: f"at {int(m[1]) - len(SELECT)}", str(error))
    written = tree.to_yql()
    assert dump(parse_yql(SELECT + written, PARAMETERS).tree) == dump(tree), written
    return dump(tree)


def completed(text: str) -> str:
    """The canonical tree with the text of the user in it. The last line of the input is the query."""
    condition, _, query = text.rpartition("\n")
    try:
        tree = parse_yql(SELECT + condition, PARAMETERS).tree
        whole = complete(tree, UserText(query.removeprefix("query="), "all", "title", INDEXES, PARAMETERS))
        return "No query" if whole is None else dump(whole)
    except PaperwaspError as error:
        return str(error)


def statement(text: str) -> str:
    try:
        query = parse_yql(text, PARAMETERS)
    except PaperwaspError as error:
        return str(error)
    lines = {
        "fields": ", ".join(query.fields),
        "sources": ", ".join(query.sources),
        "where": dump(query.tree),
        "order": ", ".join(map(_order, query.order_by)),
        "window": "" if query.hits is None else f"{query.hits} from {query.offset}",
        "timeout": "" if query.timeout_ms is None else f"{query.timeout_ms} ms",
        "grouping": query.grouping,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items() if value)


def _order(key: OrderBy) -> str:
    how = " ".join(filter(None, (key.function, key.locale, key.strength)))
    return f"{key.field} {'desc' if key.descending else 'asc'}" + (f" ({how})" if how else "")


def select(text: str) -> str:
    """The tree of a `select.where`, which is the tree of the condition that it is written as."""
    try:
        tree = parse_select(text).tree
    except PaperwaspError as error:
        return str(error)
    assert dump(parse_yql(SELECT + tree.to_yql()).tree) == dump(tree)
    return dump(tree)


def advanced(text: str) -> str:
    try:
        return dump(parse_simple(text, "advanced", "default", INDEXES))
    except PaperwaspError as error:
        return str(error)


def defaults(text: str) -> str:
    """The tree of a text where the default index has whole words: without naming that index, and naming it."""
    indexes = Indexes(INDEXES, {"default": Reading(is_whole=True)} | {"artist": Reading(is_whole=True)})
    trees = {
        "implicit": parse_simple(text, "all", None, indexes),
        "named": parse_simple(text, "all", "artist", indexes),
    }
    return "\n".join(f"{name}: {dump(tree).replace('default:', 'artist:')}" for name, tree in trees.items())


def filters(text: str) -> str:
    """The query `q` with the text as its filter, and as its recall; and the filter of a query with nothing in it."""
    query = parse_simple("q")
    assert query is not None
    try:
        recalled = dump(parse_recall(text, "default", INDEXES).applied_to(query))
    except PaperwaspError as error:
        recalled = str(error)
    lines = {
        "filter": dump(filtered(query, text, "default", INDEXES)),
        "alone": dump(filtered(None, text, "default", INDEXES)),
        "recall": recalled,
    }
    return "\n".join(f"{name}: {tree}" for name, tree in lines.items())


def simple(text: str, default_index: str | None = "default") -> str:
    """The trees of a text by query type; types that agree share a line."""
    trees: dict[str, list[str]] = {}
    for kind in ("weakAnd", "all", "any", "web", "phrase", "tokenize"):
        try:
            tree = dump(parse_simple(text, kind, default_index, INDEXES))
        except PaperwaspError as error:
            tree = str(error)
        trees.setdefault(tree, []).append(kind)
    return "\n".join(f"{', '.join(kinds)}: {tree}" for tree, kinds in trees.items())


@pytest.mark.parametrize("path", scripts("where"), ids=lambda p: p.stem)
def test_where(path: Path) -> None:
    run(path, where)


@pytest.mark.parametrize("path", scripts("completed"), ids=lambda p: p.stem)
def test_completed(path: Path) -> None:
    run(path, completed)


@pytest.mark.parametrize("path", scripts("statement"), ids=lambda p: p.stem)
def test_statement(path: Path) -> None:
    run(path, statement)


@pytest.mark.parametrize("path", scripts("simple"), ids=lambda p: p.stem)
def test_simple(path: Path) -> None:
    run(path, simple)


@pytest.mark.parametrize("path", scripts("unnamed"), ids=lambda p: p.stem)
def test_simple_without_a_default_index(path: Path) -> None:
    run(path, lambda text: simple(text, None))


@pytest.mark.parametrize("path", scripts("default"), ids=lambda p: p.stem)
def test_default_index(path: Path) -> None:
    run(path, defaults)


@pytest.mark.parametrize("path", scripts("select"), ids=lambda p: p.stem)
def test_select(path: Path) -> None:
    run(path, select)


@pytest.mark.parametrize("path", scripts("advanced"), ids=lambda p: p.stem)
def test_advanced(path: Path) -> None:
    run(path, advanced)


@pytest.mark.parametrize("path", scripts("filters"), ids=lambda p: p.stem)
def test_filters(path: Path) -> None:
    run(path, filters)
