"""What is told about the query profiles of a package, in the order in which it was found."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from paperwasp import limits
from paperwasp.errors import Finding, Position

_COMPARED_CHARACTERS = 100


class Findings:
    """Collects errors and warnings, each once."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}

    def error(self, message: str, position: Position | None) -> None:
        self._found[Finding(message, position, "ERROR")] = None

    def warn(self, message: str, position: Position | None) -> None:
        self._found[Finding(message, position)] = None

    @property
    def all(self) -> tuple[Finding, ...]:
        return tuple(self._found)


def nearest(word: str, words: Iterable[str]) -> str:
    """The end of a message about an unknown word: which known one may have been meant."""
    known = [known for known in words if len(known) <= _COMPARED_CHARACTERS][: limits.PACKAGE_FILES]
    found = get_close_matches(word[:_COMPARED_CHARACTERS], known, n=1)
    return f"; did you mean '{found[0]}'?" if found else ""
