"""Tokens: one field of a run of documents before it is inverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core

Buffer: TypeAlias = NDArray[np.uint8]
Text: TypeAlias = str | Sequence[str] | Mapping[str, int]
"""The value of a field that is indexed: one text, an array of them, or a weighted set."""


@dataclass(frozen=True, eq=False, slots=True)
class Elements:
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


@dataclass(frozen=True, eq=False)
class Tokens:
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
    """Its elements; a single value is one."""
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
