"""The comparison of two applications, cluster by cluster and document type by document type.

Fields, rank profiles, summaries, query profiles, containers and clusters come and go freely; what needs more than that
is here. Where a part of an application is removed, nothing within it is compared: only the removal is reported.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#modifying-schemas
Differs: types are compared in every mode and inside arrays and maps too, since documents are kept in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.application.changes.found import KINDS, Action, Changes, ConcernedService, Kind, Refusal
from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import ClusterNode, Content, ContentDocument, Mode
from paperwasp.base.patterns import compile_later
from paperwasp.document.types import (
    PREDICATE,
    STRING,
    ArrayType,
    DataType,
    MapType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.schema.model import AttributeSettings, Field, Hnsw, IndexSettings, Schema, SubField

_MODE_NAMES: Final[Mapping[Mode, str]] = {"index": "indexed", "streaming": "streaming", "store-only": "store-only"}
_WITHOUT_ID: Final = "reindexing"
"""The name of a reindexing that nothing need allow."""


class _Change(Struct, frozen=True):
    """One change: what it needs (None: no action), and what must allow it (None: nothing)."""

    kind: Kind | None
    message: str
    validation_id: str | None = None
    document_type: str = ""


def find_changes(active: ApplicationModel, new: ApplicationModel) -> Changes:
    """The actions and overrides that are needed before `new` may replace `active`: a pure function of the two."""
    clusters = {cluster.id: cluster for cluster in new.content_clusters}
    actions: list[Action] = []
    refusals: dict[Refusal, None] = {}
    for cluster in active.content_clusters:
        after = clusters.get(cluster.id)
        if after:
            changes = tuple(_cluster(cluster, after))
            actions += _actions(after.declared, changes)
        else:
            message = f"Content cluster '{cluster.id}' is removed. This will cause loss of all data in this cluster"
            changes = (_Change(None, message, "content-cluster-removal"),)
        refusals |= {Refusal(change.validation_id, change.message): None for change in changes if change.validation_id}
    return Changes(tuple(sorted(actions, key=lambda action: KINDS.index(action.kind))), tuple(refusals))


def _cluster(active: ContentCluster, new: ContentCluster) -> Iterator[_Change]:
    before, after = _documents(active), _documents(new)
    for name, document in before.items():
        if name not in after:
            message = f"Schema '{name}' is removed in content cluster '{active.id}'"
            yield _Change(None, f"{message}. This will cause loss of all data in this schema", "schema-removal")
            continue
        yield from _document(active.id, document, after[name])
        if name in active.schemas and name in new.schemas:
            yield from _schema(document, after[name], active.schemas[name], new.schemas[name])


def _documents(cluster: ContentCluster) -> dict[str, ContentDocument]:
    return {document.type: document for document in cluster.declared.documents}


def _document(cluster: str, active: ContentDocument, new: ContentDocument) -> Iterator[_Change]:
    """The changes of what services.xml declares of a document type."""
    where = f"Document type '{active.type}' in cluster '{cluster}'"
    if active.mode != new.mode:
        modes = f"from '{_MODE_NAMES[active.mode]}' to '{_MODE_NAMES[new.mode]}'"
        # Between the two modes without an index there is nothing to index again.
        if "index" in (active.mode, new.mode):
            message = f"{where} changed indexing mode {modes}"
            yield _Change("reindex", message, "indexing-mode-change", active.type)
    if active.is_global != new.is_global:
        flags = f"from {str(active.is_global).lower()} to {str(new.is_global).lower()}"
        yield _Change(None, f"{where} changed global {flags}", "global-document-change")


def _schema(old: ContentDocument, document: ContentDocument, active: Schema, new: Schema) -> Iterator[_Change]:
    """The changes of a schema, of those fields that hold values in the mode before and in the mode after."""
    where, name = f"Document type '{document.type}'", document.type
    modes = (old.mode, document.mode)
    if modes == ("index", "index"):
        for column in attribute_changes(active, new):
            message = f"{where}: Field '{column.name}' changed: {column.change}"
            yield _Change("restart", message, column.validation_id)
        for field in find_unpaged(active, new):
            message = f"{where}: Attribute '{field}' has setting 'paged' removed. This may take much more memory"
            yield _Change(None, message, "paged-setting-removal")
        for made in indexing_changes(active, new):
            yield _Change("reindex", f"{where}: {made.message}", made.validation_id, name)
    elif modes == ("streaming", "streaming"):
        for column in fast_access_changes(active, new):
            yield _Change("restart", f"{where}: Field '{column.name}' changed: {column.change}")
    for field, change in type_changes(active, new):
        yield _Change("refeed", f"{where}: Field '{field}' changed: {change}", "field-type-change", name)


def _actions(content: Content, changes: Iterable[_Change]) -> Iterator[Action]:
    """Changes of one cluster, put together by what is to be done, with what."""
    messages: dict[tuple[Kind, str, str, str | None], list[str]] = {}
    for change in changes:
        if change.kind == "restart":
            messages.setdefault(("restart", "", "", None), []).append(change.message)
        elif change.kind is not None:
            name = change.validation_id or _WITHOUT_ID
            key = (change.kind, name, change.document_type, change.validation_id)
            messages.setdefault(key, []).append(change.message)
    services = tuple(_service(content.id, node) for node in content.nodes or (ClusterNode(),))
    for (kind, name, document_type, validation_id), reasons in messages.items():
        yield Action(kind, name, content.id, document_type, tuple(sorted(reasons)), services, validation_id)


def _service(cluster: str, node: ClusterNode) -> ConcernedService:
    config_id = f"{cluster}/search/cluster.{cluster}/{node.distribution_key}"
    return ConcernedService("searchnode", "searchnode", config_id, node.host)


# Finds columns that must be built again. Vespa does that at a restart; here it is done during the activation.
#
# The settings that matter are three tables: of an attribute, of an attribute with other values than on and off, and of
# the hnsw index over it. What is in none of them (sorting, `mutable`) needs nothing.


class AttributeChange(Struct, frozen=True):
    """A change of the settings of a column. `validation_id`: the override that must allow it; None: it needs none."""

    name: str
    change: str
    validation_id: str | None = None


class _Attribute(Struct, frozen=True):
    settings: AttributeSettings
    index: IndexSettings | None
    rank_filter: bool
    hnsw: Hnsw | None


_FLAGS: Final[Mapping[str, Callable[[_Attribute], bool]]] = {
    "fast-search": lambda attribute: attribute.settings.fast_search,
    "fast-rank": lambda attribute: attribute.settings.fast_rank,
    "fast-access": lambda attribute: attribute.settings.fast_access,
    "paged": lambda attribute: attribute.settings.paged,
    "rank: filter": lambda attribute: attribute.rank_filter or attribute.settings.enable_only_bit_vector,
    "indexing: index": lambda attribute: attribute.hnsw is not None,
}
_PROPERTIES: Final[Mapping[str, Callable[[_Attribute], object]]] = {
    "dictionary: btree/hash": lambda attribute: _dictionary(attribute.settings),
    "dictionary: cased/uncased": lambda attribute: "CASED" if attribute.settings.cased else "UNCASED",
    "dense-posting-list-threshold": lambda attribute: _dense_threshold(attribute.index),
    "distance-metric": lambda attribute: (attribute.settings.distance_metric or "euclidean").upper().replace("-", "_"),
}
_HNSW: Final[Mapping[str, Callable[[Hnsw], object]]] = {
    "max-links-per-node": lambda hnsw: hnsw.max_links_per_node,
    "neighbors-to-explore-at-insert": lambda hnsw: hnsw.neighbors_to_explore_at_insert,
}
_REBUILDING: Final = ("distance-metric", "max-links-per-node")
"""The settings whose change has the whole graph built again, which an override must allow."""
_DENSE_THRESHOLD: Final = 0.4


def attribute_changes(active: Schema, new: Schema) -> Iterator[AttributeChange]:
    """The changes of all columns, those of struct fields included. New and removed fields need nothing."""
    before, after = _attributes(active), _attributes(new)
    for name in after:
        if name in before:
            yield from _settings(name, before[name], after[name])
        elif _had_values(active, name):
            yield AttributeChange(name, "add attribute aspect")
    for name in sorted(before.keys() - after.keys()):
        is_gone = name not in new.document.fields
        if not is_gone and (active.fields[name].index is None or new.fields[name].index is None):
            yield AttributeChange(name, "remove attribute aspect")


def fast_access_changes(active: Schema, new: Schema) -> Iterator[AttributeChange]:
    """All that matters to documents in streaming mode: which columns are kept."""
    before, after = _fast_access(active), _fast_access(new)
    yield from (AttributeChange(name, "add fast-access attribute") for name in sorted(after - before))
    yield from (AttributeChange(name, "remove fast-access attribute") for name in sorted(before - after))


def find_unpaged(active: Schema, new: Schema) -> Iterator[str]:
    """The attributes that lose `paged`, whose columns from then on must fit into memory."""
    before, after = _attributes(active), _attributes(new)
    for name in sorted(before.keys() & after.keys()):
        if before[name].settings.paged and not after[name].settings.paged:
            yield name


def _attributes(schema: Schema) -> dict[str, _Attribute]:
    """Name → column; of struct fields by their path. Imported fields have theirs in the other document type."""
    found: dict[str, _Attribute] = {}
    for name, field in schema.fields.items():
        if field.imported is None:
            parts: dict[str, Field | SubField] = {name: field}
            parts |= {f"{name}.{path}": part for path, part in field.sub_fields.items()}
            for path, part in parts.items():
                if part.attribute is not None:
                    hnsw = None
                    if isinstance(part.type, TensorFieldType) and part.index is not None:
                        hnsw = part.index.hnsw or Hnsw()
                    found[path] = _Attribute(part.attribute, part.index, part.rank_filter, hnsw)
    return found


def _settings(name: str, before: _Attribute, after: _Attribute) -> Iterator[AttributeChange]:
    for setting, flag in _FLAGS.items():
        if flag(before) != flag(after):
            yield AttributeChange(name, f"{'add' if flag(after) else 'remove'} attribute '{setting}'")
    for setting, value in _PROPERTIES.items():
        if value(before) != value(after):
            validation_id = _rebuilding(setting) if before.hnsw and after.hnsw else None
            change = f"change property '{setting}' from '{value(before)}' to '{value(after)}'"
            yield AttributeChange(name, change, validation_id)
    if before.hnsw and after.hnsw:
        for setting, link in _HNSW.items():
            if link(before.hnsw) != link(after.hnsw):
                change = f"change hnsw index property '{setting}' from '{link(before.hnsw)}' to '{link(after.hnsw)}'"
                yield AttributeChange(name, change, _rebuilding(setting))


def _rebuilding(setting: str) -> str | None:
    return "hnsw-settings-change" if setting in _REBUILDING else None


def _had_values(schema: Schema, name: str) -> bool:
    """Return whether there are values that a new column must be filled with. `a.b` is a part of the field `a`."""
    field, _, path = name.partition(".")
    if field not in schema.document.fields:
        return False
    return not path or path in _paths(schema.document.fields[field])


def _paths(type_: DataType) -> set[str]:
    """The paths below a field of that type at which there can be a column."""
    match type_:
        case StructType():
            return {name for name, _ in type_.fields}
        case ArrayType():
            return _paths(type_.element)
        case MapType():
            return {"key", *({f"value.{path}" for path in _paths(type_.value)} or {"value"})}
    return set()


def _fast_access(schema: Schema) -> set[str]:
    return {name for name, attribute in _attributes(schema).items() if attribute.settings.fast_access}


def _dictionary(settings: AttributeSettings) -> str:
    if settings.hashed:
        return "BTREE_AND_HASH" if settings.ordered else "HASH"
    return "BTREE"


def _dense_threshold(index: IndexSettings | None) -> float:
    threshold = index.dense_posting_list_threshold if index else None
    return _DENSE_THRESHOLD if threshold is None else threshold


# When documents must be indexed again: what is made of a field's value before it is stored differs.
#
# Where the results go does not matter, as in Vespa: an output more or less changes no value. What does is the statement
# without its outputs, and what indexing adds to it: `{ input title | tokenize normalize stem:"BEST" | index title; }`.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#modifying-schemas


_OUTPUTS: Final = ("index", "attribute", "summary")
_OUTPUT: Final = compile_later(
    r""""[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'"""
    r"""| ?\|\s*(?:index|attribute|summary)\b(?:\s+[A-Za-z_][\w.-]*)?""",
    re.DOTALL | re.ASCII,
)
"""A string, which stays, or an output of a statement."""
_TOLD: Final = {"transform": "summary field '{}' transform"}
_MODES: Final = ("text", "word", "exact", "gram")
_LEVELS: Final = {"word": "LOWERCASE", "exact": "LOWERCASE", "gram": "CODEPOINT"}
"""Match mode → what is made of letters, where the mode and not `normalizing` says it."""


class IndexingChange(Struct, frozen=True):
    """A field whose values must be made again. `validation_id` None: it has none yet, so nothing is lost."""

    message: str
    validation_id: str | None = "indexing-change"


class _Indexing(Struct, frozen=True):
    """How the values of a field are made, and how that is described to people."""

    name: str
    values: str
    """The statement without its outputs, and what indexing adds."""
    outputs: str
    is_indexed: bool
    matching: str
    stemming: str
    normalizing: str
    transform: str
    """The transform of its summary: `none`, `dynamicteaser` or `bold`."""

    def __str__(self) -> str:
        return f"{{ {self.values}{self.outputs}; }}"


def indexing_changes(active: Schema, new: Schema) -> Iterator[IndexingChange]:
    """The fields of the new schema whose values are not those that the old one made."""
    for name, field in new.fields.items():
        if field.imported is not None:
            continue
        before = active.fields.get(name)
        if before is None or before.imported is not None:
            if not field.in_document:
                message = f"Non-document field '{name}' added; this may be populated by reindexing"
                yield IndexingChange(message, None)
        else:
            changes = list(_changes(_indexing(active, before), _indexing(new, field)))
            # A field outside the document has values that indexing makes, which can be made again for another type.
            if before.type != field.type and not (before.in_document and field.in_document):
                changes.append(f"data type: '{before.type}' -> '{field.type}'")
            if changes:
                yield IndexingChange(f"Field '{name}' changed: {', '.join(changes)}")


def _changes(before: _Indexing, after: _Indexing) -> Iterator[str]:
    if before.values == after.values:
        return
    if before.is_indexed != after.is_indexed:
        yield f"{'add' if after.is_indexed else 'remove'} index aspect"
    for what in ("matching", "stemming", "normalizing", "transform"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            yield f"{_TOLD.get(what, what).format(after.name)}: '{old}' -> '{new}'"
    yield f"indexing script: '{before}' -> '{after}'"


def _indexing(schema: Schema, field: Field) -> _Indexing:
    transform = _transform(schema, field)
    settings = field.index or IndexSettings()
    mode = _mode(field)
    matched_whole = mode != "text"
    return _Indexing(
        name=field.name,
        values=" | ".join(filter(None, (_values(field), _step(field, mode, settings, transform)))),
        outputs="".join(f" | {output} {field.name}" for output in _OUTPUTS if getattr(field, output)),
        is_indexed=field.index is not None,
        matching=f"gram (size {field.match_settings.gram_size})" if mode == "gram" else mode,
        stemming="none" if matched_whole else settings.stemming,
        normalizing=_LEVELS.get(mode, "ACCENT" if settings.normalizing else "NONE"),
        transform=transform,
    )


def _mode(field: Field) -> str:
    """Texts match by their words, but what is an attribute alone as a whole."""
    if field.match in _MODES:
        return str(field.match)
    is_whole = _is_text(field.type) and field.attribute is not None and field.index is None
    return "word" if is_whole else "text"


def _values(field: Field) -> str:
    """The statement, without where its results go."""
    script = field.script
    if script is None or script.is_plain:
        text = f"input {field.name}"
    else:
        text = _OUTPUT.sub(lambda found: found[0] if found[0][0] in "\"'" else "", script.text)
    if field.type == PREDICATE and field.index is not None:
        index = field.index
        bounds = {"arity": index.arity, "lower_bound": index.lower_bound, "upper_bound": index.upper_bound}
        text = "".join(f"{value} | set_var {name}; " for name, value in bounds.items() if value is not None) + text
    return text


def _step(field: Field, mode: str, settings: IndexSettings, transform: str) -> str:
    """The step that indexing adds for texts that are indexed, or that a summary shows in parts; empty: none."""
    is_marked = transform != "none" and mode == "text"
    if not _is_text(field.type) or (field.index is None and not is_marked):
        return ""
    if mode == "gram":
        step = f"ngram {field.match_settings.gram_size}"
    else:
        step = "exact" if mode != "text" else _tokenize(settings)
    step += _limits(field)
    return f"for_each {{ {step} }}" if isinstance(field.type, ArrayType | WeightedSetType) else step


def _tokenize(settings: IndexSettings) -> str:
    words = ["tokenize"]
    if settings.normalizing:
        words.append("normalize")
    if settings.stemming != "none":
        words.append(f'stem:"{settings.stemming.upper()}"')
    return " ".join(words)


def _limits(field: Field) -> str:
    """The settings of matching that tokens depend on, beside the mode."""
    settings = field.match_settings
    values = {
        "max-length": settings.max_length,
        "max-occurrences": settings.max_occurrences,
        "max-token-length": settings.max_token_length,
        "linguistics-profile": field.linguistics.index_profile if field.linguistics else None,
    }
    text = "".join(f" {name}:{value}" for name, value in values.items() if value)
    return text + (" keep-case" if field.cased else "")


def _transform(schema: Schema, field: Field) -> str:
    shown = schema.summaries["default"].fields.get(field.name)
    if shown is not None and shown.dynamic:
        return "dynamicteaser"
    return "bold" if field.bolding or (shown is not None and shown.bolding) else "none"


def _is_text(type_: DataType) -> bool:
    inner = type_.inner[0] if isinstance(type_, ArrayType | WeightedSetType) else type_
    return inner == STRING


# When a field's values of before are none of its type of now: those documents must be fed again.
#
# A struct may gain and lose fields; what is in both must be of the same type.


def type_changes(active: Schema, new: Schema) -> list[tuple[str, str]]:
    """Field → what changed, for every field of the document that is in both."""
    before, after = active.document.fields, new.document.fields
    return [
        (name, f"data type: '{type_name(before[name])}' -> '{type_name(after[name])}'")
        for name in before
        if name in after and types_differ(before[name], after[name])
    ]


def types_differ(active: DataType, new: DataType, nested: bool = False) -> bool:
    """Return whether values of the one are none of the other. Within other types a struct is also known by its name."""
    match active, new:
        case StructType(), StructType():
            common = ((type_, new.field(name)) for name, type_ in active.fields)
            renamed = nested and active.name != new.name
            return renamed or any(after is not None and types_differ(type_, after) for type_, after in common)
        case WeightedSetType(), WeightedSetType():
            return _flags(active) != _flags(new) or types_differ(active.key, new.key, nested=True)
        case (ArrayType(), ArrayType()) | (MapType(), MapType()):
            pairs = zip(active.inner, new.inner, strict=True)
            return any(types_differ(before, after, nested=True) for before, after in pairs)
    return active != new


def type_name(type_: DataType) -> str:
    """The type as Vespa names it in messages, structs with what is in them."""
    match type_:
        case ArrayType():
            return f"Array<{type_name(type_.element)}>"
        case MapType():
            return f"Map<{type_name(type_.key)},{type_name(type_.value)}>"
        case WeightedSetType():
            return f"WeightedSet<{type_name(type_.key)}>{_flags(type_)}"
        case ReferenceType():
            return f"Reference<{type_.target}>"
        case StructType():
            fields = ",".join(f"{name}:{type_name(inner)}" for name, inner in type_.fields)
            return f"{type_.name}:{{{fields}}}"
    return str(type_)


def _flags(type_: WeightedSetType) -> str:
    return (";Add" if type_.create_if_nonexistent else "") + (";Remove" if type_.remove_if_zero else "")
