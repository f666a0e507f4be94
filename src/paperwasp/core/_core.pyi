# The compiled kernels. What each takes and gives is written in its C++ file, and typed where Python calls it.
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypedDict, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.http.http2 import Event as _Http2Event
from paperwasp.core.http.http2_client import ClientEvent as _Http2ClientEvent
from paperwasp.document.types import DocumentType

_U8 = NDArray[np.uint8]
_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_F64 = NDArray[np.float64]

_Number = TypeVar("_Number", np.int8, np.int32, np.int64, np.uint32, np.float32, np.float64)
_Signed = TypeVar("_Signed", np.int8, np.int32, np.int64, np.float32, np.float64)
_Float = TypeVar("_Float", np.float32, np.float64)
_Token = TypeVar("_Token")
_Form = TypeVar("_Form")
_Line = TypeVar("_Line")
_Reply = TypeVar("_Reply")
_Sum = TypeVar("_Sum", np.int64, np.float64)
_NarrowCells = NDArray[np.float32] | NDArray[np.int8] | NDArray[np.uint16]
# A cell of 16 bits is a bfloat16.

# clock.cpp
class OutOfTime(Exception): ...

def end_work_at(monotonic_ns: int) -> None: ...
def check_time() -> None: ...

# unlocked.cpp
def count_unlocked(is_counting: bool) -> None: ...
def unlocked_ns() -> int: ...

# object_memory.cpp
def begin_outside_arenas() -> None: ...
def end_outside_arenas() -> None: ...

# siphash.cpp
def siphash(data: bytes) -> int: ...

# xxh3.cpp
def xxh3(data: bytes) -> int: ...

# documents/json_scan.cpp
def scan_json(text: bytes, most_values: int, most_depth: int, piece_bytes: int) -> tuple[int, int, int, list[int]]: ...

# documents/list_numbers.cpp
def list_numbers(values: list[object], count: int) -> _F64 | None: ...

# documents/repeated_names.cpp
def repeats_names(text: bytes) -> bool: ...

# documents/members.cpp
def pick_members(objects: list[bytes], names: list[bytes], required: int) -> list[bytes | None]: ...

# documents/operation_records.cpp
def read_as_of(batch: Sequence[tuple[object, _Reply, int]]) -> list[DocumentType] | None: ...
def in_order_of_log(
    batch: Sequence[tuple[object, _Reply, int]], first_us: int, partitions: int
) -> tuple[list[PlainChange], list[_Reply]]: ...
def operation_records(entries: list[object], version: int, partitions: int) -> list[tuple[int, bytes]]: ...

# documents/log_records.cpp
def log_records(
    magic: bytes, records: list[tuple[int, bytes, int]], sequences: list[int], time_us: int
) -> tuple[bytes, list[int]]: ...

# documents/plain_change.cpp
_PlainValue: TypeAlias = str | float | list[str] | _F64

class PlainChange:
    @property
    def id(self) -> str: ...
    @property
    def gid(self) -> bytes: ...
    @property
    def document_type(self) -> str: ...
    @property
    def read_as(self) -> DocumentType: ...
    @property
    def is_update(self) -> bool: ...
    timestamp_us: int
    @property
    def body(self) -> bytes: ...
    @property
    def body_bytes(self) -> int: ...
    @property
    def fields(self) -> dict[str, _PlainValue]: ...
    def get(self, name: str) -> _PlainValue | None: ...

def rows_of(
    puts: list[PlainChange], first_lid: int, form: int
) -> tuple[bytes, _U64, _U32, list[tuple[bytes, bytes]]]: ...

# documents/plain_columns.cpp
def alike_from(entries: Sequence[object], first: int) -> list[PlainChange]: ...
def gids_of(changes: list[PlainChange]) -> bytes: ...
def set_in_place(
    updates: list[PlainChange],
    lids: _U32,
    columns: list[tuple[str, NDArray[np.generic]]],
    changed: _U8,
    timestamps: _U64,
) -> int: ...
def put_numbers(puts: list[PlainChange], name: str, rows: NDArray[np.generic], first: int) -> None: ...

# documents/plain_fields.cpp
class PlainFields:
    def __init__(self, document_type: DocumentType, fields: list[tuple[str, int, int, int, str]]) -> None: ...
    def put(self, body: bytes) -> tuple[dict[str, _PlainValue], bytes] | None: ...
    def assigned(self, body: bytes) -> tuple[dict[str, _PlainValue], bytes] | None: ...
    def change(
        self, start: str, name: str, body: bytes, is_update: bool
    ) -> PlainChange | tuple[dict[str, _PlainValue], bytes] | None: ...
    def changes(
        self,
        start: str,
        names: list[str],
        bodies: list[bytes],
        is_update: bool,
        most_id_bytes: int,
        most_body_bytes: int,
    ) -> list[PlainChange]: ...

# documents/document_answers.cpp
def document_answers(path_start: str, id_start: str, names: list[str]) -> list[bytes]: ...

# documents/lz4.cpp
def lz4_compress(data: bytes) -> bytes: ...
def lz4_decompress(block: bytes, size: int) -> bytes | None: ...

# documents/row_files.cpp
class RowFiles:
    def __init__(self, files: list[_U8]) -> None: ...
    def get(self, lid: int) -> tuple[bytes, bytes] | None: ...
    def lengths(self, first: int, end: int, live: _U64) -> _U32: ...
    def records(self, first: int, end: int, live: _U64) -> bytes: ...
    def is_whole(self) -> bool: ...

def pack_rows(documents: Sequence[tuple[bytes, bytes] | PlainChange | None]) -> tuple[_U32, bytes]: ...

# documents/page.cpp
class PageForm:
    def __init__(
        self,
        keys: list[bytes],
        as_stored: bool,
        required: int,
        shows_empty: int,
        unset: list[bytes],
        source: bytes,
        type: bytes,
        id_prefix: bytes,
    ) -> None: ...

def page(
    rows: RowFiles, lids: _U32, relevances: bytes, changed: _U8, first_lid: int, gids: _U8, form: PageForm
) -> list[bytes | None]: ...
def value_page(values: list[bytes], relevances: bytes, gids: _U8, form: PageForm) -> list[bytes | None]: ...

# documents/gid_map.cpp
def gid_map_find(keys: _U8, lids: _U32, gids: _U8, found: _U32) -> None: ...
def gid_map_insert(keys: _U8, lids: _U32, gids: _U8, new_lids: _U32, previous: _U32) -> int: ...
def gid_map_remove(keys: _U8, lids: _U32, gids: _U8, previous: _U32) -> int: ...

# documents/global_id.cpp
def global_id(location: str, id: str) -> bytes: ...

# text/word_set.cpp
class WordSet:
    def __init__(self, words: list[str]) -> None: ...
    def texts_with(self, texts: list[str], least: int, characters: int) -> list[int]: ...
    def puts_with(self, puts: list[PlainChange], name: str, least: int, characters: int) -> list[int] | None: ...

# text/vocabulary.cpp
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

# text/query_parts.cpp
class QueryParts:
    def __init__(
        self,
        parts: Sequence[tuple[int, Sequence[Sequence[tuple[Sequence[str], bool]]]]],
        long_term: int,
        further: int,
        firsts: str | None,
    ) -> None: ...

# text/text_marker.cpp
class TextMarker:
    def __init__(
        self,
        parts: QueryParts,
        vocabulary: Vocabulary,
        tags: tuple[str, str, str],
        teaser: tuple[int, int, int, bool, int, int, float, int, bool] | None,
    ) -> None: ...

def mark(text: str, marker: TextMarker) -> str | None: ...

# text/marked_members.cpp
MemberMarker: TypeAlias = tuple[bytes, TextMarker, WordSet | None]

def mark_members(objects: Sequence[bytes | None], members: Sequence[MemberMarker]) -> list[bytes | None]: ...

# index/lexicon.cpp
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
    def tokenize_plain(
        self, values: Sequence[object], most: int, longest: int
    ) -> tuple[_U32, _U32, _U64, int] | None: ...
    def tokenize_puts(
        self, puts: list[PlainChange], name: str, most: int, longest: int
    ) -> tuple[_U32, _U32, _U64, int] | None: ...
    def unknown(self, stemmer: int, surfaces: _U32) -> list[int]: ...
    def learn(self, stemmer: int, surfaces: Sequence[int], terms: Sequence[str]) -> None: ...
    def to_terms(self, stemmer: int, surfaces: _U32) -> None: ...
    def find(self, word: str) -> int: ...
    def text(self, id: int) -> str: ...
    def words_from(self, first: int) -> tuple[bytes, _U32]: ...
    def stemmers(self) -> list[int]: ...
    def stems_from(self, stemmer: int, first: int) -> _U32: ...
    def late_stems(self, from_place: int) -> tuple[_U32, _U32, _U32, int]: ...
    def add_words(self, words: bytes, sizes: _U32) -> None: ...
    def set_stems(self, stemmer: int, first: int, terms: _U32) -> None: ...
    def set_stems_of(self, stemmer: int, surfaces: _U32, terms: _U32) -> None: ...
    def memory_bytes(self) -> int: ...

# index/field_index_writer.cpp
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
def merge(field_indexes: list[_U8], map: _U32, documents: int, average_length: float) -> _U8: ...

class FieldIndexDescription(TypedDict):
    documents: int
    documents_with_field: int
    tokens: int
    terms: int
    elements: int
    blocks: int
    average_length: float
    postings_bytes: int
    positions_bytes: int

def describe(field_index: _U8) -> FieldIndexDescription: ...

# index/field_index_check.cpp
def check_field_index(field_index: _U8) -> None: ...

# index/term_bits.cpp
class FrequentTerms:
    def __init__(
        self,
        base: int,
        documents: int,
        fields: int,
        most_bytes: int,
        least_documents: int,
        most_worths_bytes: int = 0,
    ) -> None: ...
    @staticmethod
    def bytes_kept() -> int: ...
    @staticmethod
    def worths_bytes_kept() -> int: ...

# index/reader.cpp
class Reader:
    def __init__(
        self, segments: Sequence[tuple[int, int, list[_U8 | None], FrequentTerms | None]], fields: int
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
def add_bm25_of(
    reader: Reader,
    field: int,
    terms: list[tuple[int, float]],
    k1: float,
    b: float,
    average_length: float,
    lids: _U32,
    scores: NDArray[np.float64],
) -> None: ...
def positions(reader: Reader, field: int, term: int, lids: _U32) -> tuple[_U32, _U32]: ...
def field_lengths(reader: Reader, field: int, lids: _U32, to: NDArray[np.int32]) -> None: ...
def locate(
    reader: Reader, field: int, lids: _U32, offsets: _U32, positions: _U32
) -> tuple[_U32, _U32, _U32, NDArray[np.int32]]: ...
def phrase(reader: Reader, field: int, terms: _U32, accept: _U64 | None) -> tuple[_U32, _U32, _U32]: ...
def bitmap_has(bitmap: _U64, lids: _U32) -> NDArray[np.uint8]: ...
def bitmap_lids(bitmap: _U64, limit: int) -> _U32: ...
def bitmap_count(a: _U64, b: _U64) -> int: ...

# index/positions.cpp
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

# attributes/sorting.cpp
def first_rows(values: NDArray[_Signed], bitmap: _U64, wanted: int, descending: bool) -> _U32: ...

# attributes/predicate.cpp
def evaluate_predicates(programs: _U32, rows: _U64, masks: _U64, results: _U64) -> None: ...

# attributes/column_strings.cpp
class ColumnStrings:
    def __init__(self, strings: list[str]) -> None: ...
    def extend(self) -> None: ...
    def text(self, code: int) -> bytes | None: ...

# attributes/elements.cpp
def row_elements(rows: _U64, wanted: _U64, elements: int) -> tuple[_U32, _U32]: ...
def join_elements(how: int, a_offsets: _U32, a: _U32, b_offsets: _U32, b: _U32) -> tuple[_U32, _U32]: ...

# attributes/attribute.cpp
def range_bitmap(values: NDArray[_Number], low: float, high: float, bitmap: _U64) -> None: ...
def array_range_bitmap(values: NDArray[_Number], rows: _U64, low: float, high: float, bitmap: _U64) -> None: ...

# attributes/value_sets.cpp
def member_bitmap(codes: _U32, table: _U8, bitmap: _U64) -> None: ...
def array_member_bitmap(codes: _U32, rows: _U64, table: _U8, bitmap: _U64) -> None: ...
def set_bitmap(values: NDArray[_Number], numbers: NDArray[_Number], bitmap: _U64) -> None: ...
def array_set_bitmap(values: NDArray[_Number], rows: _U64, numbers: NDArray[_Number], bitmap: _U64) -> None: ...

# attributes/text_scan.cpp
def texts_beginning(content: _U8, ends: _U64, part: bytes, table: _U8) -> None: ...
def texts_ending(content: _U8, ends: _U64, part: bytes, table: _U8) -> None: ...
def texts_having(content: _U8, ends: _U64, part: bytes, table: _U8) -> None: ...
def texts_near(content: _U8, ends: _U64, word: _U32, most_edits: int, same: int, prefix: bool, table: _U8) -> None: ...

# attributes/products.cpp
def products(
    values: NDArray[_Number],
    rows: _U64,
    weights: NDArray[np.int32],
    keys: NDArray[_Number],
    token_weights: NDArray[np.int64],
    lids: _U32,
    sums: _F64,
) -> None: ...

# attributes/column_numbers.cpp
def column_numbers(values: NDArray[_Signed], lids: _U32, unset: float, out: _F64) -> None: ...

# attributes/places.cpp
def places_in(
    numbers: NDArray[np.int64],
    rows: _U64,
    box: NDArray[np.int32],
    x: int,
    y: int,
    aspect: int,
    square: int,
    single: bool,
    bitmap: _U64,
) -> None: ...

# attributes/group_rows.cpp
def group_rows(parents: _U32, keys: _U32 | NDArray[np.int64]) -> tuple[_U32, _U32]: ...
@overload
def count_values(column: _U32, lids: _U32, relevances: _F64) -> tuple[_U32, NDArray[np.int64], _F64, _U32]: ...
@overload
def count_values(
    column: NDArray[np.int8] | NDArray[np.int32] | NDArray[np.int64], lids: _U32, relevances: _F64
) -> tuple[NDArray[np.int64], NDArray[np.int64], _F64, _U32]: ...

# attributes/group_values.cpp
def group_counts(groups: _U32, count: int) -> NDArray[np.int64]: ...
def group_sums(values: NDArray[_Sum], groups: _U32, count: int) -> NDArray[_Sum]: ...
def group_extremes(values: NDArray[_Sum], groups: _U32, count: int, start: float, is_max: bool) -> NDArray[_Sum]: ...
def group_best(values: _F64, groups: _U32, count: int) -> tuple[_F64, _U32]: ...

# attributes/group_order.cpp
def first_groups(parents: _U32, keys: list[_F64 | NDArray[np.int64]], most: int) -> NDArray[np.int64]: ...
def first_counted(
    values: _U32 | NDArray[np.int64], counts: NDArray[np.int64], relevances: _F64, rows: _U32, order: int, most: int
) -> tuple[NDArray[np.int64], bool]: ...

# vectors/distances.cpp
@overload
def least_distances(
    metric: int, query: NDArray[_Float], cells: NDArray[_Float], rows: _U64, distances: _F64, vectors: _U32 | None
) -> None: ...
@overload
def least_distances(
    metric: int, query: NDArray[np.int8], cells: NDArray[np.int8], rows: _U64, distances: _F64, vectors: _U32 | None
) -> None: ...
@overload
def least_distances(
    metric: int,
    query: NDArray[np.float32],
    cells: NDArray[np.uint16],
    rows: _U64,
    distances: _F64,
    vectors: _U32 | None,
) -> None: ...

# vectors/hnsw.cpp
_VectorCells = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.uint16] | NDArray[np.int8]
_VectorQuery = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.int8]

class Hnsw:
    def __init__(
        self, metric: int, cell_type: int, dimensions: int, max_links: int, explore_at_insert: int
    ) -> None: ...
    def add(self, cells: _VectorCells, nodes: _U32, owners: _U32, threads: int = 1) -> None: ...
    def remove(self, cells: _VectorCells, nodes: _U32) -> None: ...
    def search(
        self,
        cells: _VectorCells,
        query: _VectorQuery,
        count: int,
        explore: int,
        accept: _U64 | None,
        limit: int,
        threshold: float,
        filter_first: bool,
        exploration: float,
        slack: float,
        end_ns: int = 0,
    ) -> tuple[_U32, _F64, _U32]: ...
    def renumbered(self, cells: _VectorCells, numbers: _U32, owners: _U32) -> Hnsw: ...
    def arrays(self) -> tuple[_U64, _U8, _U32, _U32, _U32, _U32]: ...
    @staticmethod
    def from_arrays(
        metric: int,
        cell_type: int,
        dimensions: int,
        max_links: int,
        explore_at_insert: int,
        cells: _VectorCells,
        header: _U64,
        levels: _U8,
        owners: _U32,
        counts: _U32,
        links: _U32,
        parents: _U32,
        threads: int = 1,
    ) -> Hnsw: ...
    @property
    def nodes(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...

# vectors/nearest_hits.cpp
def nearest_hits(distances: _F64, threshold: float, heap: _F64, held: int) -> tuple[_U32, int]: ...

# vectors/nearness.cpp
def norm_of_query(cells: NDArray[np.float32] | NDArray[np.float64] | NDArray[np.int8]) -> float: ...
def angles_of(computed: _F64) -> _F64: ...

# vectors/vector_text.cpp
def read_vector(json: bytes, count: int) -> _F64 | None: ...

# vectors/dots.cpp
def all_dots(a: NDArray[_Float], b: NDArray[_Float], out: NDArray[_Float]) -> None: ...
def dots_at(
    vector: NDArray[_Float],
    rows: NDArray[_Float],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    nothing: float,
) -> _F64: ...

# vectors/max_similarity.cpp
@overload
def greatest_dots(
    tokens: NDArray[np.float32],
    cells: _NarrowCells,
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    greatest: NDArray[np.float32],
    level: int = 0,
) -> None: ...
@overload
def greatest_dots(
    tokens: _F64,
    cells: _F64 | _NarrowCells,
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    greatest: _F64,
    level: int = 0,
) -> None: ...
def greatest_sums(
    tokens: NDArray[_Float],
    cells: NDArray[np.int8],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    greatest: NDArray[_Float],
    level: int = 0,
) -> None: ...
def least_bits(
    tokens: NDArray[np.int8],
    cells: NDArray[np.int8],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    least: _U32,
) -> None: ...

# rank/top_k.cpp
def best(
    reader: Reader,
    terms: list[tuple[int, int, float, float, float, float]],
    found: list[tuple[int, _U32, _U32]],
    k: int,
    all: bool,
    count: bool,
    accept: _U64 | None,
) -> tuple[_U32, _F64, int, int]: ...

# rank/weak_and.cpp
def weak_and(
    reader: Reader,
    scores: NDArray[np.int64],
    owners: _U32,
    fields: _U32,
    terms: _U32,
    bitmap_owners: _U32,
    bitmaps: list[_U64],
    accept: _U64,
    target: int,
    threshold: int,
    selected: _U64 | None,
) -> int: ...

# rank/native_scores.cpp
def native_scores(
    reader: Reader,
    lids: _U32,
    numbers: _F64,
    tables: list[_F64],
    lists: _U32,
    given: dict[int, tuple[_U32, _U32]],
    term_weights: _F64,
    pairs: _U32,
    pair_weights: _F64,
    weights: _F64,
    proximity: _F64,
    attribute: _F64,
    floor: float,
    results: _F64,
) -> None: ...

# rank/best_of.cpp
def best_of(lids: _U32, scores: _F64, wanted: int) -> tuple[_U32, _F64]: ...

# rank/native_best.cpp
class NativeFloor:
    def __init__(self) -> None: ...

def best_native(
    reader: Reader,
    numbers: _F64,
    tables: list[_F64],
    lists: _U32,
    given: dict[int, tuple[_U32, _U32, _U32]],
    term_weights: _F64,
    pairs: _U32,
    pair_weights: _F64,
    weights: _F64,
    hits: _U64,
    k: int,
    first: int = 0,
    last: int = 0xFFFFFFFF,
    floor: NativeFloor | None = None,
) -> tuple[_U32, _F64, int, float] | None: ...

# rank/field_match.cpp
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

# rank/forest.cpp
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

# rank/element_match.cpp
def element_match(
    places: list[tuple[_U32, _U32, _U32, _U32, NDArray[np.int32]]], weights: _F64, hits: int, flow: bool
) -> tuple[_U32, _U32, _F64]: ...

# rank/term_order.cpp
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

# rank/best_dots.cpp
def best_dots(
    vector: NDArray[_Float],
    vectors: NDArray[_Float],
    rows: _U64,
    nothing: float,
    hits: _U64,
    wanted: int,
    first: int = 0,
    last: int = 0xFFFFFFFF,
) -> tuple[_U32, _F64, int]: ...

# rank/rank_program.cpp
def rank_program_evaluate(
    code: NDArray[np.int32], constants: _F64, columns: Sequence[_F64], temporaries: int, result: int, out: _F64
) -> None: ...
def rank_program_operations() -> list[str]: ...

# rank/native_rank.cpp
def term_distance(
    first_offsets: _U32,
    first_positions: _U32,
    first_length: int,
    second_offsets: _U32,
    second_positions: _U32,
    distances: _U32,
    places: _U32,
) -> None: ...

# plans/snapshot.cpp
class Snapshot:
    def __init__(
        self,
        reader: Reader,
        live: _U64,
        has_dead: bool,
        documents: int,
        changed: _U8,
        gids: _U8,
        first_lid: int,
        most_words: int,
    ) -> None: ...
    def add_word(
        self,
        index: str,
        text: str,
        weak_score: int,
        parts: Sequence[tuple[float, float, int, Sequence[tuple[int, Sequence[int], int]]]],
    ) -> None: ...
    def add_field(self, name: str, number: int, average_length: float | None) -> None: ...
    def add_vectors(self, name: str, graph: Hnsw, cells: _VectorCells, rows: _U64) -> None: ...
    def add_column(
        self,
        name: str,
        values: _U32
        | NDArray[np.int8]
        | NDArray[np.int32]
        | NDArray[np.int64]
        | NDArray[np.float32]
        | NDArray[np.float64],
        strings: ColumnStrings | None,
        are_truths: bool = False,
    ) -> None: ...

# plans/plan_module.cpp
class Plan:
    def __init__(
        self,
        words: PlanWords,
        near: NearForm | None,
        ranking: PlanRanking,
        shown: PlanShown,
        most_threads: int = 0,
        hits_of_thread: int = 0,
    ) -> None: ...
    def run_of(
        self,
        snapshot: Snapshot,
        rows: RowFiles,
        text: str | Sequence[str],
        hits: int,
        offset: int,
        match_end_ns: int,
        end_ns: int,
        accept: _U64 | None,
        attribute: float,
        vector: bytes,
        near: tuple[int, int, int, bool, bool, float, float, int] | None,
    ) -> PlanRun | list[tuple[int, bool, str]] | None: ...

class PlanRun:
    def run(self) -> None: ...
    @property
    def expected_ns(self) -> int: ...
    @property
    def answer(self) -> bytes | None: ...
    @property
    def left(self) -> list[tuple[int, int, float]]: ...
    @property
    def total(self) -> int: ...
    @property
    def shown(self) -> int: ...
    @property
    def writing_ns(self) -> int: ...

# plans/plan_records.cpp
class PlanWords:
    def __init__(
        self,
        indexes: Sequence[str],
        phrase_index: str,
        composite: str,
        target_hits: int,
        most_words: int,
        most_characters: int,
    ) -> None: ...

class NearForm:
    def __init__(self, field: str, cell: int, metric: str, threshold: float, alone_matches: bool) -> None: ...

_Program = tuple[NDArray[np.int32], _F64, int, int]

class PlanExpression:
    def __init__(self, features: Sequence[tuple[str, int, float]], program: _Program) -> None: ...

class GlobalForm:
    def __init__(
        self,
        rerank_count: int,
        drop_limit: float | None,
        features: Sequence[tuple[str, float, PlanExpression]],
        program: _Program,
    ) -> None: ...

class PlanRanking:
    def __init__(
        self,
        *,
        fields: Sequence[tuple[str, float, float, float]] = ...,
        native: tuple[Sequence[str], _F64, list[_F64], Sequence[bool], int, tuple[float, float, float, float]]
        | None = None,
        expression: PlanExpression | None = None,
        global_phase: GlobalForm | None = None,
        order: tuple[str, bool] | None = None,
    ) -> None: ...

class PlanShown:
    def __init__(
        self,
        form: PageForm | None,
        columns: Sequence[str],
        facets: Sequence[tuple[str, Sequence[tuple[str, int, int, int, str, str, Sequence[str]]]]],
        most_groups: int,
    ) -> None: ...

# plans/plan_pool.cpp
class PlanPool(Generic[_Token]):
    def __init__(self, threads: int, long_ns: int, most_of_run: int = 0, thread_ns: int = 200_000) -> None: ...
    def fileno(self) -> int: ...
    def submit(self, run: PlanRun, token: _Token) -> None: ...
    def help(self) -> bool: ...
    def take(self) -> list[_Token | RoutedText]: ...
    def give_up(self, last_ns: int) -> None: ...
    @property
    def busy(self) -> int: ...
    @property
    def lent(self) -> int: ...

# http/http1_line.cpp
def read_request_line(data: bytes, at: int) -> tuple[str, str, str, int] | None: ...

# http/request_text.cpp
def cut_query_string(query: str) -> tuple[str, str, bytes] | None: ...
def cut_json(body: bytes) -> tuple[bytes, str, bytes] | None: ...
def cut_whole_request(request: bytes) -> tuple[bytes, str, bytes] | None: ...

# http/answer_socket.cpp
class AnswerSocket:
    def __init__(self, socket: int) -> None: ...
    def send(self, head: bytes, body: bytes) -> bytes: ...
    def close(self) -> None: ...
    def end_soon(self) -> None: ...

def last_lines(body_bytes: int, closes: bool, now: int) -> bytes: ...

# http/loop_socket.cpp
def receive_into(socket: int, buffer: memoryview | bytearray) -> int: ...
def send(socket: int, data: bytes | bytearray | memoryview) -> int: ...

# http/text_route.cpp
class TextRoute:
    def __init__(
        self,
        plan: Plan,
        snapshot: Snapshot,
        rows: RowFiles,
        hits: int,
        offset: int,
        timeout_ns: int,
        soft_share: float,
        accept: _U64 | None,
        attribute: float,
        near: tuple[int, int, int, bool, bool, float, float, int] | None,
        foreign: WordSet | None,
        keeps_long: bool,
        pool: PlanPool[_Token],
        most_waiting: int,
        answers: object,
    ) -> None: ...
    @property
    def answers(self) -> object: ...

class RoutedText:
    @property
    def route(self) -> TextRoute: ...
    @property
    def asker(self) -> Callable[[RoutedText], None]: ...
    @property
    def request(self) -> bytes: ...
    @property
    def text(self) -> str: ...
    @property
    def vector(self) -> bytes: ...
    @property
    def is_here(self) -> bool: ...
    @property
    def is_worth_help(self) -> bool: ...
    @property
    def is_sent(self) -> bool: ...
    @property
    def waits_for_gzip(self) -> bool: ...
    @property
    def answer(self) -> bytes: ...
    def send(self, body: bytes) -> None: ...
    @property
    def has_run(self) -> bool: ...
    @property
    def takes_long(self) -> bool: ...
    @property
    def unsent(self) -> bytes: ...
    @property
    def is_unsent(self) -> bool: ...
    @property
    def body_bytes(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def shown(self) -> int: ...
    @property
    def writing_ns(self) -> int: ...
    @property
    def begun_ns(self) -> int: ...
    @property
    def elapsed_ns(self) -> int: ...
    def take_run(self) -> PlanRun | None: ...

# http/text_routes.cpp
class TextRoutes:
    def __init__(self, most: int) -> None: ...
    def __len__(self) -> int: ...
    def begin(self, request: bytes, socket: AnswerSocket, asker: object, alone: bool) -> RoutedText | bytes | None: ...
    def put(self, rest: bytes, route: TextRoute, head: bytes, gzip: bool, changes: int) -> None: ...

def route_changes() -> int: ...
def forget_routes() -> None: ...

# http/watched_sockets.cpp
class WatchedSockets(Generic[_Line]):
    def __init__(self, routes: TextRoutes, most_bytes: int, threads: int) -> None: ...
    def __len__(self) -> int: ...
    @property
    def fd(self) -> int: ...
    def watch(self, socket: int, answers: AnswerSocket, line: _Line, asker: Callable[[RoutedText], None]) -> int: ...
    def unwatch(self, number: int) -> bool: ...
    def expect(self, number: int, request: bool) -> None: ...
    def is_read(self, number: int) -> bool: ...
    def receive(self) -> tuple[list[tuple[_Line, bytes | RoutedText | None]], int]: ...
    def close(self) -> None: ...

# http/feed_sockets.cpp
def cut_change(request: bytes) -> tuple[bytes, bytes, bytes] | None: ...

class FeedSockets(Generic[_Form, _Line]):
    def __init__(self, most_bytes: int, most_forms: int) -> None: ...
    def __len__(self) -> int: ...
    @property
    def fd(self) -> int: ...
    def learn(self, request: bytes, form: _Form) -> bool: ...
    def watch(self, socket: int, line: _Line) -> None: ...
    def unwatch(self, socket: int) -> tuple[bytes, bytes]: ...
    def answer(self, sockets: list[int], head: bytes, bodies: list[bytes]) -> None: ...
    def take(
        self,
    ) -> tuple[list[tuple[_Form, list[_Line], list[str], list[bytes]]], list[tuple[_Line, bytes, bytes]], int, int]: ...
    def close(self) -> None: ...

# http/http2_module.cpp
class HpackDecoder:
    def __init__(self) -> None: ...
    def decode(self, block: bytes) -> list[tuple[bytes, bytes]]: ...
    def entries(self) -> list[tuple[bytes, bytes]]: ...
    @property
    def table_bytes(self) -> int: ...

def http2_header_block(status: int, headers: list[tuple[bytes, bytes]]) -> bytes: ...
def http2_respond_all(
    connections: list[Http2Connection], stream_ids: list[int], block: bytes, bodies: list[bytes]
) -> int: ...

class Http2Connection:
    def __init__(
        self,
        max_streams: int,
        max_header_bytes: int,
        stream_window: int,
        connection_window: int,
        max_frame_bytes: int = 16384,
        max_resets: int = 1000,
        max_control_frames: int = 10000,
        max_continuations: int = 32,
        max_unread_bytes: int = 65536,
        batch_start: str = "",
    ) -> None: ...
    def upgrade(self, settings: bytes) -> bool: ...
    def receive(self, data: bytes | bytearray | memoryview) -> list[_Http2Event]: ...
    def inform(self, stream_id: int, block: bytes) -> bool: ...
    def respond(self, stream_id: int, block: bytes, body: bytes, ends: bool) -> bool: ...
    def send_data(self, stream_id: int, data: bytes, ends: bool) -> bool: ...
    def take_output(self, most_bytes: int = 1048576) -> bytes: ...
    def take_drained(self) -> list[int]: ...
    def consume(self, stream_id: int, size: int) -> None: ...
    def unsent_bytes(self, stream_id: int = 0) -> int: ...
    def reset(self, stream_id: int, code: int) -> None: ...
    def go_away(self, code: int = 0) -> None: ...
    def refill_budgets(self) -> None: ...
    @property
    def open_streams(self) -> int: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...

# http/http2_client_module.cpp
class Http2Client:
    def __init__(
        self,
        max_body_bytes: int = 4194304,
        max_buffered_bytes: int = 67108864,
        max_header_bytes: int = 65536,
        max_control_frames: int = 10000,
        max_continuations: int = 32,
    ) -> None: ...
    def add_head(self, fields: list[tuple[bytes, bytes]]) -> int: ...
    def request(self, head: int, path: bytes, body: bytes) -> int: ...
    def receive(self, data: bytes | bytearray | memoryview) -> list[_Http2ClientEvent]: ...
    def take_output(self, most_bytes: int = 1048576) -> bytes: ...
    def reset(self, stream_id: int, code: int) -> None: ...
    @property
    def room(self) -> int: ...
    @property
    def open_streams(self) -> int: ...
    @property
    def unsent_bytes(self) -> int: ...
    @property
    def is_leaving(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...
