"""Scripts of the indexing language as trees, and their one canonical text.

Vespa: https://docs.vespa.ai/en/reference/writing/indexing-language.html
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Final

from msgspec import Struct

from paperwasp.errors import Position

OUTPUTS: Final = ("index", "attribute", "summary")
_SOURCES: Final = frozenset(
    {
        "clear_state",
        "documentid",
        "false",
        "get_language",
        "get_var",
        "hostname",
        "input",
        "literal",
        "now",
        "select_input",
        "true",
    }
)
"""Expressions that make a value of their own."""
_TRANSPARENT: Final = frozenset({"choice", "concat", "parenthesis", "script", "statement", "arithmetic", "guard", "if"})
"""Expressions that need a value only if their parts do."""


class Expression(Struct, frozen=True, dict=True):
    """One expression. `keyword` is its word, or what it is: statement, script, choice, concat, literal, an operator."""

    keyword: str
    arguments: tuple[str, ...] = ()
    """Names and literals, as written."""
    operands: tuple[Expression, ...] = ()
    position: Position | None = None
    """Relative to the start of the script."""

    def walk(self) -> Iterator[Expression]:
        """This expression and all within it."""
        left = [self]
        while left:
            expression = left.pop()
            yield expression
            left.extend(reversed(expression.operands))

    @cached_property
    def keywords(self) -> frozenset[str]:
        """The keywords of this expression and of all within it."""
        return _joined(self.keyword, frozenset([operand.keywords for operand in self.operands]))

    @cached_property
    def needs_input(self) -> bool:
        """Whether it works on a value that must be there before it."""
        if self.keyword in _SOURCES:
            return False
        if self.keyword == "random":
            return not self.arguments
        if self.keyword == "statement":
            return self.operands[0].needs_input
        return any(operand.needs_input for operand in self.operands) if self.keyword in _TRANSPARENT else True

    def __str__(self) -> str:
        return _as_text(self)


@lru_cache(maxsize=1024)
def _joined(keyword: str, others: frozenset[frozenset[str]]) -> frozenset[str]:
    """One set for all scripts alike: an application may have 20,000 of them."""
    return frozenset([keyword]).union(*others)


# The canonical text


def _as_text(expression: Expression) -> str:
    operands = [str(operand) for operand in expression.operands]
    match expression.keyword:
        case "script":
            return "{ " + " ".join(f"{operand};" for operand in operands) + " }"
        case "statement":
            return " | ".join(operands)
        case "choice":
            return " || ".join(operands)
        case "concat":
            return " . ".join(operands)
        case "literal":
            return expression.arguments[0]
        case "parenthesis":
            return f"({operands[0]})"
        case "arithmetic":
            return " ".join([operands[0], *map(" ".join, zip(expression.arguments, operands[1:], strict=True))])
        case "if":
            text = f"if ({operands[0]} {expression.arguments[0]} {operands[1]}) {operands[2]}"
            return text + (f" else {operands[3]}" if len(operands) == 4 else "")
        case "select_input" | "switch":
            case = "case " if expression.keyword == "switch" else ""
            labels = (label if label == "default" else case + label for label in expression.arguments)
            cases = " ".join(f"{label}: {text};" for label, text in zip(labels, operands, strict=True))
            return f"{expression.keyword} {{ {cases} }}"
    return " ".join([expression.keyword, *expression.arguments, *operands])
