"""Features of query terms and their occurrences: query, term, termInfo, fieldTermMatch, termFieldMd."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import NUMBER, Dimension, TensorType
from paperwasp.search.features.block import Block, are_terms_of, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, TensorCompute, one, register
from paperwasp.search.features.term_places import element_places
from paperwasp.search.operators.operator import NOT_COUNTED

# query(name) and queryTermCount: what the query brings.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-features


def _declared(setup: RankSetup, name: str) -> TensorType:
    """The type of query(name). A text is a number: its hash."""
    inputs = setup.profile.inputs
    given = inputs.get(f"query({name})") or inputs.get(name)
    return NUMBER if given is None or given.type is None else given.type


@register("query", "name", type_=lambda setup, arguments, output: _declared(setup, arguments[0]))
def bind_query(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Callable[[Block], Any]:
    name = arguments[0]
    type_ = _declared(setup, name)
    if not type_.is_number:
        return lambda block: block.setting.tensor_input(name, type_)

    def compute(block: Block) -> Floats:
        return one(block.setting.inputs.get(name, 0.0))

    return compute


@register("queryTermCount", listed=lambda setup: ("queryTermCount",))
def bind_term_count(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return one(len(block.terms))

    return compute


# term(n): what the query says of its term number n, counted from 0.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-features


TERM_DEFAULT_LISTED_TERMS = 5


def _term_listed(setup: RankSetup) -> Iterable[str]:
    count = setup.whole(TERM_DEFAULT_LISTED_TERMS, limits.LISTED_TERMS, "term.numTerms")
    outputs = ("connectedness", "significance", "weight")
    return [f"term({number}).{output}" for number in range(count) for output in outputs]


@register("term", "number", outputs=("connectedness", "significance", "weight"), listed=_term_listed)
def bind_term(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    number = int(arguments[0])

    def compute(block: Block) -> Floats:
        if number >= len(block.terms):
            return one(0.0)
        term = block.terms[number]
        values = {"connectedness": term.connectivity, "significance": term.significance, "weight": term.weight}
        return one(values[output])

    return compute


# termInfo(n).queryidx: the number of a term of the query, -1 where there is none of this number.
#
# Vespa: not in its reference; a feature of its content nodes.


@register("termInfo", "number", outputs=("queryidx",))
def bind_term_info(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    number = int(arguments[0])

    def compute(block: Block) -> Floats:
        return one(number if number < len(block.terms) else -1)

    return compute


# fieldTermMatch(field, n): where, and how often, term number n occurs in an indexed field.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-term-and-field-match-features
# Differs: exactness is 1 wherever the term stands; Vespa has less for the weaker ones of `alternatives`.


NO_POSITION: Final = 1_000_000.0
FIELD_TERM_MATCH_DEFAULT_LISTED_TERMS: Final = 5


def _field_term_match_listed(setup: RankSetup) -> Iterable[str]:
    for field in setup.listed_index_fields:
        keys = (f"fieldTermMatch({field}).numTerms", f"fieldTermMatch.numTerms.{field}", "fieldTermMatch.numTerms")
        for number in range(setup.whole(FIELD_TERM_MATCH_DEFAULT_LISTED_TERMS, limits.LISTED_TERMS, *keys)):
            yield f"fieldTermMatch({field},{number}).firstPosition"
            yield f"fieldTermMatch({field},{number}).occurrences"
            yield f"fieldTermMatch({field},{number}).weight"


@register(
    "fieldTermMatch",
    "index",
    "number",
    outputs=("firstPosition", "lastPosition", "occurrences", "weight", "exactness"),
    listed=_field_term_match_listed,
)
def bind_field_term_match(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, number = arguments[0], int(arguments[1])
    absent = NO_POSITION if output.endswith("Position") else 0.0

    def compute(block: Block) -> Floats:
        if not are_terms_of(block, field, number):
            return one(absent)
        if output == "occurrences":
            return block.occurrences(number, field).astype(np.float64)
        if output == "weight":
            return _weights(block, field, number)
        if output == "exactness":
            return (np.diff(block.positions(number, field)[0].astype(np.int64)) > 0).astype(np.float64)
        return end_positions(*block.positions(number, field), last=output == "lastPosition")

    return compute


def _weights(block: Block, field: str, number: int) -> Floats:
    """The sum of the weights of the elements that the term stands in, for each place where it stands."""
    places = element_places(block, number, field)
    before = np.concatenate([[0], np.cumsum(places.weights, dtype=np.int64)])
    sums: Floats = (before[places.offsets[1:]] - before[places.offsets[:-1]]).astype(np.float64)
    return sums


def end_positions(offsets: NDArray[np.uint32], positions: NDArray[np.uint32], *, last: bool = False) -> Floats:
    """The first (or last) position of each hit; NO_POSITION for a hit without any."""
    counts = np.diff(offsets.astype(np.int64))
    at = offsets[1:].astype(np.int64) - 1 if last else offsets[:-1].astype(np.int64)
    found = np.full(len(counts), NO_POSITION)
    found[counts > 0] = positions[at[counts > 0]]
    return found


# termFieldMd(field): what is known of the matches of all terms in a field.
#
# Vespa: not in its reference; a feature of its content nodes.


_OUTPUTS = ("score", "terms", "match", "termsmatched", "firstweight", "occurrences", "maxTermWeight")


@register("termFieldMd", "any-field", outputs=_OUTPUTS)
def bind_term_field_md(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]

    def compute(block: Block) -> Floats:
        value = np.zeros(len(block.lids))
        for number, _ in terms_of(block, field):
            value = _with_term(block, number, field, output, value)
        return value

    return compute


def _with_term(block: Block, number: int, field: str, output: str, value: Floats) -> Floats:
    """An output with one more of the terms that search the field."""
    if output == "terms":
        return value + 1.0
    matched = block.matched(number, field).astype(np.float64)
    match output:
        case "match":
            return np.maximum(value, matched)
        case "termsmatched":
            return value + matched
        case "firstweight":
            return np.where(value == 0, block.match_weights(number, field), value)
        case "occurrences":
            return value + block.occurrences(number, field)
        case "maxTermWeight":
            return np.maximum(value, matched * block.terms[number].weight)
    return value + block.match_weights(number, field)


# queryTermDocumentFrequency(field) and num_docs_indexed: what bm25 takes a term's document frequency to be.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#queryTermDocumentFrequency(name)


TYPE: Final = TensorType.of([Dimension("term")], "double")


@register("queryTermDocumentFrequency", "field", type_=lambda setup, arguments, output: TYPE)
def bind_document_frequency(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    """A cell for each term that searches the field, labelled with its number; the same for all hits."""

    def compute(block: Block) -> TensorBatch:
        found = {
            str(number): float((term.document_frequency or block.setting.terms[number].document_frequency)[0])
            for number, term in terms_of(block, arguments[0])
        }
        labels = block.labels.numbers(found).reshape(-1, 1)
        return TensorBatch(
            TYPE, np.array([0, len(found)], np.int64), labels, np.array(list(found.values())), is_single=True
        )

    return compute


@register("num_docs_indexed")
def bind_documents(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The documents of the type in the node; 1 in streaming search, which has no statistics."""

    def compute(block: Block) -> Floats:
        space = block.setting.space
        return one(NOT_COUNTED[1] if space.streamed else space.documents)

    return compute
