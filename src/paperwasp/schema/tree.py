"""The syntax tree of a schema, the values of its elements, and the findings about it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.errors import Finding, InvalidPackage, Position
from paperwasp.schema.model import Schema
from paperwasp.text.parsing.tokens import did_you_mean


class SchemaNode(Struct, frozen=True):
    """One element as it was written, its forms made equal: `match: exact` is the tree of `match { exact }`.

    `values` holds what followed the colon, or the free text of a block, as its only item; comments in it are blanked.
    Entries of `inputs` and `constants` have the keyword `input`, those of `rank-properties` the keyword `property`.
    """

    keyword: str
    position: Position
    name: str = ""
    type: str = ""
    inherits: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """The parameters of a function; the new name of an imported field."""
    inline: bool = False
    values: tuple[str, ...] = ()
    value_position: Position | None = None
    children: tuple[SchemaNode, ...] = ()

    @property
    def text(self) -> str:
        """The only value, or an empty string."""
        return self.values[0] if self.values else ""

    def all(self, *keywords: str) -> Iterator[SchemaNode]:
        """The children with one of these keywords, in order."""
        return (child for child in self.children if child.keyword in keywords)

    def describe(self) -> str:
        """The element as an error names it."""
        return f"{self.keyword} {self.name}" if self.name else self.keyword


def dump(node: SchemaNode, indent: int = 0) -> str:
    """The tree as indented lines, one a node: keyword, header, `= values`. Ends with a newline."""
    words = [node.keyword, *_header(node)]
    if node.value_position is not None:
        words += ["=", ", ".join(repr(" ".join(value.split())) for value in node.values)]
    line = " ".join(words)
    return "".join([f"{'  ' * indent}{line}\n", *(dump(child, indent + 1) for child in node.children)])


def _header(node: SchemaNode) -> Iterator[str]:
    if node.inline:
        yield "inline"
    if node.name:
        yield node.name
    if node.arguments or (node.keyword == "function" and node.name):
        yield f"({', '.join(node.arguments)})"
    if node.type:
        yield f"type {node.type}"
    if node.inherits:
        yield f"inherits {', '.join(node.inherits)}"


# The findings about the schemas of a package: gathered, ordered by file and place, each reported once.


class InvalidSchemas(InvalidPackage):
    """One or more schemas cannot be used. `findings` has one error for each reason, with its place.

    `sound` are the others, by name, so that the rest of the package can be checked against them; `broken` the names of
    those that cannot be used, as far as they are known. `unsound` are schemas with errors, made of
    what is right in them.
    """

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(map(str, findings)), findings)
        self.sound: Mapping[str, Schema] = MappingProxyType({})
        self.broken: Collection[str] = ()
        self.unsound: Mapping[str, Schema] = MappingProxyType({})


class Problems:
    """Collects errors, and what else is worth telling; tells each once, in the order of the files."""

    def __init__(self) -> None:
        self._found: set[Finding] = set()
        self._errors = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything but errors."""
        return _sort_by_place(finding for finding in self._found if finding.level != "ERROR")

    def error(self, message: str, position: Position | None) -> None:
        """Adds an error. Raises InvalidSchemas where there are more than anybody would read."""
        self._errors += 1
        self._found.add(Finding(message, position, "ERROR"))
        if self._errors >= limits.SCHEMA_PROBLEMS:
            self.check()

    def warn(self, message: str, position: Position | None) -> None:
        self._found.add(Finding(message, position, "WARNING"))

    def note(self, message: str, position: Position | None) -> None:
        self._found.add(Finding(message, position, "INFO"))

    def without_effect(self, node: SchemaNode, why: str) -> None:
        self.note(f"{node.describe()} is accepted without effect: {why}", node.position)

    def add(self, findings: Iterable[Finding]) -> None:
        """Takes over what another module found; no errors."""
        self._found.update(findings)

    def check(self) -> None:
        """Raises InvalidSchemas if there is any error."""
        if self._errors:
            raise InvalidSchemas(_sort_by_place(finding for finding in self._found if finding.level == "ERROR"))


def nearest(word: str, words: Iterable[str]) -> str:
    """How an error goes on that says that `word` is none of `words`: with the nearest one, or all if they are few."""
    known = list(words)
    if hint := did_you_mean(word, known):
        return hint
    listed = known if isinstance(words, Sequence | Mapping) else sorted(known)
    return f"; there are {', '.join(listed)}" if 0 < len(known) <= _FEW else ""


_FEW = 12


def _sort_by_place(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=_place))


def _place(finding: Finding) -> tuple[str, int, int, str]:
    position = finding.position
    return (position.source, position.line, position.column, finding.message) if position else ("", 0, 0, str(finding))


# The value of an element as what it means: a number within its range, a boolean, one of some words.


INT_MAX: Final = 2**31 - 1
_DIGITS: Final = 20
"""The most digits of a whole number; more are out of every range, and slow to read."""


def integer(node: SchemaNode, problems: Problems, least: int = 0, most: int = INT_MAX) -> int:
    """The whole number that the element says; `least` after telling that it is out of range."""
    text = node.text.rstrip("L")
    value = int(text) if len(text) <= _DIGITS else most + 1
    if least <= value <= most:
        return value
    limit = f"at least {least}" if value < least else f"at most {most}"
    problems.error(f"{node.keyword} must be {limit}", node.value_position)
    return least


def number(node: SchemaNode, problems: Problems, least: float = -math.inf, most: float = math.inf) -> float:
    """The number that the element says; `least` or 0 after telling that it is out of range."""
    value = float(node.text.rstrip("L"))
    if math.isfinite(value) and least <= value <= most:
        return value
    inside = f" from {least:g} to {most:g}" if math.isfinite(most) else f" of at least {least:g}"
    problems.error(f"{node.keyword} must be a number{inside if math.isfinite(least) else ''}", node.value_position)
    return least if math.isfinite(least) else 0.0


def boolean(node: SchemaNode) -> bool:
    return node.text in ("on", "true")


def one_of(node: SchemaNode, words: Collection[str], problems: Problems, default: str) -> str:
    """The word that the element says; `default` after telling that it is none of `words`."""
    if node.text in words:
        return node.text
    problems.error(f"unknown {node.keyword} {node.text!r}{nearest(node.text, words)}", node.value_position)
    return default
