"""bm25(field): Okapi BM25 of the query terms that search an indexed field, all or those with a label.

Vespa: https://docs.vespa.ai/en/ranking/bm25.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.ranking.program import Bm25Field
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, TensorCompute, one, register
from paperwasp.search.features.parts import Part, PartsOf, explains
from paperwasp.search.features.setting import RankTerm
from paperwasp.search.features.term_places import is_flat, words_and_occurrences
from paperwasp.search.operators.composed import MaskedMatch, Whole
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.operators.term import IndexMatch
from paperwasp.storage.index.snapshot import IndexSnapshot

DEFAULT_K1 = 1.2
DEFAULT_B = 0.75


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """log(1 + (N - n + 0.5) / (n + 0.5)), of at least one document, and of a term that is in 1..N of them."""
    total = max(1.0, float(documents))
    within = min(max(1.0, float(frequency)), total)
    return math.log(1.0 + ((total - within + 0.5) / (within + 0.5)))


class Bm25Parameters(Struct, frozen=True):
    """k1, b, and the average field length where the profile sets it."""

    k1: float = DEFAULT_K1
    b: float = DEFAULT_B
    average_field_length: float | None = None

    def scores(self, occurrences: Floats, lengths: Floats, average_length: float, weight: float) -> Floats:
        """Return the score of a term of this weight (its idf), computed in Vespa's order of operations."""
        saturation = self.k1 * (1.0 - self.b) + self.k1 * self.b * (lengths / average_length)
        with np.errstate(all="ignore"):  # 0 / 0 where the term does not occur and k1 is 0
            added: Floats = occurrences * (weight * (self.k1 + 1.0)) / (occurrences + saturation)
        return added

    def degraded(self, weight: float) -> Floats:
        """The same of a term that is known only to occur: it counts as once, in a field of average length."""
        return self.scores(one(1.0), one(1.0), 1.0, weight)


def bm25_parameters(setup: RankSetup, field: str) -> Bm25Parameters:
    """The rank properties `bm25(field).k1`, `.b` and `.averageFieldLength` of a profile."""
    prefix = f"bm25({field})"
    average = setup.number(math.nan, f"{prefix}.averageFieldLength")
    return Bm25Parameters(
        setup.number(DEFAULT_K1, f"{prefix}.k1"),
        setup.number(DEFAULT_B, f"{prefix}.b"),
        None if math.isnan(average) else average,
    )


def bm25_field_of(setup: RankSetup, field: str) -> Bm25Field:
    """The same for the kernel that finds the best hits without scoring all."""
    parameters = bm25_parameters(setup, field)
    return Bm25Field(field, parameters.k1, parameters.b, parameters.average_field_length)


def _listed(setup: RankSetup) -> Iterable[str]:
    return [f"bm25({field})" for field in setup.listed_index_fields]


def idf_of(given: tuple[int, int] | None, significance: float | None, counted: tuple[int, int]) -> float:
    """The idf of a term, the same in all its fields.

    It comes from the document frequency that the query gives; else it is the significance that the query gives; else
    it comes from the document frequency that the node counts. Vespa: bm25_utils.cpp (`get_inverse_document_frequency`).
    """
    if significance is not None and given is None:
        return significance
    frequency, documents = given or counted
    return inverse_document_frequency(documents, frequency)


def term_idf(term: RankTerm, number: int, block: Block) -> float:
    """The idf of a term of the query."""
    significance = term.significance if term.explicit_significance else None
    return idf_of(term.document_frequency, significance, block.setting.terms[number].document_frequency)


def _terms(block: Block, field: str, label: str | None) -> Iterator[tuple[int, RankTerm]]:
    """The terms that search the field; those with the label, if there is one."""
    return ((number, term) for number, term in terms_of(block, field) if label in (None, term.label))


@register("bm25", "index", "name", optional=1, outputs=("score",), listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The arguments are those of `bm25(field:title, label:x)`."""
    scores = bm25_scores(setup, arguments[0])
    label = arguments[1] if len(arguments) == 2 else None
    return lambda block: scores(block, label)


Scores = Callable[[Block, str | None], Floats]
"""One score for each hit, of the terms with a label or of all terms."""


def bm25_scores(setup: RankSetup, field: str) -> Scores:
    parameters = bm25_parameters(setup, field)
    counts_of = _counts_of(setup, field)
    return _degraded(field, parameters) if counts_of is None else _full(field, parameters, counts_of)


Counts = Callable[[Block, int, str], tuple[NDArray[np.int32], NDArray[np.int32]]]
"""The words of a field in each hit, and the occurrences of a term, by its number, among them."""


def _counts_of(setup: RankSetup, field: str) -> Counts | None:
    """None: too little is kept for them."""
    if setup.has_bm25(field):
        return _counts_in_index
    return words_and_occurrences if is_flat(setup, field) else None


def _counts_in_index(block: Block, number: int, field: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return block.field_length(field), block.occurrences(number, field)


def _full(field: str, parameters: Bm25Parameters, counts_of: Counts) -> Scores:
    def compute(block: Block, label: str | None) -> Floats:
        scores = np.zeros(len(block.lids))
        average_length = _average_length(block, field, parameters)
        words = _words_of(block, field, label)
        if words is not None:
            words.add_to(scores, parameters, average_length)
            return scores
        for number, term in _terms(block, field, label):
            weight = term_idf(term, number, block)
            if block.only_filters(number, field):
                scores += block.matched(number, field) * parameters.degraded(weight)
                continue
            lengths, occurrences = counts_of(block, number, field)
            _core.add_bm25(occurrences, lengths, weight, parameters.k1, parameters.b, average_length, scores)
        return scores

    return compute


class _Words(Struct, frozen=True):
    """The terms of a query in a field, where all are words of it that count in the same of a block's hits."""

    index: IndexSnapshot
    number: int
    """The number of the field in the index."""
    terms: list[tuple[int, float]]
    """The number of each word in the index, and its idf."""
    lids: Lids
    """The hits in which they count."""
    there: NDArray[np.bool_] | None
    """Which of the block's hits these are; None: all."""

    def add_to(self, scores: Floats, parameters: Bm25Parameters, average_length: float) -> None:
        """Add to the scores of a block's hits, which are 0, what the words add."""
        there, k1, b = self.there, parameters.k1, parameters.b
        found = scores if there is None else np.zeros(len(self.lids))
        _core.add_bm25_of(self.index.reader, self.number, self.terms, k1, b, average_length, self.lids, found)
        if there is not None:
            scores[there] = found


def _words_of(block: Block, field: str, label: str | None) -> _Words | None:
    """The words that a kernel reads the postings of, all in one go; None where the terms are not just that."""
    setting = block.setting
    terms: list[tuple[int, float]] = []
    whole: Whole | None = None
    for term in setting.terms:
        notes = term.annotations
        if label is not None and notes.label != label:
            continue
        matches = [match for match in term.matches if match.field == field]
        if not matches:
            continue
        own, word = (matches[0].whole, matches[0].match) if type(matches[0]) is MaskedMatch else (None, matches[0])
        if len(matches) > 1 or type(word) is not IndexMatch or (terms and own is not whole):
            return None
        whole = own
        terms.append((word.term, idf_of(notes.document_frequency, notes.significance, term.document_frequency)))
    if not terms:
        return None
    there, lids = (None, block.lids) if whole is None else whole.inside(block.lids)
    is_all = lids is block.lids
    return _Words(setting.space.index, setting.number_of(field), terms, lids, None if is_all else there)


def _average_length(block: Block, field: str, parameters: Bm25Parameters) -> float:
    if parameters.average_field_length is not None:
        return parameters.average_field_length
    return block.setting.average_lengths(field)[0] or 1.0


def _degraded(field: str, parameters: Bm25Parameters) -> Scores:
    """Score a field without enable-bm25: a match is one occurrence in a field of average length, as in Vespa."""

    def compute(block: Block, label: str | None) -> Floats:
        scores = np.zeros(len(block.lids))
        for number, term in _terms(block, field, label):
            added = parameters.degraded(term_idf(term, number, block))
            scores += block.matched(number, field) * added
        return scores

    return compute


@explains("bm25")
def bind_parts(setup: RankSetup, arguments: tuple[str, ...], output: str) -> PartsOf:
    """Explain the score of each term: its idf, its occurrences, and the length of the field."""
    field, *labels = arguments
    parameters = bm25_parameters(setup, field)
    label = labels[0] if labels else None
    counts_of = _counts_of(setup, field)

    def parts(block: Block) -> list[Part]:
        return [
            _degraded_part(block, field, number, term, parameters)
            if counts_of is None or block.only_filters(number, field)
            else _full_part(block, field, number, term, parameters, counts_of(block, number, field))
            for number, term in _terms(block, field, label)
        ]

    return parts


def _full_part(
    block: Block,
    field: str,
    number: int,
    term: RankTerm,
    parameters: Bm25Parameters,
    counts: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> Part:
    average_length = _average_length(block, field, parameters)
    lengths, occurrences = counts
    weight = term_idf(term, number, block)
    added = np.zeros(len(block.lids))
    _core.add_bm25(occurrences, lengths, weight, parameters.k1, parameters.b, average_length, added)
    made_of = {
        "idf": one(weight),
        "occurrences": occurrences.astype(np.float64),
        "field length": lengths.astype(np.float64),
        "average field length": one(average_length),
    }
    parts = tuple(Part(text, value) for text, value in made_of.items())
    return Part(f"term({number})", added, parts, number)


def _degraded_part(block: Block, field: str, number: int, term: RankTerm, parameters: Bm25Parameters) -> Part:
    matched = block.matched(number, field).astype(np.float64)
    weight = term_idf(term, number, block)
    parts = (Part("idf", one(weight)), Part("matches", matched))
    return Part(f"term({number})", matched * parameters.degraded(weight), parts, number)


# bm25_for_labels(field), matches_for_labels(field) and matches_for_labels(): cells for labels of the query's items.
#
# A label has a cell where one of its terms matches, in the field or in any.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#bm25_for_labels


TYPE: Final = TensorType.of([Dimension("label")], "float")


def _labels(block: Block) -> list[str]:
    return sorted({term.label for term in block.terms if term.label is not None})


def _batch(block: Block, labels: list[str], columns: list[Floats]) -> TensorBatch:
    """A batch of the values of each label that are not 0."""
    values = np.array(columns, np.float64).reshape(len(labels), len(block.lids)).T
    hits, numbers = np.nonzero(values)
    starts = np.searchsorted(hits, np.arange(len(block.lids) + 1)).astype(np.int64)
    known = block.labels.numbers(labels)
    return TensorBatch(TYPE, starts, known[numbers].reshape(-1, 1), converted(values[hits, numbers], "float"))


@register("bm25_for_labels", "index", outputs=("score",), type_=lambda setup, arguments, output: TYPE)
def bind_for_labels(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    scores = bm25_scores(setup, arguments[0])

    def compute(block: Block) -> TensorBatch:
        labels = _labels(block)
        return _batch(block, labels, [scores(block, label) for label in labels])

    return compute


@register("matches_for_labels", "field", optional=1, type_=lambda setup, arguments, output: TYPE)
def bind_matches(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    def compute(block: Block) -> TensorBatch:
        labels = _labels(block)
        return _batch(block, labels, [_matched(block, label, arguments) for label in labels])

    return compute


def _matched(block: Block, label: str, only: tuple[str, ...]) -> Floats:
    """1 where a term with the label matches in one of these fields, or in any if there are none."""
    found = np.zeros(len(block.lids))
    for number, term in enumerate(block.terms):
        if term.label == label:
            for field in term.fields:
                if not only or field in only:
                    found = np.maximum(found, block.matched(number, field))
    return found
