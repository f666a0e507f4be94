"""`.vespaignore`: patterns of paths that are not part of the package. The command line heeds it, the server does not.

Vespa: https://docs.vespa.ai/en/applications/vespaignore.html; patterns are those of Go's `filepath.Match`.
"""

from __future__ import annotations

import re
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.errors import LanguageError, Position

IGNORE_FILE: Final = ".vespaignore"
_PIECE: Final = compile_later(r"(?P<any>\*+)|(?P<one>\?)|\\(?P<escaped>.)|(?P<set>\[)|(?P<plain>[^\\])", re.DOTALL)
_SET: Final = compile_later(r"\[(?P<not>\^?)(?P<ranges>(?:(?:\\.|[^\\\]-])(?:-(?:\\.|[^\\\]-]))?)+)\]", re.DOTALL)
_RANGE: Final = compile_later(r"\\?(.)(?:-\\?(.))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Ignored:
    """The patterns of one package."""

    patterns: tuple[re.Pattern[str], ...] = ()
    folders: tuple[str, ...] = ()
    """Patterns that end in a slash: all that is below is ignored, though not the folder."""

    def __contains__(self, path: str) -> bool:
        """Whether a file or folder is left out; with a folder all that is in it."""
        return path.startswith(self.folders) or any(pattern.fullmatch(path) for pattern in self.patterns)


def parse_ignored(text: str) -> Ignored:
    """The patterns in an ignore file: one a line, without empty lines and comments.

    Errors: LanguageError for a pattern that is none.
    """
    patterns: list[re.Pattern[str]] = []
    folders: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        patterns.append(_pattern(pattern, Position(IGNORE_FILE, number, 1)))
        if pattern.endswith("/"):
            folders.append(pattern)
    return Ignored(tuple(patterns), tuple(folders))


def _pattern(pattern: str, position: Position) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            raise LanguageError(f"bad pattern: {pattern}", position)
        at = piece.end()
        if piece["set"]:
            found = _SET.match(pattern, piece.start())
            if found is None:
                raise LanguageError(f"bad pattern: {pattern}", position)
            at = found.end()
            parts.append(_set(found, pattern, position))
        elif piece["any"]:
            parts.append("[^/]*")
        elif piece["one"]:
            parts.append("[^/]")
        else:
            parts.append(re.escape(piece["escaped"] or piece["plain"]))
    return re.compile("".join(parts), re.DOTALL)


def _set(found: re.Match[str], pattern: str, position: Position) -> str:
    ranges: list[str] = []
    for first, last in _RANGE.findall(found["ranges"]):
        if last and last < first:
            raise LanguageError(f"bad pattern: {pattern}", position)
        ranges.append(re.escape(first) + (f"-{re.escape(last)}" if last else ""))
    return f"[{found['not']}{''.join(ranges)}]"
