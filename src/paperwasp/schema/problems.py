"""All that is wrong with the schemas of a package, gathered and raised at once."""

from __future__ import annotations

from paperwasp.errors import InvalidPackage, Position
from paperwasp.schema.tree import Node


class InvalidSchemas(InvalidPackage):
    """One or more schemas cannot be used. `problems` has one line for each reason, with its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Problems:
    """Collects errors, and notes on what is accepted without effect. A line that repeats is kept once."""

    def __init__(self) -> None:
        self.errors: dict[str, None] = {}
        self.notes: dict[str, None] = {}

    def error(self, message: str, position: Position | None) -> None:
        self.errors[f"{position}: {message}" if position else message] = None

    def note(self, message: str, position: Position | None) -> None:
        self.notes[f"{position}: {message}" if position else message] = None

    def unsupported(self, node: Node, of: str = "") -> None:
        """Refuses an element that the language has and paperwasp does not execute yet."""
        where = f" of {of}" if of else ""
        self.error(f"{node.describe()}{where} is not supported yet", node.position)

    def without_effect(self, node: Node, why: str) -> None:
        self.note(f"{node.describe()} is accepted without effect: {why}", node.position)

    def check(self) -> None:
        """Raises InvalidSchemas if there is any error."""
        if self.errors:
            raise InvalidSchemas(tuple(self.errors))
