"""Expressions that bring a value, that write one to the script's field, and that only look at it or mark it.

`index`, `attribute`, `summary` and `passthrough` write the same value: which of them a script has says where the
field's value is kept. `tokenize`, `ngram` and `exact` change no value: the field's settings say how its text becomes
terms, as in Vespa, where these expressions are set to what the field says.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Mapping
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.ids import DocumentId
from paperwasp.document.numbers import single
from paperwasp.document.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    PREDICATE,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
    unroll,
)
from paperwasp.indexing.scope import (
    Compiled,
    Run,
    Scope,
    ScriptError,
    Step,
    Value,
    compiles,
    fit_of,
    is_number,
    is_text,
    text_of,
)
from paperwasp.schema.indexing_tree import Expression

_ESCAPE: Final = compile_later(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_AXES: Final = {"x": 0, "y": 1}


def unescape(literal: str) -> str:
    """The text of a literal in quotes, its escapes replaced."""

    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])

    return _ESCAPE.sub(character, literal[1:-1])


def constant(value: Value, type_: DataType) -> Compiled:
    return Compiled(lambda _, run: value, type_, needs_input=False)


# Values of their own


@compiles("literal")
def _literal(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    text = expression.arguments[0]
    return constant(unescape(text), STRING) if text[0] in "\"'" else constant(*number_of(text))


def number_of(text: str) -> tuple[Value, DataType]:
    """A number as scripts write it. What is too large for its type keeps its lowest bits, as in Vespa."""
    suffix = text[-1].lower()
    is_hex = "x" in text.lower()
    if not is_hex and suffix == "f":
        return single(float(text[:-1])), FLOAT
    if not is_hex and any(sign in text for sign in ".eE"):
        return float(text), DOUBLE
    digits = text[:-1] if suffix == "l" else text
    whole = int(digits[:LONGEST_NUMBER], 16 if is_hex else 10)
    return (wrap(whole, 64), LONG) if suffix == "l" else (wrap(whole, 32), INT)


LONGEST_NUMBER: Final = 1000


def wrap(number: int, bits: int) -> int:
    """Wraps a number to this number of bits: the lowest bits, as a signed integer."""
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


@compiles("true", "false")
def _bool(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return constant(expression.keyword == "true", BOOL)


@compiles("now")
def _now(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return Compiled(lambda _, run: run.now_seconds, LONG, needs_input=False)


@compiles("hostname")
def _hostname(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return Compiled(lambda _, run: socket.gethostname(), STRING, needs_input=False)


@compiles("random")
def _random(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if expression.arguments:
        most, _ = number_of(expression.arguments[0])
        if most <= 0:
            scope.fail(expression, f"random needs a bound of at least 1, and {most} is not")
        return Compiled(lambda _, run: run.random(most), INT, needs_input=False)
    if not is_number(type_):
        scope.expected(expression, "int", type_)

    def below(value: Value, run: Run) -> int:
        if value != int(value) or not 0 < value < 2**31:
            raise ScriptError(f"random needs a bound of at least 1, and {value} is not")
        return run.random(int(value))

    return Compiled(below, INT)


_PARTS: Final[Mapping[str, Callable[[DocumentId], str]]] = {
    "namespace": lambda id: id.namespace,
    "documenttype": lambda id: id.document_type,
    "group": lambda id: id.group or "",
    "number": lambda id: "" if id.number is None else str(id.number),
    "specific": lambda id: id.user_specified,
}


@compiles("documentid")
def _document_id(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not expression.arguments:
        return Compiled(lambda _, run: run.id.text, STRING, needs_input=False)
    part = _PARTS[expression.arguments[0]]
    return Compiled(lambda _, run: part(run.id), STRING, needs_input=False)


# Fields and their parts


@compiles("input")
def _input(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    step, found = input_of(expression, expression.arguments[0] if expression.arguments else scope.owner, scope)
    return Compiled(step, found, needs_input=False)


def input_of(expression: Expression, path: str, scope: Scope) -> tuple[Step, DataType]:
    """Return the step that reads a field, or a member of a struct by its path, and the type of its value."""
    name, *members = path.split(".")
    found = scope.sources.get(name)
    if found is None:
        scope.fail(expression, f"Input field '{name}' not found.")
    if not members:
        return (lambda _, run: run.inputs.get(name)), found
    steps: list[Step] = []
    for member in members:
        step, found = _member(expression, member, found, scope)
        steps.append(step)

    def read(_: Value, run: Run) -> Value:
        value = run.inputs.get(name)
        for step in steps:
            if value is None:
                return None
            value = step(value, run)
        return value

    return read, found


@compiles("get_field")
def _get_field(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return Compiled(*_member(expression, expression.arguments[0], type_, scope))


def _member(expression: Expression, name: str, type_: DataType | None, scope: Scope) -> tuple[Step, DataType]:
    if isinstance(type_, StructType):
        inner = type_.field(name)
        if inner is None:
            scope.fail(expression, f"Field '{name}' not found in struct type '{type_}'")
        return (lambda value, run: value.get(name)), unroll(inner)
    if type_ == POSITION and name in _AXES:
        axis = _AXES[name]
        return (lambda value, run: value[axis]), INT
    scope.expected(expression, "structured", type_)


@compiles("get_value")
def _get_value(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not isinstance(type_, MapType):
        scope.expected(expression, "map", type_)
    argument = expression.arguments[0]
    wanted = unescape(argument) if argument[0] in "\"'" else argument
    key_text = text_of(type_.key)
    if type_.key == STRING:
        return Compiled(lambda value, run: value.get(wanted), type_.value)

    def find(value: Value, run: Run) -> Value:
        return next((item for key, item in value.items() if key_text(key) == wanted), None)

    return Compiled(find, type_.value)


# Variables and the language


@compiles("get_var")
def _get_var(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    name = expression.arguments[0]
    known = scope.variables.get(name)
    if known is None:
        scope.fail(expression, f"Variable '{name}' not found")
    return Compiled(lambda _, run: run.variables.get(name), known, needs_input=False)


@compiles("set_var")
def _set_var(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    name = expression.arguments[0]
    if type_ is None:
        scope.expected(expression, "any", type_)
    known = scope.variables.setdefault(name, type_)
    if known != type_:
        scope.fail(expression, f"Attempting to assign conflicting types to variable '{name}', {known} vs {type_}")

    def keep(value: Value, run: Run) -> Value:
        run.variables[name] = value
        return value

    return Compiled(keep, type_)


@compiles("clear_state")
def _clear_state(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    scope.variables.clear()

    def clear(value: Value, run: Run) -> None:
        run.variables.clear()

    return Compiled(clear, None, needs_input=False)


@compiles("set_language")
def _set_language(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if type_ != STRING:
        scope.expected(expression, "string", type_)

    def set_language(value: Value, run: Run) -> Value:
        run.language = value.strip().replace("_", "-").lower()
        return value

    return Compiled(set_language, type_)


@compiles("get_language")
def _get_language(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return Compiled(lambda _, run: run.language or "un", STRING, needs_input=False)


# Outputs and marks

_LOGGER: Final = logging.getLogger(__name__)
_WHERE: Final = {"index": "index field", "attribute": "attribute", "summary": "summary field", "passthrough": "field"}
_ECHOED: Final = 1000


@compiles("index", "attribute", "summary", "passthrough")
def _output(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if type_ is None:
        scope.expected(expression, "any", type_)
    fit = fit_of(type_, scope.type)
    if fit is None:
        where = _WHERE[expression.keyword]
        scope.fail(expression, f"Can not assign {type_} to {where} '{scope.owner}' which is {scope.type}.")
    owner, convert = scope.owner, fit

    def write(value: Value, run: Run) -> Value:
        run.outputs[owner] = convert(value)
        return value

    return Compiled(write, type_)


@compiles("_", "this")
def _this(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return Compiled(lambda value, run: value, type_)


@compiles("sleep", "busy_wait")
def _wait(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Gives the value on at once: Vespa's waits, idle or busy, as many seconds as it says, to try slow feeding."""
    return Compiled(lambda value, run: value, type_)


@compiles("echo")
def _echo(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    def echo(value: Value, run: Run) -> Value:
        _LOGGER.info("%s: %s", run.id.text, str(value)[:_ECHOED])
        return value

    return Compiled(echo, type_)


@compiles("tokenize", "ngram", "exact")
def _mark(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Within collections, too: Vespa's page says so."""
    if type_ is None or not is_text(_innermost(type_)):
        scope.expected(expression, "string", type_)
    return Compiled(lambda value, run: value, type_)


@compiles("optimize_predicate")
def _optimize_predicate(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """A predicate is optimized where it is indexed."""
    if type_ != PREDICATE:
        scope.expected(expression, "predicate", type_)
    return Compiled(lambda value, run: value, type_)


def _innermost(type_: DataType) -> DataType:
    match type_:
        case ArrayType() | WeightedSetType():
            return _innermost(type_.inner[0])
        case MapType():
            return _innermost(type_.value)
    return type_
