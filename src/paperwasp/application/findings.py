"""Gathers all that is to be reported about a package: errors, and notes on what is right but worth knowing."""

from __future__ import annotations

from collections.abc import Iterable

from paperwasp import limits
from paperwasp.errors import Finding, LanguageError, Position


class Findings:
    """Gathers findings, each once. Keeps a limited number of errors and of notes, and counts the rest."""

    def __init__(self) -> None:
        self._errors: dict[Finding, None] = {}
        self._notes: dict[Finding, None] = {}
        self._omitted_errors = 0
        self._omitted_notes = 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The errors that were kept, by file and place."""
        return tuple(sorted(self._errors, key=_place))

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Warnings and what is for information by file and place; the last may say how many are left out."""
        notes = tuple(sorted(self._notes, key=_place))
        if not self._omitted_notes:
            return notes
        return (*notes, Finding(f"and {self._omitted_notes} more", level="INFO"))

    @property
    def error_count(self) -> int:
        return len(self._errors) + self._omitted_errors

    @property
    def has_room(self) -> bool:
        """Whether another error would still be shown in a message: only then is a hint worth its time."""
        return len(self._errors) < limits.PACKAGE_PROBLEMS

    def error(self, message: str, position: Position | None = None) -> None:
        self.add(Finding(message, position, "ERROR"))

    def warning(self, message: str, position: Position | None = None) -> None:
        self.add(Finding(message, position, "WARNING"))

    def info(self, message: str, position: Position | None = None) -> None:
        self.add(Finding(message, position, "INFO"))

    def problem(self, error: LanguageError) -> None:
        """Adds the error that a parser raised, with its position."""
        self.error(error.bare_message, error.position)

    def add(self, finding: Finding) -> None:
        is_error = finding.level == "ERROR"
        found = self._errors if is_error else self._notes
        if finding in found:
            return
        if len(found) < limits.PACKAGE_FINDINGS:
            found[finding] = None
        elif is_error:
            self._omitted_errors += 1
        else:
            self._omitted_notes += 1

    def extend(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.add(finding)


def _place(finding: Finding) -> tuple[str, int, int]:
    position = finding.position
    return (position.source, position.line, position.column) if position else ("", 0, 0)
