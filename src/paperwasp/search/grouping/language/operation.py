"""The operations of a statement: `all(…)` and `each(…)` with what is in them."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.language.text import expression_text, filter_text, label_text
from paperwasp.search.grouping.request import Filter

UNLIMITED: Final = 2**31 - 1
"""`max(inf)`."""


@dataclass(slots=True)
class Operation:
    """One operation. It is built while a statement is read, and changed by nobody after that."""

    is_each: bool
    group_by: Expression | None = None
    filter: Filter | None = None
    hints: list[str] = field(default_factory=list)
    max: int | None = None
    order: list[Expression] = field(default_factory=list)
    outputs: list[Expression] = field(default_factory=list)
    precision: int = 0
    """0: as the query says."""
    accuracy: float = 0.95
    where: str | None = None
    children: list[Operation] = field(default_factory=list)
    label: str = ""

    def walk(self) -> list[Operation]:
        """This operation, and all below it."""
        found = [self]
        for operation in found:
            found.extend(operation.children)
        return found


def operation_text(operation: Operation) -> str:
    """The operation as Vespa writes it in errors."""
    parts = []
    if operation.group_by is not None:
        parts.append(f"group({expression_text(operation.group_by)})")
    if operation.filter is not None:
        parts.append(f"filter({filter_text(operation.filter)})")
    parts += [f"hint({hint})" for hint in dict.fromkeys(operation.hints)]
    if operation.max is not None:
        parts.append(f"max({operation.max})")
    if operation.order:
        parts.append(f"order({', '.join(map(expression_text, operation.order))})")
    if operation.outputs:
        parts.append(f"output({', '.join(map(_output_text, operation.outputs))})")
    if operation.precision:
        parts.append(f"precision({operation.precision})")
    if operation.where is not None:
        parts.append(f"where({operation.where})")
    parts += map(operation_text, operation.children)
    label = f" as({label_text(operation.label)})" if operation.label else ""
    return f"{'each' if operation.is_each else 'all'}({' '.join(parts)}){label}"


def _output_text(output: Expression) -> str:
    return expression_text(output) + (f" as({label_text(output.label)})" if output.label else "")
