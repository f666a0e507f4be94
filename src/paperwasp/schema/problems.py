"""The findings about the schemas of a package: gathered, ordered by file and place, each reported once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from paperwasp import limits
from paperwasp.errors import Finding, InvalidPackage, Position
from paperwasp.schema.model import Schema
from paperwasp.schema.tree import Node
from paperwasp.text.parsing.nearest import did_you_mean


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

    def without_effect(self, node: Node, why: str) -> None:
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
