"""Which statements of a schema set the language of a document, and for which of its texts.

Scripts run in the order of the schema, those of the document's fields first, and a text is cut into words in the
language that was set last before it. Where only one field sets the language, its script runs before all others.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html#indexing-with-language; the order is that of
config-model/.../schema/derived/IndexingScript.java
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.document.types import PRIMITIVES, ArrayType, DataType, MapType, StructType, WeightedSetType
from paperwasp.schema.indexing_tree import OUTPUTS, Expression
from paperwasp.schema.model import Field, Schema

_NOT_IN_DOCUMENT: Final = frozenset({"documentid", "embed", "generate", "get_var", "hostname", "now", "random"})
"""Expressions that depend on more than the fields of the document: the terms of a document may not."""

_WRITING: Final = frozenset({*OUTPUTS, "echo", "passthrough"})


@dataclass(frozen=True, slots=True)
class LanguageStatements:
    """The statements of a document type that set the language."""

    statements: tuple[str, ...] = ()
    """In the order in which they run."""
    before: Mapping[str, int] | None = None
    """Name of an indexed field → how many of them run before its text is cut into words, where it is not 0."""


def sets_language(field: Field) -> bool:
    """Whether the field's script sets the language of the document."""
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
    """Whether the language that the field's script sets depends on nothing but values that the document stores."""
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
    """Whether values of the type are the same in a document and in its JSON."""
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
