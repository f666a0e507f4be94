"""Expressions that hold others: statements, blocks, choices, branches, and `for_each`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from paperwasp.document.types import (
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    array_of,
    map_of,
    unroll,
    weighted_set_of,
)
from paperwasp.indexing.scope import Compiled, Fit, Run, Scope, Step, Value, compiles, fit_of, is_number, joined
from paperwasp.indexing.sources import input_of, unescape
from paperwasp.schema.indexing_tree import Expression

_COMPARATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# In a row


@compiles("statement", "parenthesis")
def _statement(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    steps: list[tuple[bool, Step]] = []
    needs_input, found = True, type_
    for place, operand in enumerate(expression.operands, 1):
        compiled = scope.before(expression.operands[place:]).compile(operand, found)
        if not compiled.needs_input:
            needs_input = False
        steps.append((compiled.needs_input, compiled.run))
        found = compiled.type
    if len(steps) == 1:
        return Compiled(steps[0][1], found, steps[0][0])

    def run_all(value: Value, run: Run) -> Value:
        for needs, step in steps:
            if value is not None or not needs:
                value = step(value, run)
        return value

    return Compiled(run_all, found, needs_input)


@compiles("script")
def _block(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Statements, each after the value before the block; what it gives is the value of the last one."""
    statements = [scope.compile(statement, type_) for statement in expression.operands]
    if len(statements) == 1:
        return statements[0]

    def run_all(value: Value, run: Run) -> Value:
        last = value
        for statement in statements:
            last = statement.after(value, run)
        return last

    return Compiled(run_all, statements[-1].type if statements else type_, needs_input=False)


@compiles("guard")
def _guard(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Compiles a guard: an expression that takes no field and sets no language is left out of updates of documents."""
    inner = scope.compile(expression.operands[0], type_)
    if any(each.keyword in ("input", "set_language") for each in expression.walk()):
        return inner

    def unless_update(value: Value, run: Run) -> Value:
        return None if run.is_update else inner.after(value, run)

    return Compiled(unless_update, inner.type, inner.needs_input)


@compiles("choice")
def _choice(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    choices = [scope.compile(operand, type_) for operand in expression.operands]
    found, fits = unify(expression, choices, scope, "Choice expression produces conflicting output types")

    def first(value: Value, run: Run) -> Value:
        for choice, fit in zip(choices, fits, strict=True):
            chosen = choice.after(value, run)
            if chosen is not None:
                return fit(chosen)
        return None

    return Compiled(first, found, needs_input=all(choice.needs_input for choice in choices))


def unify(
    expression: Expression, branches: Sequence[Compiled], scope: Scope, problem: str
) -> tuple[DataType | None, list[Fit]]:
    """Return the common type of several branches, and the functions that convert the value of each to that type."""
    found: DataType | None = None
    for branch in branches:
        wider = joined(found, branch.type)
        if wider is None and branch.type is not None:
            scope.fail(expression, f"{problem}, {found} vs {branch.type}")
        found = wider
    return found, _fits(branches, found)


def _fits(branches: Sequence[Compiled], found: DataType | None) -> list[Fit]:
    fits = [fit_of(branch.type, found) if branch.type and found else None for branch in branches]
    return [fit or (lambda value: value) for fit in fits]


# Branches


@compiles("if")
def _if(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    left, right, *branches = (scope.compile(operand, type_) for operand in expression.operands)
    compare = _comparison(expression, left.type, right.type, scope)
    both = [*branches, Compiled(lambda value, run: value, type_)] if len(branches) == 1 else branches
    found = joined(both[0].type, both[1].type)  # without a common type there is none: an error for who uses the value
    fits = _fits(both, found)

    def decide(value: Value, run: Run) -> Value:
        a = left.after(value, run)
        b = None if a is None else right.after(value, run)
        if b is None:
            return None
        place = 0 if compare(a, b) else 1
        chosen = both[place].after(value, run)
        return chosen if chosen is None else fits[place](chosen)

    return Compiled(decide, found, needs_input=left.needs_input and right.needs_input)


def _comparison(
    expression: Expression, left: DataType | None, right: DataType | None, scope: Scope
) -> Callable[[Value, Value], bool]:
    compare = _COMPARATORS[expression.arguments[0]]
    if is_number(left) and is_number(right):
        return compare
    is_ordered = joined(left, right) == STRING or left == right
    if left is None or right is None or not is_ordered:
        scope.fail(expression, f"Attempting to compare values of different types, {left} vs {right}")
    if isinstance(left, MapType | StructType | WeightedSetType | TensorFieldType):
        scope.fail(expression, f"values of type {left} are not compared")
    return compare


@compiles("select_input")
def _select_input(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Compiles select_input: runs the case of the first field that has a value; gives the value before it."""
    cases: list[tuple[Step, Compiled]] = []
    for label, operand in zip(expression.arguments, expression.operands, strict=True):
        read, found = input_of(expression, label.strip("\"'"), scope)
        cases.append((read, scope.compile(operand, found)))

    def select(value: Value, run: Run) -> Value:
        for read, case in cases:
            found = read(None, run)
            if found is not None:
                case.after(found, run)
                break
        return value

    return Compiled(select, type_, needs_input=False)


@compiles("switch")
def _switch(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """The case of the text before it, or the default; gives the value before it."""
    if type_ != STRING:
        scope.expected(expression, "string", type_)
    cases: dict[str, Compiled] = {}
    default: Compiled | None = None
    for label, operand in zip(expression.arguments, expression.operands, strict=True):
        compiled = scope.compile(operand, type_)
        if label == "default":
            default = compiled
        else:
            cases[unescape(label)] = compiled

    def switch(value: Value, run: Run) -> Value:
        case = cases.get(value, default)
        if case is not None:
            case.after(value, run)
        return value

    return Compiled(switch, type_, needs_input=False)


# Each element


@compiles("for_each")
def _for_each(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Elements for which there is no value are left out. Weights stay; keys of maps are converted as well."""
    operand = expression.operands[0]
    match type_:
        case ArrayType():
            each = scope.compile(operand, type_.element)
            return Compiled(_over_array(each), _collection(expression, each.type, array_of, scope))
        case WeightedSetType():
            each = scope.compile(operand, type_.key)
            flags = {"create_if_nonexistent": type_.create_if_nonexistent, "remove_if_zero": type_.remove_if_zero}
            made = _collection(expression, each.type, lambda key: weighted_set_of(key, **flags), scope)
            return Compiled(_over_weights(each), made)
        case MapType():
            key, item = scope.compile(operand, type_.key), scope.compile(operand, type_.value)
            if key.type is None or item.type is None:
                scope.fail(expression, "there is no value for each entry")
            return Compiled(_over_map(key, item), map_of(key.type, item.type))
        case StructType():
            return Compiled(_over_struct(expression, operand, type_, scope), type_)
    scope.expected(expression, "Array, Struct, WeightedSet or Map", type_)


def _collection(
    expression: Expression, type_: DataType | None, make: Callable[[DataType], DataType], scope: Scope
) -> DataType:
    if type_ is None:
        scope.fail(expression, "there is no value for each element")
    return make(type_)


def _over_array(each: Compiled) -> Step:
    step = each.run

    def convert(values: Value, run: Run) -> Value:
        run.elements(len(values))
        found = [step(value, run) for value in values]
        return [value for value in found if value is not None] if None in found else found

    return convert


def _over_weights(each: Compiled) -> Step:
    step = each.run

    def convert(weights: Value, run: Run) -> Value:
        run.elements(len(weights))
        found = ((step(key, run), weight) for key, weight in weights.items())
        return {key: weight for key, weight in found if key is not None}

    return convert


def _over_map(key_step: Compiled, item_step: Compiled) -> Step:
    def convert(entries: Value, run: Run) -> Value:
        run.elements(len(entries))
        found = ((key_step.run(key, run), item_step.after(item, run)) for key, item in entries.items())
        return {key: item for key, item in found if key is not None and item is not None}

    return convert


def _over_struct(expression: Expression, operand: Expression, type_: StructType, scope: Scope) -> Step:
    """Each member must stay what the struct says that it is."""
    steps: dict[str, Step] = {}
    for name, inner in type_.fields:
        member = scope.compile(operand, unroll(inner))
        fit = fit_of(member.type, unroll(inner)) if member.type else None
        if fit is None:
            scope.fail(expression, f"Expected {inner} output, got {member.type}")
        steps[name] = _then(member.run, fit)

    def convert(value: Value, run: Run) -> Value:
        found = {name: steps[name](item, run) for name, item in value.items()}
        return {name: item for name, item in found.items() if item is not None}

    return convert


def _then(step: Step, fit: Fit) -> Step:
    def both(value: Value, run: Run) -> Value:
        made = step(value, run)
        return None if made is None else fit(made)

    return both
