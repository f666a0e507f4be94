"""The scripts of a schema, compiled: for each field that is made by one, its statements and what they take."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.document.types import DataType
from paperwasp.errors import Finding, LanguageError
from paperwasp.indexing import control, converters, embedding, numbers, sources, text
from paperwasp.indexing.components import BUILT_IN, Components
from paperwasp.indexing.scope import COMPILERS, Compiled, Run, Scope
from paperwasp.schema.indexing import move_position
from paperwasp.schema.indexing_language import KEYWORDS
from paperwasp.schema.indexing_tree import OUTPUTS, Expression
from paperwasp.schema.model import Field, IndexingScript, Schema
from paperwasp.schema.pending import in_order_of_execution, is_filled_now, sets_language

_FAMILIES = (control, converters, embedding, numbers, sources, text)
"""Imported, they have registered their expressions."""
assert {*KEYWORDS} <= {*COMPILERS}


class Statement(Struct, frozen=True):
    """One statement of a script, and the fields that it takes by `input`, without their members."""

    compiled: Compiled
    inputs: frozenset[str]


class FieldScript(Struct, frozen=True):
    """The script of one field."""

    field: Field
    statements: tuple[Statement, ...]
    inputs: frozenset[str]
    """The fields that the statements take, together."""
    takes: DataType | None
    """The type of its one input; None: it has none, or several."""
    copies: bool
    """True where the field is its one input, unchanged."""
    warnings: tuple[LanguageError, ...] = ()
    """The warnings of a deployment, placed in the schema's file."""

    def run(self, run: Run) -> None:
        """Run the statements; of an update, those that take nothing or something that is there.

        Errors: ValueError for a value with which it cannot go on.
        """
        run.variables = {}
        for statement in self.statements:
            if not run.is_update or not statement.inputs or not statement.inputs.isdisjoint(run.inputs):
                statement.compiled.after(None, run)


def compile_scripts(schema: Schema, components: Components = BUILT_IN) -> Iterator[FieldScript | LanguageError]:
    """Compile the scripts that make something, in the order in which they run.

    A script that cannot be compiled gives its error instead, placed in the schema's file.
    """
    scripts = [field for field in schema.fields.values() if has_effect(field)]
    types = {
        name: field.type
        for name, field in schema.fields.items()
        if field.in_document or (field.attribute is not None and field.attribute.mutable)
    }
    for field in in_order_of_execution(scripts):
        scope = Scope(field.name, field.type, types, components, schema.document.name)
        try:
            script = _compile_script(field, _script(field), scope)
            yield replace(script, warnings=tuple(_placed(each, schema.name, field) for each in scope.warnings))
        except LanguageError as error:
            yield _placed(error, schema.name, field)


def _placed(problem: LanguageError, schema: str, field: Field) -> LanguageError:
    """Place a problem of a script in the schema's file."""
    message = f"For schema '{schema}', field '{field.name}': {problem.bare_message}"
    return LanguageError(message, move_position(problem.position, _script(field).position))


def has_effect(field: Field) -> bool:
    """Tell whether the field has a script that makes its value, or sets the document's language."""
    if field.script is None or field.script.tree is None or not is_filled_now(field):
        return False
    return not field.in_document or sets_language(field)


def _script(field: Field) -> IndexingScript:
    assert field.script is not None
    return field.script


def _compile_script(field: Field, script: IndexingScript, scope: Scope) -> FieldScript:
    tree = script.tree
    assert tree is not None
    statements = tuple(Statement(scope.compile(each, None), inputs_of(each)) for each in tree.operands)
    inputs = frozenset[str]().union(*(statement.inputs for statement in statements))
    takes = scope.sources[next(iter(inputs))] if len(inputs) == 1 else None
    return FieldScript(field, statements, inputs, takes, takes == field.type and _copies(tree))


def inputs_of(expression: Expression) -> frozenset[str]:
    """Return the fields that an expression takes by `input`."""
    return frozenset(each.arguments[0].partition(".")[0] for each in expression.walk() if each.keyword == "input")


def _copies(tree: Expression) -> bool:
    """Tell whether all that a script does is to write its one input, whole."""
    first, *others = [expression for statement in tree.operands for expression in statement.operands]
    is_whole = first.keyword == "input" and "." not in first.arguments[0]
    return is_whole and len(tree.operands) == 1 and all(each.keyword in OUTPUTS for each in others)


def check_scripts(schema: Schema, components: Components = BUILT_IN) -> Iterator[Finding]:
    """Report the errors of scripts that do not make a value of the field's type, and warn of those that never will."""
    for script in compile_scripts(schema, components):
        if isinstance(script, LanguageError):
            yield Finding(script.bare_message, script.position, "ERROR")
        else:
            yield from (Finding(each.bare_message, each.position, "WARNING") for each in script.warnings)
