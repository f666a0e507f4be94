"""The text index of a content node: what was fed is searchable at once, and is merged and written behind.

One writer thread adds batches and takes snapshots; `flush` may run beside it in another thread. A snapshot never
changes: merging puts a new segment in the place of its sources, in the next snapshot.

A field has a number, and that is all a posting says of it. When a field is not indexed any more its number is given
up: those postings are not read again, merging and writing leave them out, and the number is given to another field when
no segment has any. So a field that is indexed again begins empty, under whatever number. A field that is indexed
otherwise than before keeps its number and its postings.

Format on disk: docs/internals/formats/index.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from paperwasp.base.env import processors, sync_directory
from paperwasp.base.threads import ThreadPool
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Valued
from paperwasp.storage.index import files
from paperwasp.storage.index.files import WordRun, WordsEnd, restore_words, words_since, write_words
from paperwasp.storage.index.segments import (
    LEAST_INVERTED_TOKENS,
    LEAST_SEARCHED_TOKENS,
    MEMORY_FAN_OUT,
    Bitmap,
    FieldKey,
    Fields,
    IndexedField,
    Segment,
    due_for_merge,
    merge_segments,
)
from paperwasp.storage.index.snapshot import IndexSnapshot
from paperwasp.storage.index.tokens import Plain, Text, Texts, Tokens, tokenize, tokenize_plain, tokenize_puts
from paperwasp.text.linguistics import TextProfile
from paperwasp.text.linguistics.uri import uri_parts

INLINE_MERGE_TOKENS = 1_000_000
"""Merges of more tokens than this are left to the background."""


IndexState = dict[str, Any]
"""The state that `load` needs: file names, sizes and checksums. JSON."""


class TextIndex:
    """The postings of all indexed fields of a content node, by lid."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lexicon = _core.Lexicon()
        self._saved_words = WordsEnd()
        """The end of the lexicon in the state that was flushed last."""
        self._fields: dict[FieldKey, tuple[int, IndexedField]] = {}
        self._numbers = 0
        self._segments: tuple[Segment, ...] = ()
        self._totals: dict[int, tuple[int, int]] = {}
        """By field number: documents that have it, tokens in it."""
        self._lock = threading.Lock()
        self._reserved_limit = 0
        """Lids below this are being merged or written in the background: the writer leaves their segments alone."""
        self._saved_states: list[IndexState] = []
        """The one that counts, and the one that was flushed last, where that is another: the checkpoint that it was
        written for may have failed."""
        self.live: Bitmap | None = None
        """Which documents live, as last published; merging drops the others' postings. Set by the owner."""

    # ------------------------------------------------------------------------------------------------------- writing

    def configure(self, fields: Iterable[IndexedField], changed: Iterable[FieldKey] = ()) -> None:
        """Index these fields from now on, and no others. Those that were keep their postings, unless `changed`."""
        indexed_fields = {indexed.key: indexed for indexed in fields}
        kept = {key: self._fields[key][0] for key in indexed_fields if key in self._fields and key not in set(changed)}
        free = self._free_numbers(kept.values())
        known = {key: (kept.get(key, -1), indexed) for key, indexed in indexed_fields.items()}
        for key, (number, indexed) in known.items():
            if number < 0:
                known[key] = (next(free), indexed)
                self._totals.pop(known[key][0], None)
        self._fields = known
        self._numbers = max(self._numbers, *(number + 1 for number, _ in known.values()), 0)

    def _free_numbers(self, kept: Iterable[int]) -> Iterator[int]:
        """Return the numbers that no field has, and no segment any postings of."""
        used = set(kept)
        for segment in self._segments:
            used.update(number for number, field in enumerate(segment.fields) if field is not None)
        return (number for number in count() if number not in used)

    def add_batch(
        self,
        first_lid: int,
        document_type: str,
        documents: Sequence[Valued],
        languages: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Add documents with lids `first_lid`.. of one type. Lids rise from batch to batch.

        Their values of indexed fields are `Text`. `languages` has for each document the languages of its fields, as
        `set_language` gave them; those of the others are detected.
        """

        def tokens(number: int, indexed: IndexedField) -> Tokens | None:
            source = indexed.source
            tags = [of_fields.get(source, "") for of_fields in languages] if languages is not None else None
            return self._tokens(indexed, number, [document.get(source) for document in documents], tags)

        self._add(first_lid, document_type, len(documents), tokens)

    def add_puts(self, first_lid: int, document_type: str, puts: list[PlainChange]) -> None:
        """Add plain puts, as `add_batch` does."""
        documents: Sequence[Valued] = puts

        def tokens(number: int, indexed: IndexedField) -> Tokens | None:
            plain = None if indexed.uri else tokenize_puts(self._lexicon, indexed.profile, puts, indexed.source)
            if plain is None:
                return self._tokens(indexed, number, [document.get(indexed.source) for document in documents], None)
            return self._counted(number, plain)

        self._add(first_lid, document_type, len(puts), tokens)

    def _add(
        self,
        first_lid: int,
        document_type: str,
        documents: int,
        tokens_of: Callable[[int, IndexedField], Tokens | None],
    ) -> None:
        """Add a segment of documents, of which a function gives the tokens of each field, by its number."""
        fields: list[Tokens | None] = [None] * self._numbers
        count = 0
        for number, indexed in self._fields.values():
            if indexed.document_type == document_type:
                fields[number] = tokens = tokens_of(number, indexed)
                count += len(tokens.terms) if tokens is not None else 0
        segment = Segment(first_lid, documents, tuple(fields), count)
        is_searched = bool(self._segments) and self._segments[-1].was_searched
        if count >= (LEAST_SEARCHED_TOKENS if is_searched else LEAST_INVERTED_TOKENS):
            segment = segment.inverted()
        with self._lock:
            self._segments = (*self._segments, segment)
        self._merge_small()

    def _tokens(
        self, indexed: IndexedField, number: int, values: list[Text | None], languages: Sequence[str] | None
    ) -> Tokens | None:
        plain = None
        if languages is None and not indexed.uri:
            plain = tokenize_plain(self._lexicon, indexed.profile, values)
        if plain is not None:
            return self._counted(number, plain)
        found = Texts(values)
        texts = [uri_parts(text)[indexed.uri] for text in found.texts] if indexed.uri else found.texts
        tags = [languages[owner] for owner in found.owners] if languages is not None else None
        terms, positions, offsets, ends = tokenize(
            self._lexicon, indexed.profile, texts, found.owners, len(values), tags
        )
        if len(terms) == 0:
            return None
        filled = int(np.count_nonzero(np.diff(offsets)))
        return Tokens(terms, positions, offsets, self._add_tokens(number, filled, len(terms)), found.elements(ends))

    def _counted(self, number: int, plain: Plain) -> Tokens | None:
        terms, positions, offsets, filled = plain
        if len(terms) == 0:
            return None
        return Tokens(terms, positions, offsets, self._add_tokens(number, filled, len(terms)))

    def _add_tokens(self, number: int, filled: int, count: int) -> float:
        """Count documents that have a field, and their tokens. Return its mean length then."""
        documents, tokens = self._totals.get(number, (0, 0))
        self._totals[number] = documents, tokens = documents + filled, tokens + count
        return tokens / documents if documents else 1.0

    def _merge_small(self) -> None:
        """Merge the segments that are due and small, so that a search sees few."""
        while True:
            with self._lock:
                candidates = [segment for segment in self._segments if segment.base >= self._reserved_limit]
            due = due_for_merge(candidates, MEMORY_FAN_OUT)
            if due is None or sum([segment.tokens for segment in candidates[slice(*due)]]) > INLINE_MERGE_TOKENS:
                return
            sources = candidates[slice(*due)]
            self._replace(sources, self._merge(sources, self._fields, self._numbers))

    def _merge(self, sources: Sequence[Segment], fields: Fields, numbers: int) -> Segment:
        averages: list[float | None] = [None] * numbers
        for number, _ in fields.values():  # over everything ever added, as bounds are computed
            documents, tokens = self._totals.get(number, (0, 0))
            averages[number] = tokens / documents if documents else 1.0
        return merge_segments(sources, averages, self.live)

    def _replace(self, sources: Sequence[Segment], segment: Segment) -> bool:
        """Put `segment` where `sources` are; do nothing if they are not there any more."""
        with self._lock:
            try:
                at = self._segments.index(sources[0])
            except ValueError:
                return False
            if self._segments[at : at + len(sources)] != tuple(sources):
                return False
            self._segments = (*self._segments[:at], segment, *self._segments[at + len(sources) :])
            return True

    # ------------------------------------------------------------------------------------------------------- reading

    def snapshot(self) -> IndexSnapshot:
        """Return a view of all documents added so far."""
        return IndexSnapshot(self._segments, self._fields, self._lexicon, self._numbers)

    def memory_bytes(self) -> int:
        """Count the bytes of field indexes that are not on disk yet."""
        return sum([segment.size_bytes for segment in self._segments if not segment.files])

    # ---------------------------------------------------------------------------------------------- disk, background

    def freeze(self) -> FrozenIndex:
        """Take all documents added so far, for `flush` to write while the writer goes on. Called by the writer."""
        with self._lock:
            self._reserved_limit = self._segments[-1].limit if self._segments else 0
        return FrozenIndex(self._segments, self._fields, self._numbers, *words_since(self._lexicon, self._saved_words))

    def flush(self, frozen: FrozenIndex) -> IndexState:
        """Write a frozen index, synced; return the state that `load` needs.

        Segments in memory are merged into one file for each field; segments on disk are merged when enough of them are
        of one size. Files that neither this state names nor the one that counts (`keep_last`) are deleted.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            segments = self._fuse(frozen)
            saved_words = self._saved_states[-1]["words"] if self._saved_states else []
            state: IndexState = {
                "fields": _describe_fields(frozen),
                "words": write_words(self._directory, saved_words, frozen.words),
                "segments": [files.describe_segment(segment) for segment in segments],
            }
            sync_directory(self._directory)
        finally:
            with self._lock:
                self._reserved_limit = 0
        self._saved_states = [*self._saved_states[:1], state]
        self._saved_words = frozen.words_end
        files.delete_unused(self._directory, self._saved_states)
        return state

    def keep_last(self) -> None:
        """Make the state that was flushed last count: files that only earlier states name go with the next flush."""
        self._saved_states = self._saved_states[-1:]

    def _fuse(self, frozen: FrozenIndex) -> list[Segment]:
        """Return the segments as they are written: on disk, few, and without fields that are indexed no more."""
        segments = list(frozen.segments)
        numbers = {number for number, _ in frozen.fields.values()}
        for place, segment in enumerate(segments):
            if not segment.has_only(numbers):
                segments[place] = segment.only(numbers)
                self._replace([segment], segments[place])
        memory = next((i for i, segment in enumerate(segments) if segment.in_memory), len(segments))
        if memory < len(segments):
            self._write_merged(segments, memory, len(segments), frozen)
        while (due := due_for_merge(segments)) is not None:
            self._write_merged(segments, *due, frozen)
        return segments

    def _write_merged(self, segments: list[Segment], start: int, end: int, frozen: FrozenIndex) -> None:
        """Merge segments[start:end] into one on disk, there and in the index."""
        sources = segments[start:end]
        merged = sources[0] if len(sources) == 1 else self._merge(sources, frozen.fields, frozen.numbers)
        written = files.write_segment(self._directory, merged)
        self._replace(sources, written)
        segments[start:end] = [written]

    def load(self, state: IndexState) -> None:
        """Restore a flushed state; raises Corruption that names the file where one is damaged.

        Files are read and checked by as many threads as there are processors, without the interpreter's lock.
        """
        state = _of_this_form(state)
        with ThreadPool("index-check", processors()) as pool:
            segments = files.open_segments(self._directory, state["segments"], pool)
            paths = [files.check_file(self._directory, file) for file in state["words"]]
            self._saved_words = restore_words(self._lexicon, paths)
            self._segments = segments()
        described = enumerate(state["fields"])
        fields = ((number, _read_field(field)) for number, field in described if field is not None)
        self._fields = {field.key: (number, field) for number, field in fields}
        self._numbers = len(state["fields"])
        self._totals = {number: files.total_tokens(self._segments, number) for number, _ in self._fields.values()}
        self._saved_states = [state]

    def close(self) -> None:
        """Forget everything in memory."""
        self._segments = ()


class FrozenIndex(Struct, frozen=True):
    """The index at one moment, for a flush to write."""

    segments: tuple[Segment, ...]
    fields: Fields
    numbers: int
    words: WordRun
    """The words that the state flushed last has not."""
    words_end: WordsEnd


def _of_this_form(state: IndexState) -> IndexState:
    """Return a state with the present names: segments were `parts`, and one file had all words."""
    earlier = {"parts", "lexicon"}
    if earlier.isdisjoint(state):
        return state
    named = {name: value for name, value in state.items() if name not in earlier}
    named.setdefault("segments", state.get("parts"))
    named.setdefault("words", [state.get("lexicon")])
    return named


def _describe_fields(frozen: FrozenIndex) -> list[dict[str, Any] | None]:
    """Describe the fields by number; None for one that no field has."""
    described: list[dict[str, Any] | None] = [None] * frozen.numbers
    for number, indexed in frozen.fields.values():
        described[number] = _describe_field(indexed)
    return described


def _describe_field(indexed: IndexedField) -> dict[str, Any]:
    return {
        "document_type": indexed.document_type,
        "name": indexed.name,
        **asdict(indexed.profile),
        **({"uri": indexed.uri} if indexed.uri else {}),
    }


def _read_field(described: Mapping[str, Any]) -> IndexedField:
    # One that is absent did not exist when the index was written: its default is how texts were read then.
    settings = {key: described[key] for key in TextProfile.__struct_fields__ if key in described}
    profile = TextProfile(**settings)
    return IndexedField(described["document_type"], described["name"], profile, described.get("uri", ""))
