# The compiled kernels. What each takes and gives is written in its C++ file, and typed where Python calls it.
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_U8 = NDArray[np.uint8]
_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_F64 = NDArray[np.float64]

def __getattr__(name: str) -> Any: ...

# clock.cpp
class OutOfTime(Exception): ...

def end_work_at(monotonic_ns: int) -> None: ...
def check_time() -> None: ...

# lexicon.cpp
NO_TERM: int

class Lexicon:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def tokenize(
        self,
        texts: list[str],
        owners: _U32,
        documents: int,
        cased: bool = False,
        whole: bool = False,
        longest: int = 1000,
    ) -> tuple[_U32, _U32, _U64, _U32]: ...
    def unknown(self, stemmer: int, surfaces: _U32) -> list[int]: ...
    def learn(self, stemmer: int, surfaces: Sequence[int], terms: Sequence[str]) -> None: ...
    def to_terms(self, stemmer: int, surfaces: _U32) -> None: ...
    def find(self, word: str) -> int: ...
    def text(self, id: int) -> str: ...
    def words_from(self, first: int) -> tuple[bytes, _U32]: ...
    def stemmers(self) -> list[int]: ...
    def stems_from(self, stemmer: int, first: int) -> _U32: ...
    def add_words(self, words: bytes, sizes: _U32) -> None: ...
    def set_stems(self, stemmer: int, first: int, terms: _U32) -> None: ...
    def memory_bytes(self) -> int: ...

# word_set.cpp
class WordSet:
    def __init__(self, words: list[str]) -> None: ...
    def texts_with(self, texts: list[str], least: int, characters: int) -> list[int]: ...

# segment_writer.cpp
NO_INDEX: int

def invert(
    terms: _U32,
    positions: _U32,
    offsets: _U64,
    average_length: float,
    element_starts: _U32 | None = None,
    element_ends: _U32 | None = None,
    element_weights: NDArray[np.int32] | None = None,
) -> _U8: ...
def merge(segments: list[_U8], map: _U32, documents: int, average_length: float) -> _U8: ...
def describe(segment: _U8) -> dict[str, Any]: ...

# segment_check.cpp
def check_segment(segment: _U8) -> None: ...

# term_bits.cpp
class FrequentTerms:
    def __init__(self, base: int, documents: int, fields: int, most_bytes: int, least_documents: int) -> None: ...
    @staticmethod
    def bytes_kept() -> int: ...

# reader.cpp
class Reader:
    def __init__(
        self, parts: Sequence[tuple[int, int, list[_U8 | None], FrequentTerms | None]], fields: int
    ) -> None: ...
    @property
    def limit(self) -> int: ...

def document_frequency(reader: Reader, field: int, term: int) -> int: ...
def count_accepted(reader: Reader, field: int, term: int, accept: _U64) -> int: ...
def field_statistics(reader: Reader, field: int) -> tuple[int, int]: ...
def unaccepted_statistics(reader: Reader, field: int, accept: _U64) -> tuple[int, int, int]: ...
def element_count(reader: Reader, field: int) -> int: ...
def match(reader: Reader, field: int, term: int, bitmap: _U64) -> None: ...
def occurrences(reader: Reader, field: int, term: int, lids: _U32, to: NDArray[np.int32]) -> None: ...
def add_bm25(
    occurrences: NDArray[np.int32],
    lengths: NDArray[np.int32],
    weight: float,
    k1: float,
    b: float,
    average_length: float,
    scores: NDArray[np.float64],
) -> None: ...
def positions(reader: Reader, field: int, term: int, lids: _U32) -> tuple[_U32, _U32]: ...
def field_lengths(reader: Reader, field: int, lids: _U32, to: NDArray[np.int32]) -> None: ...
def locate(
    reader: Reader, field: int, lids: _U32, offsets: _U32, positions: _U32
) -> tuple[_U32, _U32, _U32, NDArray[np.int32]]: ...
def phrase(reader: Reader, field: int, terms: _U32, accept: _U64 | None) -> tuple[_U32, _U32, _U32]: ...
def bitmap_lids(bitmap: _U64, limit: int) -> _U32: ...
def bitmap_count(a: _U64, b: _U64) -> int: ...

# positions.cpp
def merge_positions(offsets: list[_U32], positions: list[_U32]) -> tuple[_U32, _U32]: ...
def follow(offsets: list[_U32], positions: list[_U32]) -> tuple[_U32, _U32]: ...
def near(
    offsets: list[_U32],
    positions: list[_U32],
    places: list[tuple[_U32, _U32, _U32]],
    wanted: int,
    ordered: bool,
    distance: int,
    exclusion: int,
    gap: int,
) -> tuple[list[_U8], _U32, _U32]: ...

# top_k.cpp
def best(
    reader: Reader,
    terms: list[tuple[int, int, float, float, float, float]],
    found: list[tuple[int, _U32, _U32]],
    k: int,
    all: bool,
    count: bool,
    accept: _U64 | None,
) -> tuple[_U32, _F64, int, int]: ...

# sorting.cpp
def first_rows(values: NDArray[Any], bitmap: _U64, wanted: int, descending: bool) -> _U32: ...

# predicate.cpp
def evaluate_predicates(programs: _U32, rows: _U64, masks: _U64, results: _U64) -> None: ...

# json_scan.cpp
def scan_json(text: bytes, most_values: int, most_depth: int, piece_bytes: int) -> tuple[int, int, int, list[int]]: ...

# members.cpp
def pick_members(objects: list[bytes], names: list[bytes], required: int) -> list[bytes | None]: ...

# lz4.cpp
def lz4_compress(data: bytes) -> bytes: ...
def lz4_decompress(block: bytes, size: int) -> bytes | None: ...

# row_files.cpp
class RowFiles:
    def __init__(self, files: list[_U8]) -> None: ...
    def get(self, lid: int) -> tuple[bytes, bytes] | None: ...
    def lengths(self, first: int, end: int, live: _U64) -> _U32: ...
    def records(self, first: int, end: int, live: _U64) -> bytes: ...
    def is_whole(self) -> bool: ...

def pack_rows(documents: Sequence[tuple[bytes, bytes] | None]) -> tuple[_U32, bytes]: ...

# page.cpp
class PageForm:
    def __init__(
        self,
        keys: list[bytes],
        as_stored: bool,
        required: int,
        shows_empty: int,
        source: bytes,
        type: bytes,
        id_prefix: bytes,
    ) -> None: ...

def page(
    rows: RowFiles, lids: _U32, relevances: bytes, changed: _U8, first_lid: int, gids: _U8, form: PageForm
) -> list[bytes | None]: ...

# vocabulary.cpp
class WordCharacters:
    def __init__(self, ranges: _U32) -> None: ...

class Vocabulary:
    def __init__(
        self,
        forms_of: Callable[[list[str]], Sequence[tuple[str, ...]]],
        folds: bool,
        characters: WordCharacters,
        most_words: int,
    ) -> None: ...
    def __len__(self) -> int: ...

# query_parts.cpp
class QueryParts:
    def __init__(
        self,
        parts: Sequence[tuple[int, Sequence[Sequence[tuple[Sequence[str], bool]]]]],
        long_term: int,
        further: int,
        firsts: str | None,
    ) -> None: ...

# text_marker.cpp
class TextMarker:
    def __init__(
        self,
        parts: QueryParts,
        vocabulary: Vocabulary,
        tags: tuple[str, str, str],
        teaser: tuple[int, int, int, bool, int, int, float, int, bool] | None,
    ) -> None: ...

def mark(text: str, marker: TextMarker) -> str | None: ...

# marked_members.cpp
MemberMarker: TypeAlias = tuple[bytes, TextMarker, WordSet | None]

def mark_members(objects: Sequence[bytes | None], members: Sequence[MemberMarker]) -> list[bytes | None]: ...

# siphash.cpp
def siphash(data: bytes) -> int: ...

# xxh3.cpp
def xxh3(data: bytes) -> int: ...

# elements.cpp
def row_elements(rows: _U64, wanted: _U64, elements: int) -> tuple[_U32, _U32]: ...
def join_elements(how: int, a_offsets: _U32, a: _U32, b_offsets: _U32, b: _U32) -> tuple[_U32, _U32]: ...

# field_match.cpp
def field_match(
    offsets: list[_U32],
    positions: list[_U32],
    matched: _U8,
    lengths: NDArray[np.int32],
    terms: _U32,
    shifts: _U32,
    weights: _F64,
    significances: _F64,
    connectedness: _F64,
    total_weight: float,
    total_significance: float,
    table: _F64,
    importances: _F64,
    max_alternatives: int,
    max_occurrences: int,
    results: _F64,
) -> None: ...

# forest.cpp
def forest_sum(
    nodes: _U64,
    values: _F64,
    roots: _U32,
    depths: NDArray[np.int32],
    columns: NDArray[np.int32],
    members: _F64,
    features: list[_F64],
    sums: _F64,
) -> None: ...

# element_match.cpp
def element_match(
    places: list[tuple[_U32, _U32, _U32, _U32, NDArray[np.int32]]], weights: _F64, hits: int, flow: bool
) -> tuple[_U32, _U32, _F64]: ...

# term_order.cpp
def edit_distance(
    offsets: list[_U32],
    positions: list[_U32],
    lengths: NDArray[np.int32],
    deletion: float,
    insertion: float,
    replacement: float,
    results: _F64,
) -> None: ...
def order_matches(
    offsets: list[_U32], positions: list[_U32], lengths: NDArray[np.int32], prefix: int, results: _F64
) -> None: ...
def reverse_proximity(
    a_offsets: _U32,
    a_positions: _U32,
    b_offsets: _U32,
    b_positions: _U32,
    hits: int,
    least: float,
    most: float,
    results: _F64,
) -> None: ...
