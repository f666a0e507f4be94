"""No text makes a parser of the query languages raise anything but a PaperwaspError, or take long."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.errors import IllegalQuery, LanguageError, PaperwaspError
from paperwasp.query_languages.yql import UserText, complete, parse_simple, parse_yql
from paperwasp.query_languages.yql.indexes import Indexes, Reading
from paperwasp.query_languages.yql.query_type import QUERY_TYPES
from paperwasp.query_languages.yql.statement import parse_template
from paperwasp.search.operators.boolean import AndItem, FalseItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem, WordAlternativesItem
from paperwasp.search.operators.geo import GeoBoundingBoxItem, GeoLocationItem
from paperwasp.search.operators.in_operator import InItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.labeled import LabeledItem
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem
from paperwasp.search.operators.patterns import FuzzyItem, PrefixItem, RegexItem, SubstringItem, SuffixItem
from paperwasp.search.operators.phrase import PhraseItem, UriItem
from paperwasp.search.operators.predicate import PredicateItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.weighted import DotProductItem, WandItem, WeightedSetItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import Annotations

SELECT = "select * from sources * where "
INDEXES = Indexes(
    {"a", "title", "year", "e", "e.x", "h.hostname"},
    {"a": Reading(is_whole=True, terminator="@@"), "e": Reading(is_whole=True)},
)
YQL_WORDS = (
    "select * from sources where and or ! not ( ) { } [ ] [{ }] true false contains in range rank weakAnd userQuery "
    "userInput text phrase nonEmpty order by asc desc limit offset timeout = < > <= >= != , ; : . | @a @b @ near - + "
    '"x" \'y\' "\\u00e9" "\\q" " \' 1 -2 3.5 5L 1e9 -Infinity Infinity title a.b weight targetHits bounds '
    '"open" label id connectivity grammar // /* */ onear( equiv( sameElement( alternatives( uri( fuzzy( matches '
    'wand( weightedSet( dotProduct( {"a":1} [[1,2]] nearestNeighbor( geoLocation( geoBoundingBox( "5 km" predicate( '
    'labeled( as a[2] a{"k"} elementFilter distance prefix'
)
SIMPLE_PIECES = (
    'a title: year: b:c "x y" " + - ( ) [ ] [1;5] [;2;3] < > <5 >-1 ! !! !200 * foo* ; , OR \u00e5 \U0001f642 \u2028 '
    "and or near onear(2) weakand( andnot equiv rank e:{x:a e:{ } x: h.hostname:^a.b*"
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
    st.one_of(st.text(), st.lists(PIECES).map(" ".join), st.lists(PIECES).map("".join)),
    st.sampled_from([name for name, type_ in QUERY_TYPES.items() if type_.syntax != "yql"]),
    st.sampled_from(["title", None]),
)
def test_simple_parses_or_says_why(text: str, kind: str, index: str | None) -> None:
    try:
        tree = parse_simple(text, kind, index, INDEXES)
    except LanguageError as error:
        assert "expected an integer argument" in error.message
        return
    if tree is not None:
        assert tree.canonical() == tree


NAMES = st.sampled_from(["a", "title", "my.field", "b-c"])
NUMBERS = st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False))
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
COUNTS = st.integers(0, 1000)
GROUP_SETTINGS = {
    "weight": st.integers(-5, 500),
    "ranked": st.booleans(),
    "filter": st.booleans(),
    "significance": st.none() | st.floats(0, 1),
    "label": st.none() | TEXT,
    "document_frequency": st.none() | st.tuples(COUNTS, COUNTS),
}
ANNOTATIONS = st.builds(
    Annotations,
    **GROUP_SETTINGS,
    stem=st.booleans(),
    normalize_case=st.booleans(),
    accent_drop=st.booleans(),
    implicit_transforms=st.booleans(),
    use_position_data=st.booleans(),
    language=st.sampled_from(["", "en", "nb"]),
    and_segmenting=st.booleans(),
    profile=st.sampled_from(["", "p"]),
)
OF_GROUP = st.builds(Annotations, **GROUP_SETTINGS)
TOKENS = st.one_of(
    st.dictionaries(TEXT, COUNTS, min_size=1).map(lambda tokens: tuple(tokens.items())),
    st.dictionaries(st.integers(-9, 9), COUNTS, min_size=1).map(lambda tokens: tuple(tokens.items())),
)
PARTS: Mapping[type[TermItem], Mapping[str, st.SearchStrategy[object]]] = {
    WordItem: {"word": TEXT},
    PrefixItem: {"word": TEXT},
    SuffixItem: {"word": TEXT},
    SubstringItem: {"word": TEXT},
    RegexItem: {"expression": TEXT},
    FuzzyItem: {"word": TEXT, "max_edits": COUNTS, "prefix_length": COUNTS, "prefix": st.booleans()},
    UriItem: {"text": TEXT, "start_anchor": st.booleans(), "end_anchor": st.booleans()},
    WordAlternativesItem: {
        "alternatives": st.dictionaries(TEXT, st.floats(0, 1), min_size=1).map(lambda forms: tuple(forms.items()))
    },
    InItem: {
        "values": st.lists(TEXT, min_size=1, unique=True).map(tuple)
        | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True).map(tuple)
    },
    WeightedSetItem: {"tokens": TOKENS},
    DotProductItem: {"tokens": TOKENS},
    WandItem: {
        "tokens": TOKENS,
        "target_hits": st.integers(1, 1000),
        "score_threshold": st.floats(0, 9),
        "threshold_boost_factor": st.floats(0, 9),
    },
    NearestNeighborItem: {
        "tensor": NAMES,
        "target_hits": st.integers(1, 1000),
        "approximate": st.booleans(),
        "explore_additional_hits": COUNTS,
        "distance_threshold": st.none() | st.floats(0, 9),
        "tuning": st.sampled_from([(), (("hnsw.explorationSlack", 0.5),)]),
    },
    GeoLocationItem: {
        "latitude": st.floats(-90, 90),
        "longitude": st.floats(-180, 180),
        "radius_degrees": st.just(-1.0) | st.floats(0, 180),
    },
    GeoBoundingBoxItem: {
        "south": st.floats(-90, 90),
        "west": st.floats(-180, 180),
        "north": st.floats(-90, 90),
        "east": st.floats(-180, 180),
    },
    PredicateItem: {
        "attributes": st.just(()) | st.tuples(st.tuples(TEXT, TEXT, st.just(2**64 - 1))),
        "ranges": st.just(()) | st.tuples(st.tuples(TEXT, st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**64 - 1))),
    },
    RangeItem: {
        "low": st.none() | NUMBERS,
        "high": st.none() | NUMBERS,
        "low_inclusive": st.booleans(),
        "high_inclusive": st.booleans(),
        "hit_limit": st.integers(-5, 5),
    },
}
PARTS_OF_PHRASE = st.lists(
    TEXT
    | st.builds(WordItem, st.just("a"), TEXT, annotations=st.just(Annotations(stem=False)))
    | st.builds(WordAlternativesItem, st.just("a"), st.just((("x", 1.0),))),
    min_size=2,
).map(tuple)
PHRASES = st.builds(PhraseItem, st.just("a"), PARTS_OF_PHRASE, annotations=OF_GROUP)
WORDS_OF_A = st.builds(WordItem, st.just("a"), TEXT, annotations=ANNOTATIONS)
EQUIVS = st.builds(EquivItem, st.lists(WORDS_OF_A | PHRASES, min_size=2).map(tuple), annotations=OF_GROUP)
NEARS = st.builds(
    NearItem,
    st.lists(WORDS_OF_A | EQUIVS | PHRASES, min_size=2, max_size=4).map(tuple),
    COUNTS,
    st.booleans(),
    st.lists(WORDS_OF_A, min_size=1, max_size=3).map(tuple),
    COUNTS,
)
TERMS: st.SearchStrategy[Item] = st.one_of(
    *(st.builds(kind, index=NAMES, **parts, annotations=ANNOTATIONS) for kind, parts in PARTS.items()),
    st.builds(PhraseItem, NAMES, st.lists(TEXT, min_size=2).map(tuple), annotations=ANNOTATIONS),
    PHRASES,
    EQUIVS,
    NEARS,
)
ITEMS_OF_ELEMENT = st.one_of(
    st.builds(WordItem, st.just("") | NAMES, TEXT, annotations=ANNOTATIONS),
    st.builds(PhraseItem, st.just(""), st.lists(TEXT, min_size=2).map(tuple)),
    st.builds(RangeItem, NAMES, NUMBERS, NUMBERS),
)


def composites(children: st.SearchStrategy[Item]) -> st.SearchStrategy[Item]:
    several = st.lists(children, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        several.map(AndItem),
        several.map(OrItem),
        several.map(RankItem),
        several.map(NotItem),
        st.builds(WeakAndItem, several, st.integers(1, 100)),
        st.builds(LabeledItem, st.tuples(children), TEXT, st.floats(-9, 9)),
    )


ELEMENTS = st.builds(
    SameElementItem,
    NAMES,
    st.lists(st.recursive(ITEMS_OF_ELEMENT, composites, max_leaves=4), min_size=1, max_size=3).map(tuple),
    st.lists(COUNTS, max_size=3).map(tuple),
)
TREES = st.recursive(st.one_of(TERMS, ELEMENTS, st.just(TrueItem()), st.just(FalseItem())), composites, max_leaves=8)


@settings(deadline=None)
@given(TREES)
def test_a_canonical_tree_reads_back_from_its_yql(tree: Item) -> None:
    tree = tree.canonical()
    assert tree.canonical() == tree
    read = parse_yql(SELECT + tree.to_yql()).tree
    assert read.canonical().to_yql() == tree.to_yql()


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
    [
        *(
            '"',
            "(",
            ")",
            "[",
            "[ ",
            "!",
            "-",
            "+",
            "a:",
            "title:",
            "a.",
            ":",
            "&",
            "<",
            "*",
            "-(",
            "+(",
            "[1;",
            "\u201c",
        ),
        *("'", "-/", "+-", "-*", "_-"),
    ],
)
@pytest.mark.parametrize("kind", ["weakAnd", "any", "web"])
@pytest.mark.parametrize("index", ["title", None])
def test_long_noise_takes_linear_time(piece: str, kind: str, index: str | None) -> None:
    started = time.process_time()
    with suppress(LanguageError, IllegalQuery):
        parse_simple(piece * 20_000, kind, index, INDEXES)
    assert time.process_time() - started < 2


def test_many_items_are_refused() -> None:
    tree = parse_yql(SELECT + "userQuery()").tree
    with pytest.raises(PaperwaspError, match="exceeds allowed item count"):
        complete(tree, UserText(" ".join(["a"] * 20_000)))


def test_remembered_statements_follow_their_parameters() -> None:
    text = SELECT + "title contains @word and userInput(@text)"
    first = parse_template(text, {"word": "one", "text": "x"})
    assert parse_template(text, {"word": "two", "text": "y"}) is first
    assert parse_yql(text, {"word": "two", "text": "x"}).tree.to_yql().startswith('title contains "two"')
    with pytest.raises(LanguageError, match="'word' is not set"):
        parse_yql(text, {})
