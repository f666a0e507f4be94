"""Tokens: one field of a run of documents before it is inverted, and the tokenizing of its texts.

Texts are cut by the compiled tokenizer, and stemmed by the language of each. Languages are a pure function of the texts
and of the languages that documents set, so that applying a batch again gives the same tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.text.linguistics import (
    ENGLISH,
    NO_STEMMER,
    STEMMERS,
    TextProfile,
    detect_all,
    detect_puts,
    document_language,
    stem_words,
)

Buffer: TypeAlias = NDArray[np.uint8]
Text: TypeAlias = str | Sequence[str] | Mapping[str, int]
"""The value of a field that is indexed: one text, an array of them, or a weighted set."""


class Elements(Struct, frozen=True, eq=False):
    """The values of a field of many values: document d has elements starts[d]..starts[d + 1]."""

    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    """The position after the element's last token."""
    weights: NDArray[np.int32] | None = None
    """The weights of a weighted set; None: all weigh 1."""

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.ends.nbytes + (self.weights.nbytes if self.weights is not None else 0)


class Texts:
    """The texts of one field of a run of documents, each with the number of the document that it belongs to."""

    def __init__(self, values: Sequence[Text | None]) -> None:
        self.texts: list[str] = []
        self.owners: list[int] = []
        self._weights: list[int] = []
        self._documents = len(values)
        self._are_elements = False
        for owner, value in enumerate(values):
            if isinstance(value, str):
                self.texts.append(value)
                self.owners.append(owner)
            elif value:
                self._add_elements(owner, value)

    def _add_elements(self, owner: int, value: Sequence[str] | Mapping[str, int]) -> None:
        if isinstance(value, Mapping):
            self._weights.extend([1] * (len(self.texts) - len(self._weights)))
            self._weights.extend(value.values())
        self.texts.extend(value)
        self.owners.extend([owner] * len(value))
        self._are_elements = True

    def elements(self, ends: NDArray[np.uint32]) -> Elements | None:
        """The texts as elements. `ends`: of each text, where its tokens end. None: they are single values."""
        if not self._are_elements:
            return None
        counts = np.bincount(np.array(self.owners, np.int64), minlength=self._documents)
        weights = None
        if self._weights:
            missing = [1] * (len(self.texts) - len(self._weights))
            weights = np.array([*self._weights, *missing], np.int32)
        return Elements(_sums(counts).astype(np.uint32), ends, weights)


class Tokens(Struct, frozen=True, eq=False, dict=True):
    """One field of a run of documents, not inverted: document d has tokens offsets[d]..offsets[d + 1]."""

    terms: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    average: float
    """The mean length of the field, for bounds."""
    elements: Elements | None = None
    """None: every document has a single value."""

    @cached_property
    def field_index(self) -> Buffer:
        of = self.elements
        if of is None:
            return _core.invert(self.terms, self.positions, self.offsets, self.average)
        return _core.invert(
            self.terms, self.positions, self.offsets, self.average, of.starts, of.ends, of.weights
        )  # fmt: skip

    @property
    def nbytes(self) -> int:
        elements = self.elements.nbytes if self.elements is not None else 0
        return self.terms.nbytes + self.positions.nbytes + self.offsets.nbytes + elements


def join_tokens(runs: Sequence[Tokens | int], kept: NDArray[np.bool_], average: float) -> Tokens:
    """Joins the tokens of neighbouring segments, without those of documents that are not kept.

    A number stands for that number of documents that do not have the field.
    """
    present = [run for run in runs if isinstance(run, Tokens)]
    counts = np.concatenate([_lengths(run) for run in runs])
    terms, positions = (np.concatenate([getattr(run, name) for run in present]) for name in ("terms", "positions"))
    elements = _joined_elements(runs, kept) if any(run.elements is not None for run in present) else None
    if not kept.all():
        of_kept = np.repeat(kept, counts)
        counts, terms, positions = counts * kept, terms[of_kept], positions[of_kept]
    return Tokens(terms, positions, _sums(counts).astype(np.uint64), average, elements)


def _lengths(run: Tokens | int) -> NDArray[np.int64]:
    if isinstance(run, int):
        return np.zeros(run, np.int64)
    ends: NDArray[np.int64] = run.offsets.astype(np.int64)
    return ends[1:] - ends[:-1]


def _joined_elements(runs: Sequence[Tokens | int], kept: NDArray[np.bool_]) -> Elements:
    described = [_elements_of(run) for run in runs]
    counts = np.concatenate([np.diff(elements.starts.astype(np.int64)) for elements in described])
    ends = np.concatenate([elements.ends for elements in described])
    weights = None
    if any(elements.weights is not None for elements in described):
        weights = np.concatenate([_weights_of(elements) for elements in described])
    if not kept.all():
        of_kept = np.repeat(kept, counts)
        counts, ends = counts * kept, ends[of_kept]
        weights = weights[of_kept] if weights is not None else None
    return Elements(_sums(counts).astype(np.uint32), ends, weights)


def _elements_of(run: Tokens | int) -> Elements:
    """Return the elements of a run; a single value is one."""
    if isinstance(run, Tokens) and run.elements is not None:
        return run.elements
    lengths = _lengths(run)
    there = lengths > 0
    return Elements(_sums(there.astype(np.int64)).astype(np.uint32), lengths[there].astype(np.uint32))


def _weights_of(elements: Elements) -> NDArray[np.int32]:
    return elements.weights if elements.weights is not None else np.ones(len(elements.ends), np.int32)


def _sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, and the sums of the first ones."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


# Tokenizing

ELEMENT_GAP: Final = 100
"""Positions left out between the elements of a field: no phrase crosses them. The kernels' is in
core/index/field_index.hpp."""

Array: TypeAlias = NDArray[np.uint32]
Tokenized: TypeAlias = tuple[Array, Array, NDArray[np.uint64], Array]
"""(terms, positions, offsets[documents + 1], ends[texts]): document d has tokens offsets[d]..offsets[d + 1], the
positions of which rise; the end of a text is the position after its last token's."""
Plain: TypeAlias = tuple[Array, Array, NDArray[np.uint64], int]
"""(terms, positions, offsets, how many documents have tokens), of texts that are one each, or none."""


def tokenize(
    lexicon: _core.Lexicon,
    profile: TextProfile,
    texts: list[str],
    owners: Sequence[int],
    documents: int,
    languages: Sequence[str] | None = None,
) -> Tokenized:
    """The tokens of texts, of which text i belongs to document owners[i]; owners rise. Called by the writer only.

    `languages` says the language of each text; where it is empty, or none is given, it is detected in the text.
    """
    owned = np.array(owners, np.uint32)
    canonical = profile.canonical_all(texts)
    terms, positions, offsets, ends = lexicon.tokenize(
        canonical, owned, documents, profile.cased, profile.whole, profile.max_token_length
    )
    if len(terms) == 0:
        return terms, positions, offsets, ends
    surfaces = terms.copy() if profile.stemming == "multiple" and profile.is_stemmed else None
    if profile.is_stemmed:
        _stem(lexicon, terms, _stemmers(profile, texts, languages), owned, ends)
    if len(terms) > profile.max_occurrences:
        kept = _rare_enough(terms, positions, offsets, owned, ends, profile.max_occurrences)
        if kept is not None:
            surfaces = surfaces[kept] if surfaces is not None else None
            terms, positions, offsets, ends = _without(kept, terms, positions, offsets, owned, ends)
    if surfaces is not None:
        terms, positions, offsets = _both(terms, surfaces, positions, offsets)
    return terms, positions, offsets, ends


def tokenize_plain(lexicon: _core.Lexicon, profile: TextProfile, values: list[Text | None]) -> Plain | None:
    """As `tokenize`, in fewer steps, of fields with one text each or none, of ASCII and in English, whose languages
    nobody has set: nearly all of most feeds. Called by the writer only.

    None, with nothing done, for other fields.
    """
    if not _is_plain(profile):
        return None
    stemmer = profile.stemmer(ENGLISH)
    if stemmer != NO_STEMMER and detect_all([value for value in values if type(value) is str]):
        return None
    return _with_terms(lexicon, stemmer, lexicon.tokenize_plain(values, _most(profile), profile.max_token_length))


def tokenize_puts(lexicon: _core.Lexicon, profile: TextProfile, puts: list[PlainChange], name: str) -> Plain | None:
    """As `tokenize_plain`, of what plain puts have in a field: no object is made of any text."""
    if not _is_plain(profile):
        return None
    stemmer = profile.stemmer(ENGLISH)
    if stemmer != NO_STEMMER and detect_puts(puts, name) != {}:
        return None
    return _with_terms(lexicon, stemmer, lexicon.tokenize_puts(puts, name, _most(profile), profile.max_token_length))


def _is_plain(profile: TextProfile) -> bool:
    return not (profile.whole or profile.gram_size or profile.cased) and profile.stemming != "multiple"


def _most(profile: TextProfile) -> int:
    """The characters of a text of which no token is left out."""
    return min(profile.max_length, 2 * profile.max_occurrences)  # of fewer characters are fewer words than that


def _with_terms(lexicon: _core.Lexicon, stemmer: str, found: Plain | None) -> Plain | None:
    if found is not None and len(found[0]) and stemmer != NO_STEMMER:
        _to_terms(lexicon, stemmer, found[0])
    return found


def _stemmers(profile: TextProfile, texts: list[str], languages: Sequence[str] | None) -> list[str]:
    """The stemmer of each text; one alone, if all have the same."""
    if languages is None:
        detected = detect_all(texts)
        if not detected:
            return [profile.stemmer(ENGLISH)]
        found = [profile.stemmer(detected.get(number, ENGLISH)) for number in range(len(texts))]
    else:
        found = [profile.stemmer(document_language(text, tag)) for text, tag in zip(texts, languages, strict=True)]
    return found[:1] if found.count(found[0]) == len(found) else found


def _stem(lexicon: _core.Lexicon, surfaces: Array, stemmers: list[str], owners: Array, ends: Array) -> None:
    """Replaces surfaces by terms, in place."""
    if len(stemmers) == 1:
        _to_terms(lexicon, stemmers[0], surfaces)
        return
    counts = ends - _starts(owners, ends)
    for stemmer in sorted(set(stemmers)):
        chosen = np.repeat(np.array([name == stemmer for name in stemmers]), counts)
        some = surfaces[chosen]
        _to_terms(lexicon, stemmer, some)
        surfaces[chosen] = some


def _to_terms(lexicon: _core.Lexicon, stemmer: str, surfaces: Array) -> None:
    if stemmer == NO_STEMMER:
        return
    number = STEMMERS.index(stemmer)
    unknown = lexicon.unknown(number, surfaces)
    if unknown:
        lexicon.learn(number, unknown, stem_words(stemmer, [lexicon.text(i) for i in unknown]))
    lexicon.to_terms(number, surfaces)


def _starts(owners: Array, ends: Array) -> Array:
    """The position at which each text begins."""
    starts = np.zeros(len(ends), np.uint32)
    again = owners[1:] == owners[:-1]
    starts[1:][again] = ends[:-1][again] + np.uint32(ELEMENT_GAP)
    return starts


def _rare_enough(
    terms: Array, positions: Array, offsets: NDArray[np.uint64], owners: Array, ends: Array, most: int
) -> NDArray[np.bool_] | None:
    """Which tokens are among the first `most` of their term in their text; None: all of them are."""
    counts = ends - _starts(owners, ends)
    if int(counts.max(initial=0)) <= most:
        return None
    texts = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    keys = texts << np.uint64(32) | terms
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    places = np.arange(len(keys))
    ranks = places - np.maximum.accumulate(np.where(first, places, 0))
    kept = np.empty(len(keys), bool)
    kept[order] = ranks < most
    return None if kept.all() else kept


def _without(
    kept: NDArray[np.bool_],
    terms: Array,
    positions: Array,
    offsets: NDArray[np.uint64],
    owners: Array,
    ends: Array,
) -> Tokenized:
    """The tokens that are kept; those after one that is not move up."""
    before = np.concatenate([[0], np.cumsum(~kept)])
    ends_of = offsets.astype(np.int64)
    starts = ends_of[:-1]
    of_document = np.repeat(before[starts], ends_of[1:] - ends_of[:-1])
    moved = positions - (before[:-1] - of_document).astype(np.uint32)
    last_tokens = np.cumsum(ends - _starts(owners, ends))
    moved_ends = ends - (before[last_tokens] - before[starts[owners]]).astype(np.uint32)
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    return terms[kept], moved[kept], kept_before[ends_of].astype(np.uint64), moved_ends


def _both(
    terms: Array, surfaces: Array, positions: Array, offsets: NDArray[np.uint64]
) -> tuple[Array, Array, NDArray[np.uint64]]:
    """The terms, and at the same positions the words themselves where they are others."""
    copies = 1 + (terms != surfaces).astype(np.int64)
    ends = np.cumsum(copies)
    both = np.repeat(terms, copies)
    twice = copies == 2
    both[ends[twice] - 1] = surfaces[twice]
    counted = np.concatenate([[0], ends])
    return both, np.repeat(positions, copies), counted[offsets.astype(np.int64)].astype(np.uint64)
