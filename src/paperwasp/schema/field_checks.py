"""A field in the making, and the checks which settings it may have together: one function for each subject.

Vespa: the processors of its config model (com.yahoo.schema.processing) say what is an error and what a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct, field

from paperwasp.base.records import replace
from paperwasp.document.types import (
    BOOL,
    PREDICATE,
    RAW,
    STRING,
    TAG,
    URI,
    ArrayType,
    DataType,
    MapType,
    NumericType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.errors import Position
from paperwasp.schema.data_types import holds_struct, innermost, is_number, is_position, is_single, is_text
from paperwasp.schema.indexing import FieldScript
from paperwasp.schema.model import FieldSummary, Linguistics, Match, Stemming, SummaryField
from paperwasp.schema.tree import Problems, SchemaNode

# A field in the making: the settings of its elements, before they are checked against each other.


class Draft(Struct):
    """A field, or a part of one (`struct-field`), whose `name` is then its path from the field on."""

    node: SchemaNode
    name: str
    type: DataType
    stemming: Stemming
    in_document: bool = True
    id: int | None = None
    """The number that the schema gives it."""
    script: FieldScript | None = None
    outputs: frozenset[str] = frozenset()
    """Where the script puts the value: index, attribute, summary."""
    index: dict[str, Any] = field(default_factory=dict)
    """Settings that the schema gives, by their names in IndexSettings; likewise the next ones."""
    hnsw: dict[str, Any] = field(default_factory=dict)
    attribute: dict[str, Any] = field(default_factory=dict)
    sorting: dict[str, Any] = field(default_factory=dict)
    match_settings: dict[str, Any] = field(default_factory=dict)
    match: Match | None = None
    cased: bool | None = None
    rank: set[str] = field(default_factory=set)
    rank_type: str = ""
    dictionary: set[str] = field(default_factory=set)
    weight: int = 100
    bolding: bool = False
    summaries: dict[str, FieldSummary] = field(default_factory=dict)
    """The summaries by the names of the summary fields that they show."""
    aliases: dict[str, str] = field(default_factory=dict)
    query_commands: list[str] = field(default_factory=list)
    linguistics: Linguistics | None = None
    sub_drafts: dict[str, Draft] = field(default_factory=dict)
    """The drafts of its parts by their paths."""
    places: dict[str, SchemaNode] = field(default_factory=dict)
    """Keyword → an element that has it, for the place of an error."""

    @property
    def described(self) -> str:
        return f"field {self.name}"

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.type, TensorFieldType)

    def place(self, *keywords: str) -> Position | None:
        """The place of the first of these elements that the field has, or else of the field."""
        found = (self.places[keyword] for keyword in keywords if keyword in self.places)
        return next(found, self.node).position

    def add_summary(self, shown: SummaryField | None, to: Sequence[str], name: str = "") -> None:
        """Adds a summary field, or adds to the one of that name."""
        name = shown.name if shown else name
        known = self.summaries.get(name)
        if known is None:
            self.summaries[name] = FieldSummary(shown or SummaryField(name, (self.name,)), tuple(to))
        else:
            merged = known.shown
            if shown:
                flags = ("dynamic", "bolding", "tokens", "matched_elements_only", "select_elements_by", "struct_fields")
                merged = replace(merged, **{flag: getattr(merged, flag) or getattr(shown, flag) for flag in flags})
            self.summaries[name] = FieldSummary(merged, (*known.to, *to))


_NO_INDEX: Final[dict[str, str]] = {
    "predicate": "use 'attribute' instead of 'index'",
    "raw": "indexing of raw fields is not supported",
    "bool": "its type is bool",
}
_SIMPLE: Final = frozenset({"bool", "byte", "int", "long", "float", "double", "string"})
"""Types of which a part of a struct may be an attribute."""
_OF_PREDICATES: Final = frozenset({"arity", "lower-bound", "upper-bound", "dense-posting-list-threshold"})


STREAMING_ONLY: Final = "has an effect in streaming search only"
"""How warnings end that are not for document types of mode streaming."""
STREAMED_ONLY: Final = "other parts can be attributes in streaming search only"
"""How a warning ends that is an error for document types of any other mode."""


def check_field(draft: Draft, problems: Problems) -> None:
    """Tells all that is wrong with a field's settings; applies what follows from its type."""
    if draft.type == TAG and draft.outputs & {"index", "attribute"}:
        draft.match = draft.match or "word"
        draft.rank_type = draft.rank_type or "tags"
    for check in _CHECKS:
        check(draft, problems)


def check_sub_field(field: Draft, draft: Draft, problems: Problems) -> None:
    """As `check_field`, for a `struct-field` of `field`."""
    if "index" in draft.outputs:
        message = f"the index of struct-field {draft.name} {STREAMING_ONLY}"
        problems.warn(message, draft.place("indexing"))
        draft.outputs -= {"index"}
    if "attribute" in draft.outputs:
        _sub_attribute(field, draft, problems)
    elif draft.attribute:
        message = f"struct-field {draft.name} has attribute settings, but its indexing makes no attribute"
        problems.error(message, draft.place("attribute"))
    _match(draft, problems)


def _sub_attribute(field: Draft, draft: Draft, problems: Problems) -> None:
    """Vespa: ComplexFieldsWithStructFieldAttributesValidator.java, which looks at indexed clusters alone."""
    outer = field.type.element if isinstance(field.type, ArrayType) else field.type
    is_map_or_array = isinstance(field.type, ArrayType | MapType) and isinstance(outer, MapType | StructType)
    if is_position(field.type) or not is_map_or_array or str(draft.type) not in _SIMPLE:
        message = (
            f"struct-field {draft.name} of type {draft.type} cannot be an attribute: that is for primitive types within"
            f" arrays and maps of structs, and for maps of primitive types; {STREAMED_ONLY}"
        )
        problems.warn(message, draft.place("indexing"))
    _attribute_settings(draft, problems)


# input


def _input(draft: Draft, problems: Problems) -> None:
    if draft.script is None or draft.in_document:
        return
    if draft.attribute.get("mutable"):
        draft.script.takes_own_value = True
        return
    for statement in draft.script.tree.operands:
        if statement.needs_input:
            message = f"{draft.described} is outside the document, so its indexing must start with an input or a value"
            problems.error(message, draft.script.place(statement))


# index


def _index(draft: Draft, problems: Problems) -> None:
    place = draft.place("indexing")
    if "index" not in draft.outputs:
        return
    if is_number(draft.type):
        draft.outputs = (draft.outputs - {"index"}) | {"attribute"}
        if draft.script:
            draft.script.index_to_attribute()
        message = f"{draft.described} is an attribute instead of an index, as its type is {draft.type}"
        problems.warn(message, draft.node.position)
    elif (why := _NO_INDEX.get(innermost(draft.type).name)) or isinstance(draft.type, ReferenceType):
        problems.error(f"{draft.described} cannot have an index: {why or 'it is a reference'}", place)
    elif is_position(draft.type):
        problems.error(f"{draft.described} cannot have an index: use 'attribute' for positions", place)
    elif holds_struct(draft.type):
        problems.warn(f"the index of {draft.described} {STREAMING_ONLY}", place)
        draft.outputs -= {"index"}


def _index_settings(draft: Draft, problems: Problems) -> None:
    if draft.type != PREDICATE:
        for keyword in _OF_PREDICATES & draft.places.keys():
            problems.error(f"{keyword} is for predicate fields, and {draft.described} is none", draft.place(keyword))
        if "index" in draft.places and "index" not in draft.outputs and not draft.is_tensor:
            problems.without_effect(draft.places["index"], f"{draft.described} has no index")
    elif "attribute" in draft.outputs:
        _predicate(draft, problems)
    if draft.index.get("enable_bm25") and "index" in draft.outputs and not is_text(draft.type):
        problems.without_effect(draft.places["enable-bm25"], f"{draft.described} is not text")


def _predicate(draft: Draft, problems: Problems) -> None:
    if draft.index.get("arity", 0) < 2:
        message = f"predicate {draft.described} must have an arity of at least 2, as in index {{ arity: 2 }}"
        problems.error(message, draft.place("arity", "index"))
    threshold = draft.index.get("dense_posting_list_threshold", 1.0)
    if not 0 < threshold <= 1:
        message = "dense-posting-list-threshold must be more than 0 and at most 1"
        problems.error(message, draft.place("dense-posting-list-threshold"))


# tensors


def _tensor(draft: Draft, problems: Problems) -> None:
    if not isinstance(draft.type, TensorFieldType):
        if "hnsw" in draft.places:
            message = f"hnsw is for tensor fields, and {draft.described} has the type {draft.type}"
            problems.error(message, draft.place("hnsw"))
        if "quantization" in draft.places:
            message = f"quantization is for tensor fields, and {draft.described} has the type {draft.type}"
            problems.error(message, draft.place("quantization"))
        if "distance-metric" in draft.places:
            problems.without_effect(draft.places["distance-metric"], f"{draft.described} is no tensor")
        return
    tensor = draft.type.tensor
    if "quantization" in draft.places and not tensor.indexed:
        message = f"quantization is for tensors with an indexed dimension, and {draft.described} has none"
        problems.error(message, draft.place("quantization"))
    if "index" in draft.outputs and len(tensor.indexed) != 1:
        message = f"a tensor of type {tensor} cannot have an index: that is for tensors with one indexed dimension"
        problems.error(message, draft.place("indexing"))
    elif "index" in draft.outputs and "attribute" not in draft.outputs:
        problems.error(f"tensor {draft.described} has an index, so it must be an attribute", draft.place("indexing"))
    if "hnsw" in draft.places and "index" not in draft.outputs:
        # Vespa refuses it too: whoever sets a graph up wants one.
        problems.error(f"{draft.described} has hnsw settings, but its indexing makes no index", draft.place("hnsw"))
    if draft.attribute.get("fast_search") and not tensor.mapped:
        message = f"{draft.described} cannot be fast-search: of tensors, only those with a mapped dimension can"
        problems.error(message, draft.place("fast-search"))


# attribute


def _attribute(draft: Draft, problems: Problems) -> None:
    if "attribute" not in draft.outputs:
        if isinstance(draft.type, ReferenceType) and draft.in_document:
            problems.error(f"{draft.described} is a reference, so it must be an attribute", draft.node.position)
        if "attribute" in draft.places and not (draft.attribute.keys() <= {"fast_access"} and is_position(draft.type)):
            message = f"{draft.described} has attribute settings, but its indexing makes no attribute"
            problems.error(message, draft.place("attribute"))
        return
    if why := _no_attribute(draft.type):
        problems.error(f"{draft.described} cannot be an attribute: {why}", draft.place("indexing"))
    _attribute_settings(draft, problems)


def _no_attribute(type_: DataType) -> str:
    """Why values of this type cannot be in an attribute; empty if they can."""
    inner = innermost(type_)
    if is_position(type_):
        return ""
    if type_ == URI:
        return "its type is uri"
    if isinstance(type_, MapType | StructType) or holds_struct(type_):
        return "of structs and maps, only parts can, by struct-field"
    if inner == RAW and not is_single(type_):
        return "only single raws can"
    if inner == BOOL and isinstance(type_, WeightedSetType):
        return "only bools and arrays of them can"
    if not is_single(inner):
        return f"its type is {type_}"
    return ""


def _attribute_settings(draft: Draft, problems: Problems) -> None:
    settings = draft.attribute
    mapped = isinstance(draft.type, TensorFieldType) and bool(draft.type.tensor.mapped)
    if settings.get("fast_rank") and not mapped:
        message = f"{draft.described} cannot be fast-rank: that is for tensors with a mapped dimension"
        problems.error(message, draft.place("fast-rank"))
    if settings.get("paged") and (draft.type == PREDICATE or settings.get("fast_rank")):
        message = f"{draft.described} cannot be paged: predicates and tensors with fast-rank cannot"
        problems.error(message, draft.place("paged"))
    if settings.get("mutable") and draft.in_document:
        message = f"{draft.described} cannot be mutable: that is for fields outside the document"
        problems.error(message, draft.place("mutable"))
    if is_position(draft.type) and (more := settings.keys() - {"fast_search", "fast_access", "paged"} or draft.sorting):
        message = f"{draft.described} is a position, which can only be fast-search, fast-access and paged"
        problems.error(message, draft.place(*(name.replace("_", "-") for name in sorted(more)), "attribute"))
    if draft.sorting.get("function", "uca") != "uca":
        for name in ("strength", "locale"):
            if name in draft.sorting:
                message = f"the sort {name} of {draft.described} has no effect: that is for the function uca"
                problems.warn(message, draft.place(name))


def _sorting(draft: Draft, problems: Problems) -> None:
    if draft.sorting and "attribute" not in draft.outputs:
        problems.without_effect(draft.places["sorting"], f"{draft.described} is no attribute")


def _dictionary(draft: Draft, problems: Problems) -> None:
    if "dictionary" not in draft.places or "attribute" not in draft.outputs:
        return
    place = draft.place("dictionary")
    if is_text(draft.type):
        settings, cased = draft.dictionary, draft.cased is True
        if {"cased", "uncased"} <= settings:
            problems.error(f"the dictionary of {draft.described} is both cased and uncased", place)
        elif "hash" in settings and "btree" not in settings and not (cased and "cased" in settings):
            missing = "match: cased" if not cased else "cased in its dictionary"
            problems.error(f"{draft.described} has a hash dictionary, but does not say {missing}", place)
        elif ("cased" in settings) != cased:
            word, other = ("cased", "match: cased") if "cased" in settings else ("uncased", "match: uncased")
            problems.error(f"the dictionary of {draft.described} is {word}, but it does not say {other}", place)
    elif not isinstance(innermost(draft.type), NumericType):
        problems.error(f"{draft.described} cannot have a dictionary: that is for numbers and strings", place)
    elif not draft.attribute.get("fast_search"):
        message = f"{draft.described} must be an attribute with fast-search to have dictionary settings"
        problems.error(message, place)


# match, rank


def _match(draft: Draft, problems: Problems) -> None:
    settings = draft.match_settings
    if "match" in draft.places and not is_text(draft.type) and (draft.match or draft.cased is not None):
        problems.warn(f"match of {draft.described} has no effect: that is for strings", draft.place("match"))
    if draft.match == "gram" and "attribute" in draft.outputs and "index" not in draft.outputs:
        problems.error(f"{draft.described} cannot match gram as an attribute: it needs an index", draft.place("match"))
    if "gram_size" in settings and draft.match != "gram":
        problems.error(f"{draft.described} has a gram-size, but does not match gram", draft.place("gram-size"))
    if "exact_terminator" in settings and draft.match != "exact":
        message = f"the exact-terminator of {draft.described} has no effect: it does not match exact"
        problems.warn(message, draft.place("exact-terminator"))
    if settings.get("algorithm") in ("substring", "suffix"):
        node = draft.places["algorithm"]
        message = f"match: {node.keyword} of {draft.described} {STREAMING_ONLY}"
        problems.warn(message, node.position)
    elif settings.get("algorithm") == "prefix":
        why = "attributes can always be searched by prefix, where the query asks for it"
        problems.without_effect(draft.places["algorithm"], why)


def _needs_outputs(draft: Draft, problems: Problems) -> None:
    if draft.outputs & {"index", "attribute"} or draft.type == TAG or holds_struct(draft.type):
        return
    # Vespa compares with the defaults, so that `match: text` passes (ValidateFieldWithIndexSettingsCreatesIndex.java).
    is_default = draft.match in (None, "text") and draft.cased is None and not draft.match_settings
    for keyword in ("rank",) if is_default else ("match", "rank"):
        if keyword in draft.places:
            message = f"{draft.described} has {keyword} settings, but neither an index nor an attribute"
            problems.error(message, draft.place(keyword))


def _rank(draft: Draft, problems: Problems) -> None:
    if "literal" in draft.rank and not is_text(draft.type):
        problems.warn(f"rank: literal of {draft.described} has no effect: that is for strings", draft.place("rank"))


# summary


def _bolding(draft: Draft, problems: Problems) -> None:
    if not draft.bolding:
        return
    is_strings = draft.type == STRING or (isinstance(draft.type, ArrayType) and is_text(draft.type))
    if not is_strings:
        message = f"{draft.described} cannot have bolding: that is for strings and arrays of them"
        problems.error(message, draft.place("bolding"))
    elif "index" not in draft.outputs:
        problems.without_effect(draft.places["bolding"], f"{draft.described} has no index")
        draft.bolding = False
    elif draft.name not in draft.summaries or not draft.summaries[draft.name].shown.dynamic:
        shown = SummaryField(draft.name, (draft.name,), bolding=True, position=draft.place("bolding"))
        draft.add_summary(shown, ())


def _summary(draft: Draft, problems: Problems) -> None:
    is_multiple = isinstance(draft.type, WeightedSetType | StructType)
    for each in draft.summaries.values():
        if each.shown.dynamic and is_multiple:
            message = f"{draft.described} cannot have a dynamic summary: that is for strings and arrays of them"
            problems.error(message, each.shown.position)
        elif each.shown.dynamic and not is_text(draft.type):
            message = f"the dynamic summary of {draft.described} has no effect: that is for strings"
            problems.warn(message, each.shown.position)
    if draft.summaries and not draft.outputs & {"summary", "attribute"}:
        message = f"summary of {draft.described} has no effect: its indexing makes no summary"
        first = next(iter(draft.summaries.values())).shown
        problems.warn(message, first.position or draft.place("summary-to"))
        draft.summaries = {}


_CHECKS: Final = (
    *(_input, _index, _index_settings, _tensor, _attribute, _sorting, _dictionary),
    *(_match, _needs_outputs, _rank, _bolding, _summary),
)
