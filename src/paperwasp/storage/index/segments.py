"""Segments: runs of consecutive lids with one field index for each field, and the policy that merges them.

A batch of documents becomes a small segment; segments of one size class are merged when there are FAN_OUT of them side
by side, so that each token is rewritten about log(tokens of the index) / log(FAN_OUT) times and a search sees few
segments. The smaller segments are lists of tokens, inverted when they are searched or merged: while documents stream
in and nobody searches, most of them are merged before any query comes. While somebody searches, all but the smallest
are inverted at once, so that no query waits for that.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.storage.index.tokens import Buffer, Tokens, join_tokens
from paperwasp.text.linguistics import TextProfile

Bitmap: TypeAlias = NDArray[np.uint64]

FAN_OUT = 4
MEMORY_FAN_OUT = 8
"""In memory, where segments are short-lived: rewriting costs more than the few segments more that a search sees."""
SMALLEST_CLASS_TOKENS = 2048
LEAST_INVERTED_TOKENS = 32768
"""Segments of fewer are inverted when they are searched: those there may be take it some milliseconds."""
LEAST_SEARCHED_TOKENS = 4096
"""The same where the segment before was searched: a few of them take a search a millisecond, once."""
LEAST_DOCUMENTS_OF_BITMAPS = 4096
"""Segments of fewer keep no bitmaps of their frequent terms: postings are read as fast."""


Postings: TypeAlias = Buffer | Tokens


class Segment(Struct, frozen=True, eq=False, dict=True):
    """Lids `base`..`base + documents`. `fields` are by number; None where no document has the field."""

    base: int
    documents: int
    fields: tuple[Postings | None, ...]
    tokens: int
    files: tuple[Path | None, ...] = field(default=())
    """The files of the field indexes on disk; empty while they are in memory only."""

    @cached_property
    def field_indexes(self) -> tuple[Buffer | None, ...]:
        """The fields as kernels read them. Any thread."""
        return tuple(field.field_index if isinstance(field, Tokens) else field for field in self.fields)

    def inverted(self) -> Segment:
        """The same segment with all fields inverted. It was not searched yet."""
        return replace(self, fields=self.field_indexes)

    @property
    def was_searched(self) -> bool:
        """True where somebody has asked for its field indexes."""
        return "field_indexes" in self.__dict__

    @cached_property
    def frequent(self) -> _core.FrequentTerms:
        """Keeps the bitmaps of its frequent terms, and what terms are worth, made when they are needed first. Any
        thread."""
        return _core.FrequentTerms(
            self.base,
            self.documents,
            len(self.fields),
            limits.FREQUENT_TERMS_BYTES,
            LEAST_DOCUMENTS_OF_BITMAPS,
            limits.TERM_WORTHS_BYTES,
        )

    @property
    def limit(self) -> int:
        return self.base + self.documents

    @property
    def in_memory(self) -> bool:
        return not self.files

    def has_only(self, numbers: Container[int]) -> bool:
        """Tell whether all of its field indexes are of these fields."""
        return all(field is None or number in numbers for number, field in enumerate(self.fields))

    def only(self, numbers: Container[int]) -> Segment:
        """The same segment with the field indexes of these fields alone."""
        fields = tuple(field if number in numbers else None for number, field in enumerate(self.fields))
        files = tuple(path if number in numbers else None for number, path in enumerate(self.files))
        return replace(self, fields=fields, files=files)

    @cached_property
    def size_bytes(self) -> int:
        return sum([field.nbytes for field in self.fields if field is not None])

    @cached_property
    def size_class(self) -> int:
        size, tokens = 0, max(self.tokens, 1)
        while tokens >= SMALLEST_CLASS_TOKENS:
            tokens //= FAN_OUT
            size += 1
        return size


def due_for_merge(segments: Sequence[Segment], fan_out: int = FAN_OUT) -> tuple[int, int] | None:
    """A run [from, to) of neighbours to be merged: `fan_out` of one size class, and the smaller ones between them."""
    classes = [segment.size_class for segment in segments]
    for size in sorted(set(classes)):
        start = 0
        for is_run, run in groupby(classes, key=size.__ge__):
            length = len(members := list(run))
            if is_run and members.count(size) >= fan_out:
                return start, start + length
            start += length
    return None


def merge_segments(segments: Sequence[Segment], averages: Sequence[float | None], live: Bitmap | None) -> Segment:
    """One segment of several neighbours, with the fields that have a mean length in `averages`, which is by number.

    Postings of documents that are not live are dropped; lids stay as they are.
    """
    base, limit = segments[0].base, segments[-1].limit
    documents = limit - base
    kept = _find_live(base, limit, live)
    tokens = sum(segment.tokens for segment in segments)
    fields: list[Postings | None] = []
    for number, average in enumerate(averages):
        sources = [(p, p.fields[number]) for p in segments if number < len(p.fields)]
        present = [(segment, field) for segment, field in sources if field is not None]
        if not present or average is None:
            fields.append(None)
        elif all(isinstance(field, Tokens) for _, field in present):
            found = join_tokens([_tokens_of(segment, number) for segment in segments], kept, average)
            fields.append(found if tokens < LEAST_INVERTED_TOKENS else found.field_index)
        else:
            mapping = np.concatenate([_mapping(segment, base, kept) for segment, _ in present])
            field_indexes = [field.field_index if isinstance(field, Tokens) else field for _, field in present]
            fields.append(_core.merge(field_indexes, mapping, documents, average))
    return Segment(base, documents, tuple(fields), tokens)


def _tokens_of(segment: Segment, number: int) -> Tokens | int:
    """A field of a segment that is not inverted; the number of documents where none has it."""
    field = segment.fields[number] if number < len(segment.fields) else None
    return field if isinstance(field, Tokens) else segment.documents


def _find_live(base: int, limit: int, live: Bitmap | None) -> NDArray[np.bool_]:
    if live is None:
        return np.ones(limit - base, np.bool_)
    bits = np.unpackbits(live[base // 64 : (limit + 63) // 64].view(np.uint8), bitorder="little")
    start = base % 64
    kept = bits[start : start + limit - base].astype(np.bool_)
    # What the bitmap does not cover yet was just added: it lives.
    return np.concatenate([kept, np.ones(limit - base - len(kept), np.bool_)])


def _mapping(segment: Segment, base: int, kept: NDArray[np.bool_]) -> NDArray[np.uint32]:
    first = segment.base - base
    mapping = np.arange(first, first + segment.documents, dtype=np.uint32)
    mapping[~kept[first : first + segment.documents]] = _core.NO_INDEX
    return mapping


# Fields

FieldKey = tuple[str, str]
"""Document type and field name."""
DEFAULT_PROFILE: Final = TextProfile()


class IndexedField(Struct, frozen=True):
    """One field of one document type, and how its text becomes terms."""

    document_type: str
    name: str
    profile: TextProfile = DEFAULT_PROFILE
    uri: str = ""
    """The part of the URIs in the field that is its text (`linguistics.uri`); empty: its values are no URIs."""

    @property
    def source(self) -> str:
        """The field of the document."""
        return self.name.removesuffix(f".{self.uri}")

    @property
    def key(self) -> FieldKey:
        return self.document_type, self.name


Fields = Mapping[FieldKey, tuple[int, IndexedField]]
"""Number and settings of each indexed field."""
