"""Reads the collection TIME, whose format is its own.

Documents begin with `*TEXT`, their number, date and page, queries with `*FIND` and their number; `*STOP` ends both.
Judgments are lines of a query's number and those of its documents, which count documents by their places: the numbers
of `*TEXT` have gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from paperwasp.relevance.collection import BadCollection
from tools.collections.collection import Collection, Document, one_line, read_text

_START: Final = re.compile(r"\*(?:TEXT|FIND)\s+(\d+)\b.*")
_STOP: Final = "*STOP"
_ROWS: Final = re.compile(r"[\d\s]+")


def has_times(path: Path) -> bool:
    """Whether the file has documents of TIME."""
    return read_text(path).lstrip().startswith("*TEXT")


def read_times(files: Sequence[Path]) -> Collection:
    """The collection of these files, of which three are taken by what is in them. Errors: BadCollection with file and
    line, or with what is missing."""
    texts = {path: read_text(path) for path in files}
    documents = [path for path in files if texts[path].lstrip().startswith("*TEXT")]
    queries = [path for path in files if texts[path].lstrip().startswith("*FIND")]
    judgments = [path for path in files if texts[path].strip() and _ROWS.fullmatch(texts[path])]
    for found, what in ((documents, "documents"), (queries, "queries"), (judgments, "judgments")):
        if len(found) != 1:
            raise BadCollection(
                f"Expected one file with {what}, found {', '.join(path.name for path in found) or 'none'}"
            )
    rows = enumerate(_parts(documents[0], texts[documents[0]]), 1)
    found_documents = [Document(str(place), "", text) for place, (_, text) in rows]
    asked = dict(_parts(queries[0], texts[queries[0]]))
    return Collection(found_documents, asked, _judgments(texts[judgments[0]]))


def _parts(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Number and text of each. Errors: BadCollection."""
    number, lines = "", list[str]()
    for at, line in enumerate(text.splitlines(), 1):
        starts = _START.fullmatch(line.strip())
        if starts or line.strip() == _STOP:
            if number:
                yield number, one_line(" ".join(lines))
            number, lines = (str(int(starts[1])) if starts else ""), []
        elif line.startswith(("*TEXT", "*FIND")):
            raise BadCollection(f"{path}, line {at}: expected a number, found {line[:80]!r}")
        else:
            lines.append(line)
    if number:
        yield number, one_line(" ".join(lines))


def _judgments(text: str) -> dict[str, dict[str, int]]:
    """Those of documents that are not there, too: whoever reads a collection counts them."""
    rows = ([int(value) for value in line.split()] for line in text.splitlines())
    return {str(row[0]): {str(place): 1 for place in row[1:]} for row in rows if row}
