"""Tensors of one type for many hits at once: what ranking computes with instead of one tensor after the other.

A batch is the subspaces of all its tensors below each other, in one array of cells and one of labels. Labels are
numbers, so that operations on mapped dimensions are operations on arrays; `Labels` says which label a number is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor

LabelNumbers = NDArray[np.int64]
_OWN_NUMBER: Final = compile_later(r"0|[1-9][0-9]{0,17}", re.ASCII)


class LabelsClosed(Exception):
    """A label has no number, and is to be given none now."""


class Labels:
    """The labels of one evaluation, numbered. A whole number is its own number; other labels have negative ones.

    Numbers are given in the order in which labels are met. Any thread may ask while they are closed.

    `base`: labels that are known before, such as those of a profile's constants; it must not change any more.
    """

    is_closed: bool = False
    """Whether labels without a number are errors (LabelsClosed): while several threads meet them in any order."""

    def __init__(self, base: Labels | None = None) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._base = base
        self._before: int = 0 if base is None else base._before + len(base._texts)

    def number(self, label: str) -> int:
        if _OWN_NUMBER.fullmatch(label):
            return int(label)
        known = self.known(label)
        if known is None:
            if self.is_closed:
                raise LabelsClosed
            self._texts.append(label)
            known = self._numbers[label] = -self._before - len(self._texts)
        return known

    def known(self, label: str) -> int | None:
        """The number of a label; None: no tensor has had that label yet."""
        if _OWN_NUMBER.fullmatch(label):
            return int(label)
        found = self._numbers.get(label)
        return found if found is not None or self._base is None else self._base.known(label)

    def numbers(self, labels: Iterable[str]) -> LabelNumbers:
        return np.fromiter(map(self.number, labels), np.int64)

    def text(self, number: int) -> str:
        if number >= 0:
            return str(number)
        place = -number - 1 - self._before
        if place >= 0:
            return self._texts[place]
        assert self._base is not None
        return self._base.text(number)


class TensorBatch(Struct, frozen=True, eq=False):
    """A tensor of `type` for each hit; or, where `is_single`, one tensor that all hits have."""

    type: TensorType
    starts: NDArray[np.int64]
    """(hits + 1): the subspaces of hit i are rows starts[i] to starts[i + 1]. Without mapped dimensions each hit has
    one row."""
    labels: LabelNumbers
    """(rows, mapped dimensions), in the order of the type. The rows of a hit are in any order, each address once."""
    cells: NDArray[Any]
    """(rows, *type.shape), of `value.DTYPES`."""
    is_single: bool = False
    """Whether it is the same for all hits; there is one then."""

    @property
    def hits(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """Subspaces of each hit."""
        counts: NDArray[np.int64] = np.diff(self.starts)
        return counts

    @property
    def owners(self) -> NDArray[np.int64]:
        """The hit of each row."""
        return np.repeat(np.arange(self.hits, dtype=np.int64), self.counts)

    @classmethod
    def dense(cls, type_: TensorType, cells: NDArray[Any], is_single: bool = False) -> TensorBatch:
        """A batch of a type without mapped dimensions. `cells`: (hits, *shape)."""
        labels = np.zeros((len(cells), 0), np.int64)
        return cls(type_, np.arange(len(cells) + 1, dtype=np.int64), labels, cells, is_single)

    @classmethod
    def single(cls, tensor: Tensor, labels: Labels) -> TensorBatch:
        """One tensor for all hits."""
        one = cls.of([tensor], tensor.type, labels)
        return cls(one.type, one.starts, one.labels, one.cells, is_single=True)

    @classmethod
    def of(cls, tensors: Sequence[Tensor], type_: TensorType, labels: Labels) -> TensorBatch:
        """One tensor for each hit, all of this type."""
        counts = [len(tensor.labels) for tensor in tensors]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        flat = chain.from_iterable(chain.from_iterable(tensor.labels for tensor in tensors))
        numbers = labels.numbers(flat).reshape(int(starts[-1]), len(type_.mapped))
        empty = np.zeros((0, *type_.shape), tensors[0].cells.dtype if tensors else np.float64)
        return cls(type_, starts, numbers, np.concatenate([empty, *(tensor.cells for tensor in tensors)]))

    def tensors(self, labels: Labels) -> list[Tensor]:
        """Each as a value of its own."""
        texts = {number: labels.text(number) for number in np.unique(self.labels).tolist()}
        rows = [tuple(texts[number] for number in row) for row in self.labels.tolist()]
        bounds = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return [Tensor(self.type, tuple(rows[start:end]), self.cells[start:end]) for start, end in bounds]


# Tensors of hits where they stand: what kernels read that need no copy of them, and no labels.


class KeptTensors(Struct, frozen=True, eq=False):
    """Hit i has the subspaces starts[i] to starts[i] + counts[i] of `cells`; none where it has no tensor."""

    type: TensorType
    cells: NDArray[Any]
    """(subspaces, *type.shape). Those of bfloat16 may be the upper halves of floats, as uint16."""
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    is_single: bool = False
    """As of a batch."""

    @classmethod
    def of(cls, batch: TensorBatch) -> KeptTensors:
        return cls(batch.type, batch.cells, np.ascontiguousarray(batch.starts[:-1]), batch.counts, batch.is_single)

    @property
    def vectors(self) -> NDArray[Any]:
        """Each subspace as one row."""
        return _as_rows(self.cells, self.type)


class StoredTensors(Struct, frozen=True, eq=False):
    """The tensors of all documents where they stand, without mapped dimensions: a lid has one subspace, or none."""

    type: TensorType
    cells: NDArray[Any]
    """(subspaces, *type.shape), as of hits."""
    rows: NDArray[np.uint64]
    """By lid: the number of its subspace and how many it has, as `attributes.rows` has them."""

    @property
    def vectors(self) -> NDArray[Any]:
        """Each subspace as one row."""
        return _as_rows(self.cells, self.type)


def _as_rows(cells: NDArray[Any], type_: TensorType) -> NDArray[Any]:
    return np.ascontiguousarray(cells.reshape(len(cells), math.prod(type_.shape)))
