"""Reports at deploy, in one place, what in a valid schema is not executed yet, and what never has an effect here.

A package is not refused for either. What is not executed yet is a WARNING: documents keep such values and show them as
they were fed, and a query or rank profile that needs more of them gets an error then. What cannot change an answer
here is an INFO. By the predicates the rest of the code knows what is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.document.types import (
    FLOAT16,
    POSITION,
    PREDICATE,
    PRIMITIVES,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    MapType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    part_of_element,
)
from paperwasp.errors import Finding, Position
from paperwasp.schema.field_checks import STREAMING_ONLY
from paperwasp.schema.fieldsets import is_known
from paperwasp.schema.indexing_tree import OUTPUTS, Expression
from paperwasp.schema.model import Field, IndexSettings, MatchPhase, RankProfile, Schema

_MATCHES: Final = frozenset({None, "text", "word", "exact", "cased", "uncased", "gram"})
_NO_WAITING: Final = "the value goes on at once"
_FOR_JAVA: Final = "it is for searchers written in Java"
Z_CURVE_SUFFIX: Final = "_zcurve"
"""The end of the name of the attribute that is made of a position."""


# What is executed


def is_filled_now(field: Field) -> bool:
    """Return whether the field has what its indexing makes of documents.

    The z-curves of positions have no indexing of their own: places are searched in the column of the position.
    """
    if field.imported is not None:
        return False
    return field.in_document or bool(field.indexing)


def is_derived(field: Field) -> bool:
    """Return whether the field is outside the document and made by indexing."""
    return not field.in_document and is_filled_now(field)


def _calls(field: Field, keyword: str) -> bool:
    """Return whether the script of the field has an expression of that keyword."""
    tree = field.script.tree if field.script is not None else None
    return tree is not None and keyword in tree.keywords


def is_indexed_now(field: Field) -> bool:
    """Return whether the field has an index that is made and searched."""
    if field.index is None or not is_filled_now(field) or field.match not in _MATCHES:
        return False
    indexed = field.type.key if isinstance(field.type, WeightedSetType) else _element(field.type)
    return indexed in (STRING, URI)


def is_attribute_now(field: Field) -> bool:
    """Return whether the field has a column: its own, or that of the parent which it is imported from."""
    if field.attribute is None or not (is_filled_now(field) or field.imported is not None):
        return False
    match field.type:
        case ArrayType():
            return field.type.element in _ROW_ELEMENTS or field.type.element == POSITION
        case WeightedSetType():
            return field.type.key in _ROW_ELEMENTS
    return field.type in _SINGLES or isinstance(field.type, ReferenceType | TensorFieldType)


def is_matched_now(field: Field) -> bool:
    """Return whether terms and ranges are matched against the field's column.

    Other columns are kept, changed and shown.
    """
    element = field.type.element if isinstance(field.type, ArrayType) else field.type
    return (
        is_attribute_now(field)
        and element not in (POSITION, PREDICATE, RAW)
        and not isinstance(element, TensorFieldType)
    )


def is_found_now(field: Field) -> bool:
    """Return whether operators of their own search the field: those of places and of vectors."""
    element = field.type.element if isinstance(field.type, ArrayType) else field.type
    if isinstance(element, TensorFieldType):
        return is_attribute_now(field) and len(element.tensor.indexed) == 1
    return is_attribute_now(field) and element == POSITION


_ROW_ELEMENTS: Final = frozenset({*PRIMITIVES.values(), FLOAT16, URI})
"""The types that the elements of an array, and the keys of a weighted set, may have in a column."""
_SINGLES: Final = _ROW_ELEMENTS | {RAW, POSITION, PREDICATE}


def _element(type_: DataType) -> DataType | None:
    """The type of the values of a field that is single or an array; None for others."""
    if isinstance(type_, ArrayType):
        return type_.element
    return None if isinstance(type_, WeightedSetType) else type_


# Findings


def pending(schema: Schema) -> Iterator[Finding]:
    """All that the schema says and that is not executed yet, or has no effect."""
    aliases = schema.aliases()
    for field in schema.fields.values():
        if not is_z_curve(field, schema):
            yield from _field(field, schema)
        for alias, name in field.aliases.items():
            if alias not in aliases:
                yield _no_effect(f"field {field.name}: alias {alias}", field.position, f"there is no index {name!r}")
    for fieldset in schema.fieldsets.values():
        if not all(map(is_known, fieldset.query_commands)):
            yield _no_effect(f"fieldset {fieldset.name}: query-command", fieldset.position, _FOR_JAVA)
    for model in schema.onnx_models.values():
        if model.uri:
            yield _later(f"onnx-model {model.name} by its uri", model.position)
    if not schema.documentid_from_disk:
        yield _no_effect("documentid: attribute", schema.position, "ids are kept where they are found fastest")
    for profile in schema.rank_profiles.values():
        yield from _profile(profile, schema)


def is_z_curve(field: Field, schema: Schema) -> bool:
    """Return whether it is the z-curve of a position, which nobody wrote."""
    position = field.name.removesuffix(Z_CURVE_SUFFIX)
    return position != field.name and position in schema.fields and not field.in_document and not field.imported


def _later(what: str, position: Position | None) -> Finding:
    return Finding(f"{what} is not executed yet", position, "WARNING")


def _no_effect(what: str, position: Position | None, why: str) -> Finding:
    return Finding(f"{what} is accepted without effect: {why}", position, "INFO")


# Fields


def _field(field: Field, schema: Schema) -> Iterator[Finding]:
    subject = f"field {field.name}"
    if field.imported is not None:
        if not (is_attribute_now(field) or field.is_outer):
            yield _later(
                f"{subject}: importing {field.imported.target} of {field.imported.target_document}", field.position
            )
        return
    if field.type != PREDICATE and (
        (field.index and not (is_indexed_now(field) or _is_ranked(field)))
        or (field.attribute and not (is_matched_now(field) or _is_ranked(field)))
    ):
        yield _later(
            f"field {field.name} of type {field.type} is stored and shown; searching and ranking it", field.position
        )
    if any(sub.attribute and not part_of_element(field.type, path) for path, sub in field.sub_fields.items()):
        what = "struct-field: attribute of several values in one element"
        yield Finding(f"{subject}: {what} {STREAMING_ONLY}", field.position)
    for what, is_said in _FIELD_LATER:
        if is_said(field):
            yield _later(f"{subject}: {what}", field.position)
    if sets_language(field) and not executes_language(field, schema.fields):
        what = "set_language of what is not only made of fields of texts and numbers, for the field's tokens"
        yield _later(f"{subject}: {what}", field.position)
    for what, is_said, why in _FIELD_NO_EFFECT:
        if is_said(field):
            yield _no_effect(f"{subject}: {what}", field.position, why)


def _is_ranked(field: Field) -> bool:
    """Return whether all is done with the field that is done with its type.

    Operators and rank features of their own read tensors and positions; raw bytes are kept and shown, in Vespa too.
    """
    is_kept = isinstance(field.type, TensorFieldType) or field.type == RAW
    return is_found_now(field) or (is_attribute_now(field) and is_kept)


def _has_no_literal(field: Field) -> bool:
    """Return whether the words of a field should be ranked by as they are, and cannot be: see `schema.declaration`."""
    return field.rank_literal and not (field.in_document and field.type == STRING)


def _is_paged_in_vain(field: Field) -> bool:
    return bool(field.attribute and field.attribute.paged) and not isinstance(field.type, TensorFieldType)


_FIELD_LATER: Final[tuple[tuple[str, Callable[[Field], bool]], ...]] = (
    ("rank: literal of anything but a string of the document", _has_no_literal),
)
_FIELD_NO_EFFECT: Final[tuple[tuple[str, Callable[[Field], bool], str], ...]] = (
    (
        "fast-access",
        lambda field: bool(field.attribute and field.attribute.fast_access),
        "every attribute is in memory on its node",
    ),
    ("paged", _is_paged_in_vain, "only the cells of tensors are paged, other attributes are kept in memory"),
    (
        "fast-rank",
        lambda field: bool(field.attribute and field.attribute.fast_rank),
        "tensors have one representation, that for ranking",
    ),
    (
        "enable-only-bit-vector",
        lambda field: bool(field.attribute and field.attribute.enable_only_bit_vector),
        "posting lists choose their own representation",
    ),
    (
        "dictionary: hash",
        lambda field: bool(field.attribute and field.attribute.hashed),
        "there is one kind of dictionary",
    ),
    (
        "index: prefix",
        lambda field: (field.index or IndexSettings()).prefix,
        "prefixes are looked for in attributes only, as in Vespa",
    ),
    (
        "query-command",
        lambda field: not all(map(is_known, field.query_commands)),
        _FOR_JAVA,
    ),
    ("sleep", lambda field: _calls(field, "sleep"), _NO_WAITING),
    ("busy_wait", lambda field: _calls(field, "busy_wait"), _NO_WAITING),
    ("linguistics", lambda field: field.linguistics is not None, "Vespa's default linguistics has no profiles either"),
)


# Fieldsets and summaries


# Rank profiles


def _profile(profile: RankProfile, schema: Schema) -> Iterator[Finding]:
    """The findings about what a profile declares itself; what it inherits is reported where it is declared.

    What a profile cannot be run without, such as a global phase or tensors, makes the profile itself one that is not
    executed yet: `features.compile` reports it.
    """
    parents = [schema.rank_profiles[name] for name in profile.inherits if name in schema.rank_profiles]
    subject = f"rank-profile {profile.name}"
    for key in profile.rank_properties:
        if key.startswith(_RESERVED) and not any(key in parent.rank_properties for parent in parents):
            yield _no_effect(f"{subject}: rank property {key}", profile.position, _BY_WORDS)
    for keyword, value in profile.tuning.items():
        is_own = not any(parent.tuning.get(keyword) == value for parent in parents)
        if is_own and (why := _TUNING_NO_EFFECT.get(keyword)):
            yield _no_effect(f"{subject}: {keyword}", profile.position, why)
    limiting = profile.match_phase
    said_here = limiting is not None and all(parent.match_phase != limiting for parent in parents)
    if limiting and said_here and limiting.pre_post_filter_tipping_point != _TIPPING_POINT:
        yield _no_effect(f"{subject}: match-phase: pre-post-filter-tipping-point", limiting.position, _EXECUTION)
    for name, constant in profile.constants.items():
        if name not in schema.constants and constant.uri:
            yield _later(f"constant {name} at a uri", constant.position)
    for name, model in profile.onnx_models.items():
        if name not in schema.onnx_models and model.uri:
            yield _later(f"onnx-model {name} by its uri", model.position)


_TIPPING_POINT: Final = MatchPhase("").pre_post_filter_tipping_point
_RESERVED: Final = "vespa."
_BY_WORDS: Final = "what it sets, the words of the schema say"
_EXECUTION: Final = "it tunes how a query is executed, not what it answers"
_TUNING_NO_EFFECT: Final = dict.fromkeys(("termwise-limit", "prefetch-tensors"), _EXECUTION)


# Which statements of a schema set the language of a document, and for which of its texts.
#
# Scripts run in the order of the schema, those of the document's fields first, and a text is cut into words in the
# language that was set last before it. Where only one field sets the language, its script runs before all others.
#
# Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html#indexing-with-language; the order is that of
# config-model/.../schema/derived/IndexingScript.java


_NOT_IN_DOCUMENT: Final = frozenset({"documentid", "embed", "generate", "get_var", "hostname", "now", "random"})
"""Expressions that depend on more than the fields of the document: the terms of a document may not."""

_WRITING: Final = frozenset({*OUTPUTS, "echo", "passthrough"})


class LanguageStatements(Struct, frozen=True):
    """The statements of a document type that set the language."""

    statements: tuple[str, ...] = ()
    """In the order in which they run."""
    before: Mapping[str, int] | None = None
    """Name of an indexed field → how many of them run before its text is cut into words, where it is not 0."""


def sets_language(field: Field) -> bool:
    """Return whether the field's script sets the language of the document."""
    tree = field.script.tree if field.script is not None else None
    return tree is not None and field.imported is None and _sets(tree)


def in_order_of_execution(fields: Iterable[Field]) -> list[Field]:
    """Fields in the order in which their scripts run."""
    ordered = sorted(fields, key=lambda field: not field.in_document)
    setting = [field for field in ordered if sets_language(field)]
    return sorted(ordered, key=lambda field: field not in setting) if len(setting) == 1 else ordered


def language_statements(schema: Schema) -> LanguageStatements:
    """The statements that set the language, as far as `executes_language` says that they are executed."""
    statements: list[str] = []
    before: dict[str, int] = {}
    for field in in_order_of_execution(schema.fields.values()):
        tree = field.script.tree if field.script is not None else None
        known = len(statements)
        for statement in tree.operands if tree is not None and executes_language(field, schema.fields) else ():
            at_index = _cut_before_index(statement)
            if at_index is not None:
                known = len(statements) + _sets(at_index)
            if _sets(statement):
                statements.append(str(_up_to_language(statement)))
        if field.index is not None and known:
            before[field.name] = known
    return LanguageStatements(tuple(statements), before)


def executes_language(field: Field, fields: Mapping[str, Field]) -> bool:
    """Return whether the language that the field's script sets depends on stored values of the document alone."""
    tree = field.script.tree if field.script is not None else None
    for statement in tree.operands if tree is not None else ():
        if not _sets(statement):
            continue
        for each in _up_to_language(statement).walk():
            names = each.arguments if each.keyword in ("input", "select_input") else ()
            types = [fields[found].type for name in names if (found := name.partition(".")[0]) in fields]
            if each.keyword in _NOT_IN_DOCUMENT or not all(map(_is_plain, types)):
                return False
    return True


def _sets(expression: Expression) -> bool:
    return "set_language" in expression.keywords


def _up_to_language(statement: Expression) -> Expression:
    """A statement without what comes after its last `set_language`."""
    last = max(number for number, operand in enumerate(statement.operands) if _sets(operand))
    kept = tuple(map(_without_outputs, statement.operands[: last + 1]))
    return Expression("statement", (), kept, statement.position)


def _without_outputs(expression: Expression) -> Expression:
    """The expression with the value itself in place of what only writes the value."""
    if expression.keyword in _WRITING:
        return Expression("this", (), (), expression.position)
    operands = tuple(map(_without_outputs, expression.operands))
    return Expression(expression.keyword, expression.arguments, operands, expression.position)


def _cut_before_index(statement: Expression) -> Expression | None:
    """The part of a statement that runs before its `index`; None where it has none."""
    for number, operand in enumerate(statement.operands):
        if "index" in operand.keywords:
            ends = number + (operand.keyword != "index")
            return Expression("statement", (), statement.operands[:ends], statement.position)
    return None


def _is_plain(type_: DataType) -> bool:
    """Return whether values of the type are the same in a document and in its JSON."""
    match type_:
        case ArrayType():
            return _is_plain(type_.element)
        case WeightedSetType():
            return _is_plain(type_.key)
        case MapType():
            return _is_plain(type_.key) and _is_plain(type_.value)
        case StructType():
            return all(_is_plain(inner) for _, inner in type_.fields)
    return type_ in PRIMITIVES.values()
