"""Reads the inputs and outputs of a field's indexing script, and checks it as far as that needs no types.

The types of its values are checked where it is compiled (`paperwasp.indexing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from paperwasp.errors import LanguageError, Position
from paperwasp.schema.indexing_language import parse_script
from paperwasp.schema.indexing_tree import OUTPUTS, Expression
from paperwasp.schema.model import Field, IndexingScript
from paperwasp.schema.tree import Problems, SchemaNode, nearest

_UNCHANGING: Final = frozenset(
    {*OUTPUTS, "passthrough", "echo", "set_var", "set_language", "sleep", "busy_wait", "clear_state", "_", "this"}
    | {"tokenize", "ngram", "exact", "optimize_predicate"}
)
"""Expressions that hand on the value that they take."""
_BLOCKS: Final = frozenset({"script", "statement", "parenthesis", "guard", "for_each", "switch", "select_input"})
"""Expressions that change a value only if an expression in them does."""


class FieldScript(Struct):
    """A field's script in the making: what was read, and what waits for all fields to be known."""

    node: SchemaNode
    owner: str
    tree: Expression
    takes_own_value: bool
    """Whether a statement without an input has the value that was fed to the field: of fields of the document, and of
    attributes that are mutable."""
    outputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keyword of OUTPUTS → names, in order."""
    index_is: str = "index"
    """The output that `index` stands for: for numbers, attribute."""

    def index_to_attribute(self) -> None:
        """Makes every `index` an `attribute`."""
        self.index_is = "attribute"
        self.outputs["attribute"] = self.outputs.pop("index")

    def place(self, expression: Expression) -> Position | None:
        """Where the expression is in its file."""
        return move_position(expression.position, self.node.value_position)

    def resolve(self) -> IndexingScript:
        statements = tuple(self._statement(statement) for statement in self.tree.operands)
        inputs = dict.fromkeys(name for statement in self.tree.operands for name in self._inputs(statement))
        return IndexingScript(
            text="; ".join(map(str, statements)),
            inputs=tuple(inputs),
            indexes=self.outputs.get("index", ()),
            attributes=self.outputs.get("attribute", ()),
            summaries=self.outputs.get("summary", ()),
            is_plain=self.is_plain,
            tree=Expression("script", (), statements, self.tree.position),
            position=self.node.value_position,
        )

    @property
    def is_plain(self) -> bool:
        """Whether it hands the field's own value, unchanged, to its outputs."""
        return self.takes_own_value and all(map(self._is_plain, self.tree.operands))

    def _statement(self, statement: Expression) -> Expression:
        named = _with_names(statement, self.owner, self.index_is)
        if not (self.takes_own_value and statement.needs_input):
            return named
        own = Expression("input", (self.owner,), (), statement.position)
        return Expression("statement", (), (own, *named.operands), statement.position)

    def _inputs(self, statement: Expression) -> list[str]:
        names = [each.arguments[0] if each.arguments else self.owner for each in _all(statement, "input")]
        names += [name for each in _all(statement, "select_input") for name in each.arguments]
        return [self.owner, *names] if self.takes_own_value and statement.needs_input else names

    def _is_plain(self, statement: Expression) -> bool:
        first, *others = statement.operands
        is_own = first.keyword == "input" and first.arguments in ((), (self.owner,))
        outputs = others if is_own else statement.operands
        return all(expression.keyword in OUTPUTS for expression in outputs)


def read_script(node: SchemaNode, owner: str, *, in_document: bool, problems: Problems) -> FieldScript | None:
    """The script of an `indexing` element of the field `owner`; None after telling what is wrong with it."""
    try:
        script = FieldScript(node, owner, parse_script(node.text), in_document)
    except LanguageError as error:
        problems.error(f"indexing of {owner}: {error.bare_message}", move_position(error.position, node.value_position))
        return None
    for expression in script.tree.walk():
        if expression.keyword in OUTPUTS:
            _output(script, expression, problems)
    for statement in script.tree.operands:
        _check_conflicts(script, statement, problems)
        if in_document:
            _check_unchanged(script, statement, None, problems)
    return script


def _output(script: FieldScript, expression: Expression, problems: Problems) -> None:
    name = expression.arguments[0] if expression.arguments else script.owner
    if name not in (script.owner, script.owner.rpartition(".")[2]):
        message = f"the indexing of field {script.owner} writes to another field: '{expression}'"
        problems.error(message, script.place(expression))
        return
    known = script.outputs.get(expression.keyword, ())
    if script.owner not in known:
        script.outputs[expression.keyword] = (*known, script.owner)


def _check_conflicts(script: FieldScript, statement: Expression, problems: Problems) -> None:
    """One field cannot get two values: between two outputs of a statement nothing may change the value."""
    written = changed = False
    for expression in statement.operands:
        if expression.keyword in OUTPUTS:
            if written and changed:
                message = f"the indexing of field {script.owner} assigns conflicting values to it"
                problems.error(message, script.place(expression))
            written, changed = True, False
        elif expression.keyword not in ("echo", "set_var", "set_language", "sleep", "busy_wait"):
            changed = True


def _check_unchanged(
    script: FieldScript, expression: Expression, changed_by: Expression | None, problems: Problems
) -> Expression | None:
    """Tells of an output, in a field of the document, of anything but what was fed to the field.

    `changed_by`: what made the value before the expression, if that is another; returns the same for the value after.
    """
    keyword = expression.keyword
    if keyword in OUTPUTS:
        if changed_by is not None:
            message = (
                f"Indexing expression '{changed_by}' attempts to modify the value of the document field"
                f" '{script.owner}'. Use a field outside the document block instead."
            )
            problems.error(message, script.place(expression))
        return None
    if keyword == "input" and expression.arguments in ((), (script.owner,)):
        return None
    if keyword in _UNCHANGING:
        return changed_by
    if keyword not in _BLOCKS:
        return expression
    after = changed_by
    for operand in expression.operands:
        before = after if keyword == "statement" else changed_by
        after = _check_unchanged(script, operand, before, problems)
    return changed_by if keyword in ("switch", "select_input") else after


def check_script(script: FieldScript, fields: Mapping[str, Field], problems: Problems) -> None:
    """Checks what needs all fields of the schema: the inputs."""
    sources = {
        name
        for name, each in fields.items()
        if each.in_document or (each.attribute is not None and each.attribute.mutable)
    }
    for expression in script.tree.walk():
        names = expression.arguments if expression.keyword in ("input", "select_input") else ()
        for name in names:
            if name.partition(".")[0] not in sources:
                message = f"the indexing of field {script.owner} takes {name!r}, which is no field of the document"
                problems.error(message + nearest(name, sources), script.place(expression))


def _all(expression: Expression, keyword: str) -> list[Expression]:
    return [each for each in expression.walk() if each.keyword == keyword]


def _with_names(expression: Expression, owner: str, index: str) -> Expression:
    """Puts the field's own name into an expression where it names none, and `index` for the word index."""
    if expression.keyword in (*OUTPUTS, "input"):
        keyword = index if expression.keyword == "index" else expression.keyword
        return Expression(keyword, expression.arguments or (owner,), (), expression.position)
    operands = tuple(_with_names(operand, owner, index) for operand in expression.operands)
    return Expression(expression.keyword, expression.arguments, operands, expression.position)


def move_position(position: Position | None, base: Position | None) -> Position | None:
    """A place in a text, as a place in the file that has the text at `base`."""
    if position is None or base is None:
        return base
    column = position.column + base.column - 1 if position.line == 1 else position.column
    return Position(base.source, base.line + position.line - 1, column)
