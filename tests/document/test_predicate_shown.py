"""Predicates as document/v1 shows them. Authority: the classes of Vespa that `document.predicate` names; the
texts are worked out by hand from them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    shown_predicate,
    simplified,
)

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
