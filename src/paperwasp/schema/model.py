"""The schema as the rest of the code sees it: resolved (inheritance applied), validated, immutable.
It has everything that the language can express; `paperwasp.schema.pending` reports what is not executed yet.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr

from paperwasp.base.records import PartlyCompared, replace
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    ArrayType,
    DataType,
    DocumentType,
    MapType,
    array_of,
    is_uri,
    part_of,
    part_of_element,
)
from paperwasp.errors import Position
from paperwasp.schema.files import Component, PackageFiles
from paperwasp.schema.indexing_tree import Expression
from paperwasp.schema.teaser_settings import DEFAULT_TEASERS, Teasers
from paperwasp.text.linguistics import uri

# Document summaries as values: which fields a summary class shows, and how. Immutable.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#document-summary


class SummaryField(PartlyCompared, frozen=True):
    """One field of a document summary."""

    UNCOMPARED: ClassVar = frozenset({"position"})

    name: str
    sources: tuple[str, ...]
    type: DataType | None = None
    """None: that of the source."""
    dynamic: bool = False
    bolding: bool = False
    tokens: bool = False
    matched_elements_only: bool = False
    select_elements_by: str = ""
    struct_fields: tuple[str, ...] = ()
    """The parts of the structs that are shown; empty: all of them."""
    position: Position | None = None


class FieldSummary(Struct, frozen=True):
    """`summary` in a field: what is shown, and by which document summaries; none: by `default`."""

    shown: SummaryField
    to: tuple[str, ...] = ()


class DocumentSummary(Struct, frozen=True):
    """A summary class: output name → what it shows."""

    name: str
    fields: Mapping[str, SummaryField]
    from_disk: bool = False
    omit_summary_features: bool = False
    inherits: tuple[str, ...] = ()
    position: Position | None = None


Stemming = Literal["none", "best", "shortest", "multiple"]
Match = Literal["text", "word", "exact", "gram", "cased", "uncased"]
MatchAlgorithm = Literal["normal", "prefix", "substring", "suffix"]

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    return _EMPTY


class Hnsw(Struct, frozen=True):
    """The graph over a tensor attribute."""

    max_links_per_node: int = 16
    neighbors_to_explore_at_insert: int = 200
    multi_threaded_indexing: bool = True


class IndexSettings(Struct, frozen=True):
    """How a field's text is indexed. The bounds and the arity are those of predicate fields."""

    stemming: Stemming = "best"
    normalizing: bool = True
    enable_bm25: bool = False
    prefix: bool = False
    hnsw: Hnsw | None = None
    arity: int | None = None
    lower_bound: int | None = None
    upper_bound: int | None = None
    dense_posting_list_threshold: float | None = None
    snowball_english: bool = False
    """Whether English is stemmed by Snowball's algorithm, as the application's container says."""


class Sorting(Struct, frozen=True):
    """How results are sorted by a field where the query does not say."""

    order: Literal["ascending", "descending"] = "ascending"
    function: Literal["uca", "raw", "lowercase"] = "uca"
    strength: Literal["primary", "secondary", "tertiary", "quaternary", "identical"] = "primary"
    locale: str = ""


class AttributeSettings(Struct, frozen=True):
    """How a field's column is kept."""

    fast_search: bool = False
    fast_rank: bool = False
    cased: bool = False
    fast_access: bool = False
    paged: bool = False
    mutable: bool = False
    enable_only_bit_vector: bool = False
    hashed: bool = False
    """`dictionary { hash }`, or `btree and hash` together with `ordered`."""
    ordered: bool = True
    """`dictionary { btree }`, which is the default."""
    distance_metric: str = ""
    """Empty: euclidean."""
    sorting: Sorting | None = None


class MatchSettings(Struct, frozen=True):
    """The settings of `match` beside the mode."""

    algorithm: MatchAlgorithm = "normal"
    gram_size: int = 2
    exact_terminator: str = "@@"
    max_length: int | None = None
    max_occurrences: int | None = None
    max_token_length: int | None = None


class Linguistics(Struct, frozen=True):
    """The linguistics profiles of a field; empty: the default."""

    index_profile: str = ""
    search_profile: str = ""


class IndexingScript(PartlyCompared, frozen=True):
    """An indexing statement, read: what it takes, and where its results go.

    `text` is the statement in one canonical form: equal texts do the same. `is_plain` says that it hands the field's
    own value, unchanged, to its outputs: then there is nothing to be run.
    """

    UNCOMPARED: ClassVar = frozenset({"position", "tree"})

    text: str
    inputs: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    is_plain: bool = True
    tree: Expression | None = None
    """The tree of `text`, with places relative to the start of the script."""
    position: Position | None = None
    """The place of the start of the script in its file."""


class SubField(Struct, frozen=True):
    """The settings of a `struct-field` for a part of a field; `name` is the path below the field (`key.name`)."""

    name: str
    type: DataType
    index: IndexSettings | None = None
    attribute: AttributeSettings | None = None
    summary: bool = False
    match: Match | None = None
    match_settings: MatchSettings = MatchSettings()
    rank_filter: bool = False
    script: IndexingScript | None = None
    position: Position | None = None


class Field(Struct, frozen=True):
    """One field. `index`, `attribute` and `summary` say where its indexing statement puts it."""

    name: str
    type: DataType
    index: IndexSettings | None = None
    attribute: AttributeSettings | None = None
    summary: bool = False
    match: Match | None = None
    bolding: bool = False
    rank_filter: bool = False
    weight: int = 100
    indexing: str = ""
    in_document: bool = True
    position: Position | None = None
    cased: bool = False
    """Whether case counts in matching; `match` is `cased` only where it has no other mode."""
    script: IndexingScript | None = None
    match_settings: MatchSettings = MatchSettings()
    rank_type: str = ""
    rank_literal: bool = False
    normal_rank: bool = False
    """Whether the schema has `rank: normal`, which is also the default."""
    linguistics: Linguistics | None = None
    sub_fields: Mapping[str, SubField] = field(default_factory=_empty)
    query_commands: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=_empty)
    """Alias → the name that it stands for."""
    imported: ImportedField | None = None
    """Where the value comes from, if from a referred document."""
    summaries: tuple[FieldSummary, ...] = ()
    """The summary fields that `summary`, `summary-to` and `bolding` in the field declare."""
    outer: str = ""
    """The field that this one is a part of: see `Schema.field_named`."""

    @property
    def is_outer(self) -> bool:
        """Whether parts of it are attributes: those of the elements of an array of structs, or of a map."""
        return any(sub.attribute is not None for sub in self.sub_fields.values())


class ImportedField(Struct, frozen=True):
    """`import field reference.target as name`. The Field of that name has the type and settings of the target's."""

    name: str
    reference: str
    target: str
    target_document: str
    position: Position | None = None


class FieldSet(Struct, frozen=True):
    """Fields searched as one; `fields` in the order of the schema file."""

    name: str
    fields: tuple[str, ...]
    query_commands: tuple[str, ...] = ()
    match: Match | None = None
    """How its words are read, whatever its fields set; None: as its fields set."""
    match_settings: MatchSettings = MatchSettings()
    position: Position | None = None


class Constant(Struct, frozen=True):
    """A constant of a schema or rank profile: a literal of its type, or a file of the package."""

    name: str
    type: TensorType
    text: str = ""
    file: str = ""
    uri: str = ""
    position: Position | None = None


class Input(Struct, frozen=True):
    """A declared `query(name)`. `default` is a literal of the type; empty: there is none. `type` None: a string."""

    type: TensorType | None
    default: str = ""
    position: Position | None = None


class OnnxModel(Struct, frozen=True):
    """An ONNX model: its file, the expression of each input, the name of each output; `optimizes`: its graph is."""

    name: str
    file: str = ""
    uri: str = ""
    inputs: Mapping[str, str] = field(default_factory=_empty)
    outputs: Mapping[str, str] = field(default_factory=_empty)
    gpu_device: int | None = None
    intraop_threads: int | None = None
    interop_threads: int | None = None
    execution_mode: str = ""
    optimizes: bool = True
    position: Position | None = None


class Function(Struct, frozen=True):
    """A ranking function (macro): its parameters and the text of its expression."""

    name: str
    parameters: tuple[str, ...]
    expression: str
    position: Position | None = None
    inline: bool = False
    expression_position: Position | None = None
    """Where `expression` starts; in a file of its own if it was `file:…`."""


class Diversity(Struct, frozen=True):
    """`diversity { attribute, min-groups, … }`."""

    attribute: str = ""
    min_groups: int = 1
    cutoff_factor: float = 10.0
    cutoff_strategy: str = "loose"


class MatchPhase(Struct, frozen=True):
    """Degrading to the best by an attribute where there are too many matches."""

    attribute: str
    order: Literal["ascending", "descending"] = "descending"
    max_hits: int = 0
    total_max_hits: int = 0
    max_filter_coverage: float = 0.2
    evaluation_point: float = 0.001
    pre_post_filter_tipping_point: float = 1.0
    position: Position | None = None


class GlobalPhase(Struct, frozen=True):
    """Ranking in the container, over the merged hits."""

    expression: str
    rerank_count: int = 100
    rank_score_drop_limit: float | None = None
    position: Position | None = None
    """Where the expression starts."""


class Mutation(Struct, frozen=True):
    """One line of `mutate`: in `phase` (on-match, on-first-phase, …), change `attribute` by `operation` and `value`."""

    phase: str
    attribute: str
    operation: str
    value: float


class FieldRank(Struct, frozen=True):
    """The rank settings of a field, by the field or by a rank profile, but its weight. Empty `rank_type`: not set."""

    filter_threshold: float | None = None
    element_gap: float | None = None
    """None: not set; infinite for `infinity`."""
    rank_type: str = ""


class RankProfile(Struct, frozen=True):
    """A rank profile with everything it inherits already in it.

    Expressions are text; `paperwasp.ranking` compiles them.
    """

    name: str
    first_phase: str | None = None
    second_phase: str | None = None
    rerank_count: int = 100
    rank_score_drop_limit: float | None = None
    second_phase_rank_score_drop_limit: float | None = None
    keep_rank_count: int = 10_000
    functions: Mapping[str, Function] = field(default_factory=_empty)
    constants: Mapping[str, Constant] = field(default_factory=_empty)
    """Its own, inherited ones, and those of the schema."""
    inputs: Mapping[str, Input] = field(default_factory=_empty)
    """By the name in query(name)."""
    match_features: tuple[str, ...] = ()
    summary_features: tuple[str, ...] = ()
    rank_features: tuple[str, ...] = ()
    sort_features: tuple[str, ...] = ()
    """The names that `feature(name)` in a sort specification may have."""
    rank_properties: Mapping[str, tuple[str, ...]] = field(default_factory=_empty)
    """Key → values, in the order in which they are written."""
    field_weights: Mapping[str, int] = field(default_factory=_empty)
    filter_fields: frozenset[str] = frozenset()
    field_ranks: Mapping[str, FieldRank] = field(default_factory=_empty)
    ignore_default_rank_features: bool = False
    position: Position | None = None
    inherits: tuple[str, ...] = ()
    global_phase: GlobalPhase | None = None
    match_phase: MatchPhase | None = None
    diversity: Diversity | None = None
    mutations: tuple[Mutation, ...] = ()
    onnx_models: Mapping[str, OnnxModel] = field(default_factory=_empty)
    """Its own, inherited ones, and those of the schema."""
    strict: bool | None = None
    use_significance_model: bool | None = None
    tuning: Mapping[str, float] = field(default_factory=_empty)
    """Keyword → value for what tunes execution: num-threads-per-search, approximate-threshold, weakand …, …"""
    expression_positions: Mapping[str, Position] = field(default_factory=_empty)
    """Where `first-phase`, `second-phase`, each list of features and, by list and name, its features start."""


class Schema(PartlyCompared, frozen=True):
    """One schema: a document type and how it is indexed, ranked and shown."""

    UNCOMPARED: ClassVar = frozenset({"_named", "components", "files", "is_streamed"})

    name: str
    document: DocumentType
    fields: Mapping[str, Field]
    """The fields of the document, of the schema outside it (`in_document` False), and imported ones (`imported`)."""
    fieldsets: Mapping[str, FieldSet]
    rank_profiles: Mapping[str, RankProfile]
    """Always holds `default` and `unranked`."""
    summaries: Mapping[str, DocumentSummary]
    """Always holds `default`."""
    source: str = ""
    """The path of the schema file in its package."""
    structs: Mapping[str, DataType] = field(default_factory=_empty)
    constants: Mapping[str, Constant] = field(default_factory=_empty)
    onnx_models: Mapping[str, OnnxModel] = field(default_factory=_empty)
    raw_as_base64: bool = True
    documentid_from_disk: bool = True
    """False: `documentid: attribute`."""
    inherits: tuple[str, ...] = ()
    teasers: Teasers = DEFAULT_TEASERS  # how dynamic summaries are made: what the content cluster says, and no schema
    position: Position | None = None
    is_streamed: bool = False  # this says the cluster, too
    files: PackageFiles | None = None
    """The files of the package by path: constants and models. None: they are not available, and not checked."""
    components: tuple[Component, ...] = ()  # which scripts may call
    _named: Mapping[str, Field | None] = field(default_factory=_empty)
    """The fields by name and alias, and their declared parts by path."""

    def __post_init__(self) -> None:
        named: dict[str, Field | None] = dict(self.fields)
        for each in self.fields.values():
            for path in (*each.sub_fields, *uri_parts(each)):
                named.setdefault(f"{each.name}.{path}", _part(each, path))
        for alias, name in self.aliases().items():
            named.setdefault(alias, self._part_named(alias) or named.get(name) or self._part_named(name))
        force_setattr(self, "_named", MappingProxyType(named))

    def field_named(self, name: str) -> Field | None:
        """The field of this name or alias, or the part of a field at this path (`persons.name`, `scores.key`).

        Such a part is a Field of its own: for an array or a map, of type array<part>, an element for each of theirs;
        for a struct, of the part's type. It is an attribute if its `struct-field` says so.
        """
        return self._named.get(name) or self._part_named(name)

    def _part_named(self, name: str) -> Field | None:
        outer, _, path = name.partition(".")
        return _part(self.fields[outer], path) if path and outer in self.fields else None

    def fields_named(self, name: str) -> tuple[Field, ...]:
        """The fields of a fieldset, or the one field of another name; empty where there is none.

        Where the fieldset has settings of matching, its fields are returned with these.
        """
        fieldset = self.fieldset_named(name)
        names = (name,) if fieldset is None else fieldset.fields
        found = tuple(found for each in names if (found := self.field_named(each)) is not None)
        if fieldset is None or fieldset.match is None:
            return found
        return tuple(_matching(each, fieldset.match, fieldset.match_settings) for each in found)

    def fieldset_named(self, name: str) -> FieldSet | None:
        """The fieldset of this name, or of this alias, where no field has the name."""
        found = self.fieldsets.get(name)
        if found is None and self.field_named(name) is None:
            found = self.fieldsets.get(self.aliases().get(name, name))
        return found

    def index_names(self) -> Iterator[str]:
        """The names that a query may search: indexes, attributes, their parts, what has parts, aliases, fieldsets."""
        aliases = self.aliases()
        for each in self.fields.values():
            if each.index is not None or each.attribute is not None or each.is_outer:
                yield each.name
                yield from (alias for alias in each.aliases if alias in aliases)
            yield from (f"{each.name}.{path}" for path in uri_parts(each))
            parts = (self.field_named(f"{each.name}.{path}") for path in each.sub_fields)
            yield from (part.name for part in parts if part is not None and part.attribute is not None)
        yield from self.fieldsets

    def aliases(self) -> Mapping[str, str]:
        """Alias → the field, fieldset, or part of a field that it is for. Those that are for nothing are left out."""
        found: dict[str, str] = {}
        for each in self.fields.values():
            for alias, name in each.aliases.items():
                if name in self.fields or name in self.fieldsets or self._part_named(name) is not None:
                    found[alias] = name
                elif _part(each, name) is not None:  # such as `hostname` of a URI
                    found[alias] = f"{each.name}.{name}"
        return found


def _matching(field: Field, match: Match, matching: MatchSettings) -> Field:
    """The field with the settings of matching of a fieldset."""
    if match in ("cased", "uncased"):
        return replace(field, cased=match == "cased")
    settings = replace(field.match_settings, gram_size=matching.gram_size, exact_terminator=matching.exact_terminator)
    return replace(field, match=match, match_settings=settings)


def uri_parts(field: Field) -> tuple[str, ...]:
    """The parts of an indexed URI, which are searched as fields."""
    return (*uri.PARTS, uri.HOST) if field.index is not None and is_uri(field.type) else ()


def _part(field: Field, path: str) -> Field | None:
    """The part of a field at a path below it."""
    if path in uri_parts(field):
        part = "hostname" if path == uri.HOST else path
        return replace(field, name=f"{field.name}.{part}", attribute=None, outer=field.name)
    type_ = part_of(field.type, path)
    if type_ is None:
        return None
    is_multiple = isinstance(field.type, ArrayType | MapType)
    sub = field.sub_fields.get(path) or SubField(path, type_)
    name = f"{field.name}.{path}"
    imported = field.imported and replace(field.imported, name=name, target=f"{field.imported.target}.{path}")
    return Field(
        name=name,
        type=array_of(type_) if is_multiple else type_,
        attribute=sub.attribute if part_of_element(field.type, path) is not None else None,
        match=sub.match,
        rank_filter=sub.rank_filter,
        in_document=field.in_document,
        position=sub.position,
        cased=sub.attribute is not None and sub.attribute.cased,
        script=sub.script,
        match_settings=sub.match_settings,
        imported=imported,
        outer=field.name,
    )
