"""Everything that is to be told of a package, gathered: what is wrong, and what is right and worth telling."""

from __future__ import annotations

from collections.abc import Iterable

from paperwasp import limits
from paperwasp.errors import Finding, LanguageError, Position


class Findings:
    """Gathers findings, each once. Keeps a limited number of errors and of notes, and counts the rest."""

    def __init__(self) -> None:
        self._errors: dict[Finding, None] = {}
        self._notes: dict[Finding, None] = {}
        self._untold_errors = 0
        self._untold_notes = 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        """By file and place."""
        return tuple(sorted(self._errors, key=_place))

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Warnings and what is for information by file and place; the last may say how many are left out."""
        told = tuple(sorted(self._notes, key=_place))
        if not self._untold_notes:
            return told
        return (*told, Finding(f"and {self._untold_notes} more", level="INFO"))

    @property
    def error_count(self) -> int:
        return len(self._errors) + self._untold_errors

    @property
    def has_room(self) -> bool:
        """Whether another error would still be told in a message: only then is a hint worth its time."""
        return len(self._errors) < limits.PACKAGE_PROBLEMS

    def error(self, message: str, position: Position | None = None) -> None:
        self.add(Finding(message, position, "ERROR"))

    def warning(self, message: str, position: Position | None = None) -> None:
        self.add(Finding(message, position, "WARNING"))

    def info(self, message: str, position: Position | None = None) -> None:
        self.add(Finding(message, position, "INFO"))

    def problem(self, error: LanguageError) -> None:
        """What a parser raised."""
        self.error(error.bare_message, error.position)

    def add(self, finding: Finding) -> None:
        is_error = finding.level == "ERROR"
        found = self._errors if is_error else self._notes
        if finding in found:
            return
        if len(found) < limits.PACKAGE_FINDINGS:
            found[finding] = None
        elif is_error:
            self._untold_errors += 1
        else:
            self._untold_notes += 1

    def extend(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.add(finding)


def _place(finding: Finding) -> tuple[str, int, int]:
    position = finding.position
    return (position.source, position.line, position.column) if position else ("", 0, 0)
