"""Predicates: their canonical text, what is none, and how document/v1 shows them.

The texts follow Vespa's grammar and its Predicate.toString; those that are shown are worked out by hand from the
classes of Vespa that `document.predicate` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document import predicate
from paperwasp.document.predicate import (
    Conjunction,
    Disjunction,
    FeatureRange,
    FeatureSet,
    Negation,
    Predicate,
    PredicateIndex,
    Truth,
    parse_predicate,
    printed,
    shown_predicate,
    simplified,
)
from paperwasp.errors import LanguageError
from tests.document.typed_values import PREDICATES

CANONICAL = [
    ("gender in [Female] and age in [20..30] and pos in [1..4]", None),
    ("a in [c, b, b]", "a in [b, c]"),
    ("a in ['b']", "a in [b]"),
    ('a in ["b c"]', "a in ['b c']"),
    ("a_b in [c]", "'a_b' in [c]"),
    ("a in [20]", None),
    ("a in [-5, +3]", "a in ['+3', '-5']"),
    ("a in [ -5 .. +3 ]", "a in [-5..3]"),
    ("a in [..]", None),
    ("a in [5..]", None),
    ("a IN [..5] OR true AND FALSE", "a in [..5] or (true and false)"),
    ("a not in [b]", None),
    ("not (a in [b])", "a not in [b]"),
    ("a not in [1..2]", "not (a in [1..2])"),
    ("not(a in [b] or b in [c])", "not (a in [b] or b in [c])"),
    ("(a in [b] and b in [c]) and c in [d]", "a in [b] and b in [c] and c in [d]"),
    ("(a in [b] or b in [c]) and c in [d]", None),
    ("((true))", "true"),
    ("true in [false]", None),
    ("in not in [not]", None),
    ("not in [a]", None),
    ("Or in [a]", None),
    (r"a in ['it\'s', '\\', 'tab\t', '\x41']", r"a in [A, '\\', 'it\x27s', 'tab\t']"),
    ("a in ['é']", r"a in ['\xC3\xA9']"),
    ("a in ['']", None),
    ("a in [1..5 (a=1-5,a=0+[..3],b=-1-2)]", "a in [1..5]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_texts(text: str, canonical: str | None) -> None:
    assert str(parse_predicate(text)) == (canonical or text)


def test_the_deepest_one() -> None:
    deepest = "a in [b]"
    for level in range(limits.PREDICATE_DEPTH):
        deepest = f"not ({deepest} {'and' if level % 2 else 'or'} b in [c])"
    assert str(parse_predicate(deepest)) == deepest


def test_trees() -> None:
    found = parse_predicate("a in [b] and not (n in [1..]) and true")
    assert found == Conjunction((FeatureSet("a", ("b",)), Negation(FeatureRange("n", 1, None)), Truth(True)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected more, found the end"),
        ("a in", "line 1, column 5: expected '[', found the end"),
        ("a in []", "line 1, column 7: expected a value, found ']'"),
        ("a in [b", "line 1, column 8: expected ']', found the end"),
        ("a in [é]", "line 1, column 7: unexpected character 'é'"),
        ("a in [b] b in [c]", "line 1, column 10: expected the end, found 'b'"),
        ("a in [b] and", "line 1, column 13: expected more, found the end"),
        ("not a in [b]", "line 1, column 5: expected 'in' or 'IN', found 'a'"),
        ("(a in [b]", "line 1, column 10: expected ')', found the end"),
        ("a in [2..1]", "line 1, column 6: expected 'to' greater than or equal to 2, got 1"),
        ("a in [9223372036854775808..]", "line 1, column 7: 9223372036854775808 is no 64-bit integer"),
        ("a in ['b]", "line 1, column 7: a string begins here and has no end"),
        ("a in\n[b]", "unexpected character '\\n'"),
        ("(" * 1000, "nested deeper than"),
        ("x" * (limits.PREDICATE_CHARACTERS + 1), "a predicate has at most"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_predicate(text)
    assert message in str(raised.value)


@given(PREDICATES)
def test_the_canonical_text_means_the_same(text: str) -> None:
    canonical = str(parse_predicate(text))
    assert str(parse_predicate(canonical)) == canonical


@given(st.text("ab in[].,1-'\"\\()notrue\n+=", max_size=30))
def test_no_text_fails_otherwise(text: str) -> None:
    try:
        canonical = str(parse_predicate(text))
    except LanguageError:
        return
    assert str(parse_predicate(canonical)) == canonical


PIECES = ["a", "in", "not", "AND", "or", "true", "12", "-3", "0", "'b c'", "'d,'", '"e"', "''", "[", "]", "(", ")"]
CONDITIONS = [
    "a in [b]",
    "not in [1..2]",
    "a not in [b, 'c d']",
    "in in [2..1]",
    "a in[ x ,y]",
    "a in [..]",
    "a in [05..9]",
]
TEXTS = st.lists(
    st.tuples(st.sampled_from([*PIECES, "..", ",", "=", *CONDITIONS]), st.sampled_from(["", " ", "\t"])), max_size=12
).map(lambda pieces: "".join(chain.from_iterable(pieces)))


def outcome(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except LanguageError as error:
        return str(error)


def by_parts(text: str) -> object:
    return predicate._parse(predicate._LEXICON.tokenize(text))


@given(TEXTS)
def test_plain_conditions_are_read_as_all_others(text: str) -> None:
    assert outcome(parse_predicate, text) == outcome(by_parts, text)


@pytest.mark.parametrize(
    "text",
    [
        "a in [b]",
        "a not in [b,'c d', c]",
        "a in [-2..3]",
        "a in [..]",
        "a in [007]",
        "not in ['']",
        "x NOT IN [\t1..2 ]",
    ],
)
def test_plain_conditions_are_quick(text: str) -> None:
    """Each is one token, and what it says is what its parts say."""
    assert predicate._QUICK_LEXICON.tokenize(text).next().kind in ("set", "range")
    assert parse_predicate(text) == by_parts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age in [20..29]", "'age' in [20..29]"),
        ("age not in [..5]", "'age' not in [..5]"),
        ("gender in [m, f] and true", "('gender' in ['f','m'] and true)"),
        ("not (a in [b] or c in [3..])", "not ('a' in ['b'] or 'c' in [3..])"),
        ("not (not (a in [b]))", "'a' in ['b']"),
        ("a in [b] and (c in [d] or not (e in [f] and g in [h]))",
         "('a' in ['b'] and ('c' in ['d'] or not ('e' in ['f'] and 'g' in ['h'])))"),
        ("not (a in [b] and not (c in [d]))", "not ('a' in ['b'] and 'c' not in ['d'])"),
    ],
)  # fmt: skip
def test_predicates_are_printed_as_content_nodes_print_them(text: str, expected: str) -> None:
    """By hand from PredicatePrinter (document/src/vespa/document/predicate/predicate_printer.cpp)."""
    assert printed(parse_predicate(text)) == expected


TEN = PredicateIndex(10)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("true and false", "false"),
        ("a in [b] and true", "a in [b]"),
        ("a in [b] or false or true", "true"),
        ("not (true)", "false"),
        ("a in [b] and (c in [d] and e in [f])", "a in [b] and c in [d] and e in [f]"),
        ("not (a in [b] and c in [d])", "a not in [b] or c not in [d]"),
        ("not (a not in [b])", "a in [b]"),
        ("a in [b] and c not in [d]", "c not in [d] and a in [b]"),
        ("a not in [b] or c in [d]", "c in [d] or a not in [b]"),
        ("a in [b] and (c in [d] or e not in [f])", "(c in [d] or e not in [f]) and a in [b]"),
        ("not (a in [b] and (c in [d] or e in [f]))", "a not in [b] or (c not in [d] and e not in [f])"),
    ],
)
def test_predicates_are_simplified(sent: str, shown: str) -> None:
    assert shown_predicate(sent, TEN) == shown


@pytest.mark.parametrize(
    ("index", "sent", "shown"),
    [
        (TEN, "a in [20..29]", "a in [20..29 (a=20-29)]"),
        (TEN, "a in [0..99]", "a in [0..99 (a=0-99)]"),
        (TEN, "a in [23..40]", "a in [23..40 (a=20+[3..],a=40+[..0],a=30-39)]"),
        (TEN, "a in [23..26]", "a in [23..26 (a=20+[3..6])]"),
        (TEN, "a in [20..219]", "a in [20..219 (a=20-29,a=30-39,a=40-49,a=50-59,a=60-69,a=70-79,a=80-89,a=90-99,"
         "a=200-209,a=210-219,a=100-199)]"),
        (TEN, "a in [-9..9]", "a in [-9..9 (a=-9-0,a=0-9)]"),
        (TEN, "a in [-29..-20]", "a in [-29..-20 (a=-29-20)]"),
        (TEN, "a in [-3..-1]", "a in [-3..-1 (a=-0+[..3])]"),
        (TEN, "a_b in [20..29]", "'a_b' in [20..29 ('a_b=20-29')]"),
        (TEN, "not (a in [20..23])", "not (a in [20..23 (a=20+[..3])])"),
        (PredicateIndex(10, 0, 99), "a in [50..]", "a in [50.. (a=50-59,a=60-69,a=70-79,a=80-89,a=90-99)]"),
        (PredicateIndex(10, 0, 99), "a in [..]", "a in [.. (a=-9-0,a=0-99)]"),
        (PredicateIndex(10, 0, 50), "a in [100..105]", "a in [100..105 (a=9223372036854775790-9223372036854775799)]"),
    ],
)  # fmt: skip
def test_ranges_have_the_parts_of_their_index(index: PredicateIndex, sent: str, shown: str) -> None:
    assert shown_predicate(sent, index) == shown


def test_what_is_no_predicate_stays() -> None:
    assert shown_predicate("in in in", TEN) == "in in in"


_NAMES = st.sampled_from(["a", "b c", "d_e"])
_LEAVES = (
    st.builds(Truth, st.booleans())
    | st.builds(FeatureSet, _NAMES, st.sampled_from([("x",), ("x", "y")]))
    | st.builds(
        lambda key, low, width: FeatureRange(key, low, low + width), _NAMES, st.integers(-50, 300), st.integers(0, 300)
    )
)
_PREDICATES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.builds(Negation, inner)
        | st.builds(lambda each: Conjunction(tuple(each)), st.lists(inner, min_size=2, max_size=3))
        | st.builds(lambda each: Disjunction(tuple(each)), st.lists(inner, min_size=2, max_size=3))
    ),
    max_leaves=8,
)


def _holds(predicate: Predicate, texts: dict[str, str], number: int) -> bool:
    match predicate:
        case Truth():
            return predicate.value
        case FeatureSet():
            return texts.get(predicate.key) in predicate.values
        case FeatureRange():
            return (predicate.low or 0) <= number <= (predicate.high or 0)
        case Negation():
            return not _holds(predicate.operand, texts, number)
        case Conjunction():
            return all(_holds(operand, texts, number) for operand in predicate.operands)
    return any(_holds(operand, texts, number) for operand in predicate.operands)


@given(_PREDICATES, st.dictionaries(_NAMES, st.sampled_from(["x", "y", "z"])), st.integers(-60, 620))
def test_what_is_shown_is_the_same_predicate(predicate: Predicate, texts: dict[str, str], number: int) -> None:
    """And may be sent again."""
    assert _holds(simplified(predicate), texts, number) == _holds(predicate, texts, number)
    shown = shown_predicate(str(predicate), TEN)
    assert _holds(parse_predicate(shown), texts, number) == _holds(predicate, texts, number)
    assert shown_predicate(shown, TEN) == shown


@given(st.integers(-2000, 2000), st.integers(0, 3000), st.integers(2, 12), st.integers(-2100, 5100))
def test_the_parts_of_a_range_are_the_range(low: int, width: int, arity: int, number: int) -> None:
    """-0 and 0 are the same."""
    shown = shown_predicate(f"a in [{low}..{low + width}]", PredicateIndex(arity))
    found = set[int]()
    for sign, first, begin, end, last in re.findall(
        r"a=(-?)(\d+)(?:\+\[(\d*)\.\.(\d*)\]|-(\d+))", shown.partition("(")[2]
    ):
        ends = (int(first), int(last)) if last else (int(first) + int(begin or 0), int(first) + int(end or arity - 1))
        found |= {-each if sign else each for each in range(min(ends), max(ends) + 1)}
    assert (number in found) == (low <= number <= low + width)
