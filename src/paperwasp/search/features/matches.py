"""Features of field matches: match, matches, fieldInfo, fieldLength, queryCompleteness, rawScore, subqueries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.types import RAW, ArrayType, WeightedSetType
from paperwasp.errors import LanguageError
from paperwasp.search.features.attribute_match import is_matched
from paperwasp.search.features.block import Block, are_terms_of, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, check_field, constant, families, one, register
from paperwasp.search.features.term_places import ElementPlaces, element_places
from paperwasp.search.features.terms import NO_POSITION, end_positions
from paperwasp.search.operators.predicate import PredicateMatch
from paperwasp.text.parsing.tokens import did_you_mean

# match: the mean of how well all fields of the document are matched, by the weights of the fields.
#
# It is that of fieldMatch (of one text), elementCompleteness (of several) and attributeMatch over those fields where
# these are above 0.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#match


_MATCH_OUTPUTS: Final = ("score", "totalWeight")
_WEIGHT: Final = "weight."


def _check_match(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    if output.startswith(_WEIGHT):
        return check_field("field", output.removeprefix(_WEIGHT), setup, "match.weight")
    if output and output not in _MATCH_OUTPUTS:
        known = (*_MATCH_OUTPUTS, "weight")
        raise LanguageError(f"an output of match is {' or '.join(known)}, not {output!r}{did_you_mean(output, known)}")
    return ""


def _parts(setup: RankSetup) -> list[tuple[str, str]]:
    """(feature, field) of all fields that are matched."""
    parts = []
    for field in setup.index_fields:
        is_multiple = isinstance(setup.field(field).type, ArrayType | WeightedSetType)
        parts.append(("elementCompleteness" if is_multiple else "fieldMatch", field))
    for field in setup.attribute_fields:
        type_ = setup.field(field).type
        if is_matched(type_) and type_ != RAW:
            parts.append(("attributeMatch", field))
    return parts


@register("match", outputs=_MATCH_OUTPUTS, pending=_check_match, any_output=True)
def bind_match(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if output.startswith(_WEIGHT):
        return constant(float(setup.weight(output.removeprefix(_WEIGHT))))
    scores: list[tuple[float, Compute]] = []
    for feature, field in _parts(setup):
        family = families()[feature]
        scores.append((float(setup.weight(field)), family.bind(setup, (field,), family.outputs[0])))

    def compute(block: Block) -> Floats:
        total, weights = np.zeros(len(block.lids)), np.zeros(len(block.lids))
        for weight, score in scores:
            found = score(block)
            weights += np.where(found > 0, weight, 0.0)
            total += np.where(found > 0, found * weight, 0.0)
        if output == "totalWeight":
            return weights
        return np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), 0.0)

    return compute


# matches(field), matches(field, n) and matchCount(field): whether, and by how many terms, a field was matched.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#matches(name)


def _count_of(block: Block, field: str, only: int | None = None) -> Floats:
    """Count the terms that match in `field`, or term `only`."""
    count = np.zeros(len(block.lids))
    for number, _ in terms_of(block, field):
        if only in (None, number):
            count += block.matched(number, field)
    return count


def _listed(setup: RankSetup) -> Iterable[str]:
    return [f"matches({field})" for field in (*setup.listed_attributes, *setup.listed_index_fields)]


@register("matches", "any-field", "number", optional=1, listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    only = int(arguments[1]) if len(arguments) == 2 else None

    def compute(block: Block) -> Floats:
        return (_count_of(block, field, only) > 0).astype(np.float64)

    return compute


@register("matchCount", "any-field")
def bind_count(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return _count_of(block, arguments[0])

    return compute


# fieldInfo(field): what a field is, and what the first term of the query matches in it; fieldInfo: how many there are.
#
# Vespa: not in its reference; a feature of its content nodes.


NAME: Final = "fieldInfo"
_OVERVIEW: Final = ("indexCnt", "attrCnt")
_FIELD_INFO_OUTPUTS: Final = ("type", "filter", "search", "hit", "len", "first", "last", "cnt")
_INDEX, _ATTRIBUTE = 1.0, 2.0


def _check_field_info(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    known = _FIELD_INFO_OUTPUTS if arguments else _OVERVIEW
    if output and output not in known:
        raise LanguageError(
            f"rank feature {NAME} {'of a field ' if arguments else ''}has the outputs {', '.join(known)}"
        )
    return ""


def _field_info_listed(setup: RankSetup) -> Iterable[str]:
    if setup.text(f"{NAME}.enable"):
        fields = (*setup.listed_index_fields, *setup.listed_attributes)
        yield from (f"{NAME}({field}).{output}" for field in fields for output in _FIELD_INFO_OUTPUTS)
        yield from (f"{NAME}.{output}" for output in _OVERVIEW)


@register(
    NAME, "name", outputs=("",), optional=1, listed=_field_info_listed, pending=_check_field_info, any_output=True
)
def bind_field_info(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if not arguments:
        counts = len(setup.listed_index_fields), len(setup.listed_attributes)
        return constant(counts[_OVERVIEW.index(output or _OVERVIEW[0])])
    field, output = setup.searched_name(arguments[0]), output or _FIELD_INFO_OUTPUTS[0]
    is_index = field in setup.index_fields
    kind = _INDEX if is_index else _ATTRIBUTE if arguments[0] in setup.listed_attributes else 0.0
    if output == "type":
        return constant(kind)
    if output == "filter":
        return constant(float(setup.is_filter(field)))
    unknown = 0.0 if output in ("search", "hit", "cnt") else NO_POSITION

    def compute(block: Block) -> Floats:
        if not kind or not are_terms_of(block, field, 0):
            return one(unknown)
        if output == "search":
            return one(1.0)
        hit = block.matched(0, field)
        if output == "hit" or (output == "cnt" and not is_index):
            return hit.astype(np.float64)
        return _of_index(block, field, output) if is_index else np.where(hit & (output != "len"), 0.0, unknown)

    return compute


def _of_index(block: Block, field: str, output: str) -> Floats:
    offsets, positions = block.positions(0, field)
    if output in ("first", "last"):
        return end_positions(offsets, positions, last=output == "last")
    counts = np.diff(offsets.astype(np.int64))
    if output == "cnt":
        return counts.astype(np.float64)
    return np.where(counts > 0, block.field_length(field), NO_POSITION)


# fieldLength(field) and averageFieldLength(field).
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#fieldLength(name)


UNKNOWN_LENGTH: Final = 1_000_000.0
"""The length of a field that no term of the query matched, or in which it is not known where one did."""


@register("fieldLength", "index")
def bind_field_length(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]

    def compute(block: Block) -> Floats:
        matched = np.zeros(len(block.lids), np.bool_)
        for number, _ in terms_of(block, field):
            if not block.only_filters(number, field):
                matched |= block.matched(number, field)
        return np.where(matched, block.field_length(field).astype(np.float64), UNKNOWN_LENGTH)

    return compute


@register("averageFieldLength", "index")
def bind_average(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return one(block.setting.average_lengths(arguments[0])[0])

    return compute


# queryCompleteness(field, begin, end): how many terms stand in a field, between two places, and how many do not.
#
# Vespa: not in its reference; a feature of its content nodes.


_END = 2**32 - 1


def _check_query_completeness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    begin, end = _window(arguments)
    if begin >= end:
        raise LanguageError(f"queryCompleteness from place {begin} to {end} of a field: there is none")
    return ""


def _window(arguments: tuple[str, ...]) -> tuple[int, int]:
    begin, end = (*map(int, arguments[1:]), *(0, _END)[len(arguments) - 1 :])
    return begin, end


@register(
    "queryCompleteness",
    "index",
    "number",
    "number",
    outputs=("hit", "miss"),
    optional=2,
    pending=_check_query_completeness,
)
def bind_query_completeness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    begin, end = _window(arguments)

    def compute(block: Block) -> Floats:
        terms = [number for number, _ in terms_of(block, field)]
        hits = np.zeros(len(block.lids))
        for number in terms:
            hits += _stands(element_places(block, number, field), begin, end)
        return hits if output == "hit" else len(terms) - hits

    return compute


def _stands(places: ElementPlaces, begin: int, end: int) -> Floats:
    """1 where the first place from `begin` on is before `end`."""
    rows = np.flatnonzero(places.positions >= begin)
    ends = places.offsets.astype(np.int64)
    firsts = np.searchsorted(rows, ends[:-1])
    found = np.zeros(len(ends) - 1)
    there = np.flatnonzero(firsts < np.searchsorted(rows, ends[1:]))
    found[there] = places.positions[rows[firsts[there]]] < end
    return found


# rawScore(field) and itemRawScore(label): what operators of the query score by themselves.
#
# Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html#raw-scores-and-query-item-labeling


@register("rawScore", "field")
def bind_raw_score(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The sum of all of them in a field. Positions are searched in their attribute: `rawScore(place_zcurve)`."""
    field = arguments[0]

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        for number, _ in terms_of(block, field):
            scores += block.raw_scores(number, field)
        return scores

    return compute


@register("itemRawScore", "name")
def bind_item(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """Return the score of the first term with a label, in all its fields."""
    label = arguments[0]

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        number = next((number for number, term in enumerate(block.terms) if term.label == label), None)
        if number is not None:
            for field in block.terms[number].fields:
                scores += block.raw_scores(number, field)
        return scores

    return compute


# subqueries(field): the subqueries of a predicate() in which a document matches, as two numbers of 32 bits.
#
# Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html#identifying-subqueries-in-results


_LOW_BITS = np.uint64(0xFFFFFFFF)


def subqueries(block: Block, field: str) -> NDArray[np.uint64]:
    """The subqueries of predicate() that match in `field`: a bit for each."""
    found = np.zeros(len(block.lids), np.uint64)
    for term in block.setting.terms:
        for match in term.matches:
            if isinstance(match, PredicateMatch) and match.field == field:
                found |= match.subqueries(block.lids)
    return found


@register("subqueries", "field", outputs=("lsb", "msb"))
def bind_subqueries(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    shift = np.uint64(32 if output == "msb" else 0)

    def compute(block: Block) -> Floats:
        return (subqueries(block, arguments[0]) >> shift & _LOW_BITS).astype(np.float64)

    return compute
