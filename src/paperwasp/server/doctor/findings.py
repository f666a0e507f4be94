"""A finding: what was looked at, how it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

Level = Literal["ok", "warning", "error"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "warning", "error")
"""The number of each is the exit status of a command that found no worse."""


class Finding(Struct, frozen=True):
    """One line of a report. `remedy` is empty where there is nothing to do."""

    area: str
    subject: str
    level: Level
    message: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """The members of the finding."""
        return {
            "area": self.area,
            "subject": self.subject,
            "level": self.level,
            "message": self.message,
            "remedy": self.remedy,
        }


class Area(Struct, frozen=True):
    """Makes the findings of one area."""

    name: str

    def ok(self, subject: str, message: str) -> Finding:
        return Finding(self.name, subject, "ok", message)

    def warning(self, subject: str, message: str, remedy: str) -> Finding:
        return Finding(self.name, subject, "warning", message, remedy)

    def error(self, subject: str, message: str, remedy: str) -> Finding:
        return Finding(self.name, subject, "error", message, remedy)


def worst(findings: Iterable[Finding]) -> int:
    """The number of the worst level: 0, 1 or 2."""
    return max((LEVELS.index(finding.level) for finding in findings), default=0)
