"""What an operation or an expression is about: 0 a single hit, 1 a group, 2 a list of groups, 3 a list of those, …

Vespa: resolveLevel of GroupingOperation, EachOperation, AggregatorNode, DocumentValue
"""

from __future__ import annotations

from paperwasp.errors import LanguageError
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.language.functions import OF_ATTRIBUTES, OF_HITS, is_aggregator
from paperwasp.search.grouping.language.operation import Operation, operation_text
from paperwasp.search.grouping.language.text import expression_text


def level_name(level: int) -> str:
    """How errors name a level."""
    if level <= 1:
        return "single group" if level == 1 else "single hit"
    return "list of " * (level - 1) + "groups"


def check_levels(operation: Operation, level: int = 1) -> dict[int, int]:
    """The levels of an operation, and of those in it, by their identity (`id`). `level`: of what goes into it.

    Errors: LanguageError for what does not fit the level that it is about.
    """
    levels: dict[int, int] = {}
    _check(operation, level, levels)
    return levels


def _check(operation: Operation, level: int, levels: dict[int, int]) -> None:
    if operation.is_each:
        _refuse(operation, level, "operate on")
        level -= 1
    if operation.group_by is not None:
        _refuse(operation, level, "group")
        check_level(operation.group_by, level - 1)
        level += 1
    if operation.max is not None:
        _refuse(operation, level, "apply max to")
    levels[id(operation)] = level
    for expression in operation.outputs:
        check_level(expression, level)
    if operation.order:
        _refuse(operation, level, "order")
        for expression in operation.order:
            check_level(expression, level - 1)
    for child in operation.children:
        _check(child, level, levels)


def _refuse(operation: Operation, level: int, action: str) -> None:
    if level == 0:
        raise LanguageError(f"Operation '{operation_text(operation)}' can not {action} {level_name(level)}.")


def check_level(expression: Expression, level: int) -> None:
    """Errors: LanguageError for an expression that is not about what has this level."""
    name, is_inner = expression.function, is_aggregator(expression.function, len(expression.arguments))
    if level < 0:
        raise LanguageError(f"Expression '{expression_text(expression)}' recurses through a single hit.")
    if (is_inner and level < 1) or (name in OF_HITS and level != 0):
        raise LanguageError(f"Expression '{expression_text(expression)}' not applicable for {level_name(level)}.")
    for argument in expression.arguments if name not in OF_ATTRIBUTES else ():
        if isinstance(argument, Expression):
            check_level(argument, level - 1 if is_inner else level)
