"""No text makes a parser of the query languages raise anything but a PaperwaspError, or take long."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.errors import LanguageError, PaperwaspError
from paperwasp.query.items import (
    AndItem,
    Annotations,
    FalseItem,
    Item,
    NotItem,
    OrItem,
    PhraseItem,
    RangeItem,
    RankItem,
    TrueItem,
    WeakAndItem,
    WordItem,
)
from paperwasp.yql import UserText, complete, parse_simple, parse_yql, to_yql
from paperwasp.yql.canonical import canonical
from paperwasp.yql.simple import QUERY_TYPES

SELECT = "select * from sources * where "
INDEXES = frozenset({"a", "title", "year"})
YQL_WORDS = (
    "select * from sources where and or ! not ( ) { } [ ] [{ }] true false contains in range rank weakAnd userQuery "
    "userInput text phrase nonEmpty order by asc desc limit offset timeout = < > <= >= != , ; : . | @a @b @ near - + "
    '"x" \'y\' "\\u00e9" "\\q" " \' 1 -2 3.5 5L 1e9 -Infinity Infinity title a.b weight targetHits bounds '
    '"open" label id connectivity grammar // /* */'
)
SIMPLE_PIECES = (
    'a title: year: b:c "x y" " + - ( ) [ ] [1;5] [;2;3] < > <5 >-1 ! !! !200 * foo* ; , OR \u00e5 \U0001f642 \u2028'
)
WORDS = st.sampled_from(YQL_WORDS.split())
PIECES = st.sampled_from(SIMPLE_PIECES.split(" "))


@settings(deadline=None, max_examples=500)
@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join), st.lists(WORDS).map(lambda words: SELECT + " ".join(words))))
def test_yql_parses_or_says_why(text: str) -> None:
    with suppress(PaperwaspError):
        complete(parse_yql(text, {"a": "1"}).tree, UserText("x -y", "any", "title", INDEXES, {"a": "1"}))


@settings(deadline=None, max_examples=500)
@given(
    st.one_of(st.text(), st.lists(PIECES).map(" ".join), st.lists(PIECES).map("".join)), st.sampled_from([*QUERY_TYPES])
)
def test_simple_parses_or_says_why(text: str, kind: str) -> None:
    try:
        tree = parse_simple(text, kind, "title", INDEXES)
    except LanguageError as error:
        assert "not supported yet" in error.message
        return
    if tree is not None:
        assert canonical(tree) == tree


NAMES = st.sampled_from(["a", "title", "my.field", "b-c"])
NUMBERS = st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False))
ANNOTATIONS = st.builds(
    Annotations,
    weight=st.integers(-5, 500),
    ranked=st.booleans(),
    filter=st.booleans(),
    stem=st.booleans(),
    significance=st.none() | st.floats(0, 1),
    label=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
TERMS: st.SearchStrategy[Item] = st.one_of(
    st.builds(WordItem, NAMES, TEXT, annotations=ANNOTATIONS),
    st.builds(PhraseItem, NAMES, st.lists(TEXT, min_size=2).map(tuple), annotations=ANNOTATIONS),
    st.builds(
        RangeItem,
        NAMES,
        st.none() | NUMBERS,
        st.none() | NUMBERS,
        st.booleans(),
        st.booleans(),
        st.integers(-5, 5),
        annotations=ANNOTATIONS,
    ),
)


def composites(children: st.SearchStrategy[Item]) -> st.SearchStrategy[Item]:
    several = st.lists(children, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        several.map(AndItem),
        several.map(OrItem),
        several.map(RankItem),
        several.map(NotItem),
        st.builds(WeakAndItem, several, st.integers(1, 100)),
    )


TREES = st.recursive(st.one_of(TERMS, st.just(TrueItem()), st.just(FalseItem())), composites, max_leaves=8)


@settings(deadline=None)
@given(TREES)
def test_a_canonical_tree_reads_back_from_its_yql(tree: Item) -> None:
    tree = canonical(tree)
    assert canonical(tree) == tree
    read = parse_yql(SELECT + to_yql(tree)).tree
    assert to_yql(canonical(read)) == to_yql(tree)


@pytest.mark.parametrize(
    "text",
    [
        SELECT + "(" * 5000 + "true",
        SELECT + "!(" * 5000 + "true",
        SELECT + "rank(" * 5000,
        SELECT + "({weight: 1}" * 5000,
        SELECT + "{a: [" * 5000,
        SELECT + "a contains " + "(" * 5000,
        SELECT + "a contains phrase(" + "phrase(" * 5000,
        SELECT + "a contains phrase(" + "(" * 5000,
    ],
    ids=lambda text: text[30:48].strip("( "),
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="nested deeper"):
        parse_yql(text)


@pytest.mark.parametrize(
    "piece",
    ['"', "(", ")", "[", "[ ", "!", "-", "+", "a:", "title:", "a.", ":", "&", "<", "*", "-(", "+(", "[1;", "\u201c"],
)
@pytest.mark.parametrize("kind", ["weakAnd", "any", "web"])
def test_long_noise_takes_linear_time(piece: str, kind: str) -> None:
    started = time.process_time()
    with suppress(LanguageError):
        parse_simple(piece * 50_000, kind, "title", INDEXES)
    assert time.process_time() - started < 2


def test_many_items_are_refused() -> None:
    tree = parse_yql(SELECT + "userQuery()").tree
    with pytest.raises(PaperwaspError, match="exceeds allowed item count"):
        complete(tree, UserText(" ".join(["a"] * 20_000)))


def test_remembered_statements_follow_their_parameters() -> None:
    text = SELECT + "title contains @word and userInput(@text)"
    first = parse_yql(text, {"word": "one", "text": "x"})
    assert parse_yql(text, {"word": "one", "text": "y"}) is first
    assert to_yql(parse_yql(text, {"word": "two", "text": "x"}).tree).startswith('title contains "two"')
    with pytest.raises(LanguageError, match="'word' is not set"):
        parse_yql(text, {})
