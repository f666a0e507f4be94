"""How the commands show things in a terminal: findings about a package, bars of bytes, and counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.errors import Finding, Position

# Findings about an application package as a compiler shows them: the place, the line, and a caret below it.
#
# What a service says of a package that it refuses are texts with places; the files are here.


LEVELS: Final[Mapping[str, str]] = {"ERROR": "error", "WARNING": "warning", "INFO": "note"}
"""Level → what it is called, the worst first."""
ERROR_STYLE: Final = "bold red"
_STYLES: Final[Mapping[str, str]] = {"ERROR": ERROR_STYLE, "WARNING": "bold yellow", "INFO": "bold cyan"}
_CARET_STYLE: Final = "bold green"
_SHOWN_CHARACTERS: Final = 100
"""The characters of a source line that are shown; of a longer line those around the place."""
_BEFORE_CHARACTERS: Final = 60
_NAMED: Final = compile_later(r"'([^'\s]+)'")
_NO_FIELD: Final = compile_later(r"no field '([^'\s]+)'")
_PLACE: Final = compile_later(r"(?:(.*): )?(\S.*), line ([0-9]+), column ([0-9]+): (.*)")
"""How a text says a place: what comes before it, file, line, column and message."""
_CUT: Final = "…"


def excerpts(text: str, files: Mapping[str, bytes], level: Literal["ERROR", "WARNING", "INFO"] = "ERROR") -> list[str]:
    """The lines of a text, and where one of them names a place in these files, that place as `describe` shows it."""
    shown: list[str] = []
    for line in text.split("\n"):
        found = _PLACE.fullmatch(line)
        if found is None or found[2] not in files:
            shown.append(line)
            continue
        if found[1]:
            shown.append(f"{found[1]}:")
        place = Position(found[2], int(found[3]), int(found[4]))
        shown += [each.plain for each in describe(Finding(found[5], place, level), files)]
    return shown


def describe(finding: Finding, files: Mapping[str, bytes]) -> Iterator[Text]:
    """Makes the lines that show a finding: where and what, and the place in the source if there is one."""
    place = _named_place(finding, files)
    where = f"{place.source}:{place.line}:{place.column}: " if place and place.source else ""
    name, style = LEVELS[finding.level], _STYLES[finding.level]
    yield Text.assemble((where, "bold"), (f"{name}: ", style), _printable(finding.message))
    line = _source_line(place, files)
    if place is not None and line:
        yield from _show_place(line, place.column - 1)


def _source_line(place: Position | None, files: Mapping[str, bytes]) -> str:
    if place is None or place.source not in files:
        return ""
    lines = files[place.source].decode("utf-8", "replace").split("\n")
    return lines[place.line - 1].rstrip("\r") if 0 < place.line <= len(lines) else ""


def _named_place(finding: Finding, files: Mapping[str, bytes]) -> Position | None:
    """The place of the word that the message names first, in the element that begins at the finding's place: its
    statement on that line, and where it opens a block, the block."""
    place, named = finding.position, _NO_FIELD.search(finding.message) or _NAMED.search(finding.message)
    line = _source_line(place, files)
    if place is None or named is None or not line:
        return place
    word = re.compile(rf"(?<![\w.-]){re.escape(named[1])}(?![\w-])")
    if found := word.search(line, max(place.column - 1, 0)):
        return replace(place, column=found.start() + 1)
    if not line.endswith("{"):
        return place
    depth = 0
    for number, each in enumerate(files[place.source].decode("utf-8", "replace").split("\n")[place.line - 1 :]):
        code = each.partition("#")[0]
        if found := word.search(code):
            return replace(place, line=place.line + number, column=found.start() + 1)
        depth += code.count("{") - code.count("}")
        if depth <= 0:
            return place
    return place


def _show_place(line: str, index: int) -> Iterator[Text]:
    """The part of the line around `index`, and a caret below it. Tabs stay, so that both are indented alike."""
    index = min(max(index, 0), len(line))
    start = index - _BEFORE_CHARACTERS if index > _SHOWN_CHARACTERS else 0
    before = (_CUT if start else "") + _printable(line[start:index])
    rest = _printable(line[index : start + _SHOWN_CHARACTERS])
    yield Text(before + rest + (_CUT if start + _SHOWN_CHARACTERS < len(line) else ""))
    indent = "".join("\t" if character == "\t" else " " * cell_len(character) for character in before)
    yield Text.assemble(indent, ("^", _CARET_STYLE))


def _printable(text: str) -> str:
    """The text without characters that would do something to a terminal."""
    return "".join(character if character.isprintable() or character in "\t\n" else "\ufffd" for character in text)


@contextmanager
def byte_bar(
    what: str, total_bytes: int | None, console: Console, *, transient: bool = False
) -> Iterator[Callable[[int], None]]:
    """Shows a bar while the block runs; what it yields is called with the bytes that are done besides. `transient`: the
    bar goes with the block."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=transient) as progress:
        task = progress.add_task(what, total=total_bytes or None)
        yield lambda size_bytes: progress.advance(task, size_bytes)


def counted(count: int, name: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
