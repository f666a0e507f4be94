"""All that is wrong with the schemas of a package, gathered and raised at once."""

from __future__ import annotations

from paperwasp.errors import InvalidPackage, Position
from paperwasp.schema.tree import Node


class InvalidSchemas(InvalidPackage):
    """One or more schemas cannot be used. `problems` has one line for each reason, with its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


_Found = tuple[str, int, int, str]
"""Source, line, column and message, which is the order to tell problems in."""


class Problems:
    """Collects errors, and notes on what is accepted without effect; tells each once, in the order of the files."""

    def __init__(self) -> None:
        self._errors: set[_Found] = set()
        self._notes: set[_Found] = set()

    @property
    def errors(self) -> tuple[str, ...]:
        return _told(self._errors)

    @property
    def notes(self) -> tuple[str, ...]:
        return _told(self._notes)

    def error(self, message: str, position: Position | None) -> None:
        self._errors.add(_found(message, position))

    def note(self, message: str, position: Position | None) -> None:
        self._notes.add(_found(message, position))

    def unsupported(self, node: Node, of: str = "") -> None:
        """Refuses an element that the language has and paperwasp does not execute yet."""
        where = f" of {of}" if of else ""
        self.error(f"{node.describe()}{where} is not supported yet", node.position)

    def without_effect(self, node: Node, why: str) -> None:
        self.note(f"{node.describe()} is accepted without effect: {why}", node.position)

    def check(self) -> None:
        """Raises InvalidSchemas if there is any error."""
        if self._errors:
            raise InvalidSchemas(self.errors)


def _found(message: str, position: Position | None) -> _Found:
    return (position.source, position.line, position.column, message) if position else ("", 0, 0, message)


def _told(found: set[_Found]) -> tuple[str, ...]:
    """One line for each, with its place in front if it has one."""
    lines = ((Position(source, line, column), message) for source, line, column, message in sorted(found))
    return tuple(f"{position}: {message}" if position.line else message for position, message in lines)
