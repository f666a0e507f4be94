"""Which documents a query tree matches, read plainly: every operator is a few lines over the values of one document.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paperwasp.search.operators.boolean import AndItem, FalseItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem, WordAlternativesItem
from paperwasp.search.operators.in_operator import InItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.patterns import (
    FuzzyItem,
    PrefixItem,
    RegexItem,
    SubstringItem,
    SuffixItem,
    TextRangeItem,
)
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.weighted import DotProductItem, WeightedSetItem
from paperwasp.search.operators.word import WordItem
from tests.search.naive_search import Document, Domain, Structs, Text


def matches(item: Item, document: Document, domain: Domain) -> bool:
    """Whether the query matches the document."""
    match item:
        case TrueItem():
            return True
        case FalseItem():
            return False
        case AndItem():
            return all(matches(child, document, domain) for child in item.children)
        case OrItem() | WeakAndItem():
            return any(matches(child, document, domain) for child in item.children)
        case NotItem():
            first, *others = (matches(child, document, domain) for child in item.children)
            return first and not any(others)
        case RankItem():
            return matches(item.children[0], document, domain)
        case EquivItem():
            return any(matches(child, document, domain) for child in item.children)
        case NearItem():
            return is_near(item, document, domain)
        case SameElementItem():
            field = domain.by_name[item.index]
            assert isinstance(field, Structs)
            elements = field.elements(document)
            return any(all(part_matches(child, element) for child in item.children) for element in elements)
    return leaf_matches(item, document, domain)


def leaf_matches(item: Any, document: Document, domain: Domain) -> bool:
    index, _, part = item.index.partition(".")
    if index == "default":
        return any(text_matches(item, text, document) for text in domain.default_fields())
    field = domain.by_name[index]
    if isinstance(field, Text):
        return text_matches(item, field, document)
    if isinstance(field, Structs):
        return any(part in element and value_matches(item, element[part]) for element in field.elements(document))
    return any(value_matches(item, value, field.cased) for value in field.elements(document))


def part_matches(item: Any, element: Mapping[str, Any]) -> bool:
    match item:
        case AndItem():
            return all(part_matches(child, element) for child in item.children)
        case OrItem():
            return any(part_matches(child, element) for child in item.children)
        case NotItem():
            first, *others = (part_matches(child, element) for child in item.children)
            return first and not any(others)
    return item.index in element and value_matches(item, element[item.index])


def words_of(item: PhraseItem) -> list[str]:
    """Those of a phrase of words alone."""
    words = [word for word in item.words if isinstance(word, str)]
    assert len(words) == len(item.words)
    return words


def text_matches(item: Any, field: Text, document: Document) -> bool:
    match item:
        case WordItem():
            sought = [field.terms(item.word)]
        case PhraseItem():
            sought = [[term for word in words_of(item) for term in field.terms(word)]]
        case WordAlternativesItem():
            sought = [[replace(field, stemming=False).term(word)] for word, _ in item.alternatives]  # as they are
    elements = field.elements(document)
    return any(is_within(terms, element) for terms in sought for element in elements)


def is_within(terms: Sequence[str], element: Sequence[str]) -> bool:
    """Whether the terms stand next to each other."""
    return any(element[at : at + len(terms)] == terms for at in range(len(element) - len(terms) + 1))


def is_near(item: NearItem, document: Document, domain: Domain) -> bool:
    [index] = {child.index for child in item.children}  # type: ignore[attr-defined]
    field = domain.by_name[index]
    assert isinstance(field, Text)
    terms = [field.term(child.word) for child in item.children]  # type: ignore[attr-defined]
    return any(
        places[-1] - places[0] <= item.distance if item.ordered else max(places) - min(places) <= item.distance
        for element in field.elements(document)
        for places in placings(terms, element, item.ordered)
    )


def placings(terms: Sequence[str], element: Sequence[str], ordered: bool) -> Iterator[list[int]]:
    """All ways to find each term in the element."""
    if not terms:
        yield []
        return
    for rest in placings(terms[:-1], element, ordered):
        for at, term in enumerate(element):
            if term == terms[-1] and not (ordered and rest and at <= rest[-1]):
                yield [*rest, at]


def value_matches(item: Any, value: Any, cased: bool = False) -> bool:
    if isinstance(value, str):
        return string_matches(item, value if cased else value.lower(), str if cased else str.lower)
    match item:
        case RangeItem():
            above = item.low is None or (value >= item.low if item.low_inclusive else value > item.low)
            return above and (item.high is None or (value <= item.high if item.high_inclusive else value < item.high))
        case WordItem():
            return number_word_matches(item.word, value)
        case InItem():
            return value in item.values
        case WeightedSetItem() | DotProductItem():
            return value in [token for token, _ in item.tokens]
    raise AssertionError(item)


def number_word_matches(word: str, value: float) -> bool:
    if word[0] in "<>":
        bound = float(word[1:])
        return value < bound if word[0] == "<" else value > bound
    if word[0] == "[":
        low, high = map(float, word[1:-1].split(";"))
        return low <= value <= high
    return value == float(word)


def string_matches(item: Any, value: str, fold: Callable[[str], str]) -> bool:
    match item:
        case WordItem():
            return value == fold(item.word)
        case PrefixItem():
            return value.startswith(fold(item.word))
        case SuffixItem():
            return value.endswith(fold(item.word))
        case SubstringItem():
            return fold(item.word) in value
        case RegexItem():
            flags = re.IGNORECASE if fold is str.lower else 0
            return re.search(item.expression, value, flags) is not None
        case TextRangeItem():
            low, high = (None if bound is None else fold(bound) for bound in (item.low, item.high))
            above = low is None or value > low or (item.low_inclusive and value == low)
            return above and (high is None or value < high or (item.high_inclusive and value == high))
        case FuzzyItem():
            return is_fuzzy(item, value, fold(item.word))
        case InItem():
            return value in [fold(str(word)) for word in item.values]
        case WeightedSetItem() | DotProductItem():
            return value in [fold(str(token)) for token, _ in item.tokens]
    raise AssertionError(item)


def is_fuzzy(item: FuzzyItem, value: str, word: str) -> bool:
    if value[: item.prefix_length] != word[: item.prefix_length]:
        return False
    value, word = value[item.prefix_length :], word[item.prefix_length :]
    candidates = [value[:end] for end in range(len(value) + 1)] if item.prefix else [value]
    return any(edits(word, candidate) <= item.max_edits for candidate in candidates)


def edits(a: str, b: str) -> int:
    """Insertions, deletions and substitutions between two texts."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
