"""Expressions that write the value to the script's field, and those that only look at it or mark it.

`index`, `attribute`, `summary` and `passthrough` write the same value: which of them there are says where the field's
value is kept. `tokenize`, `ngram` and `exact` change no value: how its text becomes terms is what the field's settings
say, as in Vespa, where they are set to what the field says.
"""

from __future__ import annotations

import logging
from typing import Final

from paperwasp.document.types import PREDICATE, ArrayType, DataType, MapType, WeightedSetType
from paperwasp.indexing.scope import Compiled, Run, Scope, Value, compiles
from paperwasp.indexing.values import fit_of, is_text
from paperwasp.schema.indexing_tree import Expression

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
