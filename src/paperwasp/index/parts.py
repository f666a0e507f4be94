"""Parts: runs of consecutive lids with one segment for each field, and the policy that merges them.

A batch of documents becomes a small part; parts of one size class are merged when there are FAN_OUT of them side by
side, so that each token is rewritten about log(tokens of the index) / log(FAN_OUT) times and a search sees few parts.
The smallest parts are lists of tokens, inverted when they are searched or merged: while documents stream in, most of
them are merged before anybody asks.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core

Buffer: TypeAlias = NDArray[np.uint8]
Bitmap: TypeAlias = NDArray[np.uint64]

FAN_OUT = 4
MEMORY_FAN_OUT = 8
"""In memory, where parts are short-lived: rewriting costs more than the few parts more that a search sees."""
SMALLEST_CLASS_TOKENS = 2048
LEAST_INVERTED_TOKENS = 4096
"""Parts of fewer are inverted when they are searched: a few of them take a search a millisecond, once."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """One field of a run of documents, not inverted: document d has tokens offsets[d]..offsets[d + 1]."""

    terms: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    average: float
    """The mean length of the field, for bounds."""

    @cached_property
    def segment(self) -> Buffer:
        return _core.invert(self.terms, self.positions, self.offsets, self.average)

    @property
    def nbytes(self) -> int:
        return self.terms.nbytes + self.positions.nbytes + self.offsets.nbytes


Postings: TypeAlias = Buffer | Tokens


@dataclass(frozen=True, eq=False)
class Part:
    """Lids `base`..`base + documents`. `fields` are by number; None where no document has the field."""

    base: int
    documents: int
    fields: tuple[Postings | None, ...]
    tokens: int
    files: tuple[Path | None, ...] = field(default=())
    """Where the segments are on disk; empty while they are in memory only."""

    @cached_property
    def segments(self) -> tuple[Buffer | None, ...]:
        """The fields as kernels read them. Any thread."""
        return tuple(field.segment if isinstance(field, Tokens) else field for field in self.fields)

    @property
    def limit(self) -> int:
        return self.base + self.documents

    @property
    def in_memory(self) -> bool:
        return not self.files

    def has_only(self, numbers: Container[int]) -> bool:
        """Whether all of its segments are of these fields."""
        return all(field is None or number in numbers for number, field in enumerate(self.fields))

    def only(self, numbers: Container[int]) -> Part:
        """The same part with the segments of these fields alone."""
        fields = tuple(field if number in numbers else None for number, field in enumerate(self.fields))
        files = tuple(path if number in numbers else None for number, path in enumerate(self.files))
        return replace(self, fields=fields, files=files)

    @cached_property
    def size_bytes(self) -> int:
        return sum(field.nbytes for field in self.fields if field is not None)

    @cached_property
    def size_class(self) -> int:
        size, tokens = 0, max(self.tokens, 1)
        while tokens >= SMALLEST_CLASS_TOKENS:
            tokens //= FAN_OUT
            size += 1
        return size


def due_for_merge(parts: Sequence[Part], fan_out: int = FAN_OUT) -> tuple[int, int] | None:
    """A run [from, to) of neighbours to be merged: `fan_out` of one size class, and the smaller ones between them."""
    classes = [part.size_class for part in parts]
    for size in sorted(set(classes)):
        start = 0
        for is_run, run in groupby(classes, key=size.__ge__):
            length = len(members := list(run))
            if is_run and members.count(size) >= fan_out:
                return start, start + length
            start += length
    return None


def merge_parts(parts: Sequence[Part], averages: Sequence[float | None], live: Bitmap | None) -> Part:
    """One part of several neighbours, with the fields that have a mean length in `averages`, which is by number.

    Postings of documents that are not live are dropped; lids stay as they are.
    """
    base, limit = parts[0].base, parts[-1].limit
    documents = limit - base
    kept = _kept(base, limit, live)
    tokens = sum(part.tokens for part in parts)
    fields: list[Postings | None] = []
    for number, average in enumerate(averages):
        sources = [(p, p.fields[number]) for p in parts if number < len(p.fields)]
        present = [(part, field) for part, field in sources if field is not None]
        if not present or average is None:
            fields.append(None)
        elif all(isinstance(field, Tokens) for _, field in present):
            joined = _joined(parts, number, kept, average)
            fields.append(joined if tokens < LEAST_INVERTED_TOKENS else joined.segment)
        else:
            mapping = np.concatenate([_mapping(part, base, kept) for part, _ in present])
            segments = [field.segment if isinstance(field, Tokens) else field for _, field in present]
            fields.append(_core.merge(segments, mapping, documents, average))
    return Part(base, documents, tuple(fields), tokens)


def _joined(parts: Sequence[Part], number: int, kept: NDArray[np.bool_], average: float) -> Tokens:
    """The tokens of neighbours, one after another, without those of documents that are not kept."""
    lengths, terms, positions = [], [], []
    for part in parts:
        field = part.fields[number] if number < len(part.fields) else None
        if isinstance(field, Tokens):
            lengths.append(np.diff(field.offsets))
            terms.append(field.terms)
            positions.append(field.positions)
        else:
            lengths.append(np.zeros(part.documents, np.uint64))
    counts, all_terms, all_positions = np.concatenate(lengths), np.concatenate(terms), np.concatenate(positions)
    if not kept.all():
        of_kept = np.repeat(kept, counts.astype(np.int64))
        counts, all_terms, all_positions = counts * kept, all_terms[of_kept], all_positions[of_kept]
    offsets = np.zeros(len(counts) + 1, np.uint64)
    np.cumsum(counts, out=offsets[1:])
    return Tokens(all_terms, all_positions, offsets, average)


def _kept(base: int, limit: int, live: Bitmap | None) -> NDArray[np.bool_]:
    if live is None:
        return np.ones(limit - base, np.bool_)
    bits = np.unpackbits(live[base // 64 : (limit + 63) // 64].view(np.uint8), bitorder="little")
    start = base % 64
    kept = bits[start : start + limit - base].astype(np.bool_)
    # What the bitmap does not cover yet was just added: it lives.
    return np.concatenate([kept, np.ones(limit - base - len(kept), np.bool_)])


def _mapping(part: Part, base: int, kept: NDArray[np.bool_]) -> NDArray[np.uint32]:
    first = part.base - base
    mapping = np.arange(first, first + part.documents, dtype=np.uint32)
    mapping[~kept[first : first + part.documents]] = _core.NO_INDEX
    return mapping
