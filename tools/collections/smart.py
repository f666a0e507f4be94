"""Reads collections in the format of SMART, as Cranfield, CISI, CACM, MEDLINE and ADI are, and Vaswani's own.

SMART: a document or query begins with `.I` and its number; a line of a full stop and a letter begins a section: `.T`
the title, `.W` the text; `.A` authors, `.B` where it was published, `.K` keywords, `.X` references are left out.
Vaswani (NPL): a number on a line of its own, the text, and a line with a slash.

Judgments are lines of numbers: `query document`, with more columns behind (CISI, CACM), with the relevance as the
third (Cranfield, where -1 is not relevant), or `query 0 document relevance` (MEDLINE); Vaswani's are a query's number,
those of its documents, and a slash. What the columns behind say is not the same everywhere, so a judgment is 1 or,
where it is negative, 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from paperwasp.relevance.collection import BadCollection
from tools.collections.collection import Collection, Document, one_line, read_text

_START: Final = re.compile(r"\.I\s*(\S+)\s*")
_SECTION: Final = re.compile(r"\.([A-Z])\s*")
_NUMBER: Final = re.compile(r"\d+")
_QUERY_NAMES: Final = ("qry", "query", "queries")
_DOCUMENT_NAMES: Final = ("all", "doc")
_JUDGMENT_NAMES: Final = ("rel", "rlv", "ass")


def is_smart_file(path: Path) -> bool:
    """Whether documents, queries or judgments of SMART or Vaswani may be in the file."""
    text = read_text(path)
    return _has_records(text) or _has_judgments(text)


def _has_records(text: str) -> bool:
    first = text.lstrip()
    return _START.match(first) is not None or (re.match(r"\d+\s*\n", first) is not None and _has_slashes(text))


def _has_judgments(text: str) -> bool:
    """Whether there is nothing but numbers, and slashes."""
    return re.fullmatch(r"[\d\s./+-]+", text) is not None and text.strip() != ""


def read_smart(files: Sequence[Path]) -> Collection:
    """The collection of these files, of which three are taken by what is in them, and where more have that, by their
    usual names. Errors: BadCollection with file and line, or with what is missing."""
    texts = {path: read_text(path) for path in files}
    judgments = [path for path in files if _has_judgments(texts[path])]
    records = [path for path in files if path not in judgments and _has_records(texts[path])]
    queries = [path for path in records if any(name in path.name.lower() for name in _QUERY_NAMES)]
    documents = _usual([path for path in records if path not in queries], _DOCUMENT_NAMES)
    judgments = _usual(judgments, _JUDGMENT_NAMES)
    for found, what in ((documents, "documents"), (queries, "queries"), (judgments, "judgments")):
        if len(found) != 1:
            names = ", ".join(path.name for path in found) or "none"
            raise BadCollection(f"Expected one file with {what}, found {names}: name the three files themselves")
    return read_files(documents[0], queries[0], judgments[0])


def _usual(files: list[Path], names: Sequence[str]) -> list[Path]:
    """Those of the files that are named as usual, and that are not old; all where that leaves none."""
    if len(files) < 2:
        return files
    usual = [path for path in files if any(name in path.name.lower() for name in names)]
    return [path for path in usual if not path.name.lower().endswith(".old")] or files


def read_files(documents: Path, queries: Path, judgments: Path) -> Collection:
    """The collection of these three files. Errors: BadCollection with file and line."""
    asked = {number: _text_of(record) for number, record in _records(queries)}
    found = [_document(number, record) for number, record in _records(documents)]
    return Collection(found, asked, _judgments(judgments, list(asked)))


def _has_slashes(text: str) -> bool:
    return re.search(r"^\s*/\s*$", text, re.MULTILINE) is not None


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Number → sections. Errors: BadCollection."""
    text = read_text(path)
    found = list(_marked(path, text) if _START.match(text.lstrip()) else _slashed(path, text))
    if not found:
        raise BadCollection(f"{path}: there is nothing in it")
    seen: set[str] = set()
    for number, _ in found:
        if number in seen:
            raise BadCollection(f"{path}: number {number} is there twice")
        seen.add(number)
    return iter(found)


def _marked(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    number, sections, section = "", dict[str, str](), ""
    for at, line in enumerate(text.splitlines(), 1):
        if start := _START.fullmatch(line):
            if number:
                yield number, sections
            number, sections, section = _plain(start[1]), {}, ""
        elif line.startswith(".I") and not line[2:].strip():
            raise BadCollection(f"{path}, line {at}: .I without a number")
        elif begins := _SECTION.fullmatch(line):
            section = begins[1]
        elif section:
            sections[section] = f"{sections.get(section, '')}\n{line}"
        elif line.strip():
            raise BadCollection(f"{path}, line {at}: expected a section like .T or .W, found {line[:80]!r}")
    if number:
        yield number, sections


def _slashed(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    number, lines = "", list[str]()
    for at, line in enumerate(text.splitlines(), 1):
        if line.strip() == "/":
            if number:
                yield number, {"W": "\n".join(lines)}
            number, lines = "", []
        elif number:
            lines.append(line)
        elif line.strip():
            if not _NUMBER.fullmatch(line.strip()):
                raise BadCollection(f"{path}, line {at}: expected a number on a line of its own, found {line[:80]!r}")
            number = _plain(line.strip())
    if number:
        raise BadCollection(f"{path}: the text of {number} does not end with a slash")


def _plain(number: str) -> str:
    """The number without zeros before it, which judgments may leave out."""
    return str(int(number)) if number.isascii() and number.isdigit() else number


def _document(number: str, sections: Mapping[str, str]) -> Document:
    """The document; the title that Cranfield repeats at the start of the text is there once."""
    title, text = one_line(sections.get("T", "")), one_line(sections.get("W", ""))
    return Document(number, title, text.removeprefix(title).lstrip() if title else text)


def _text_of(sections: Mapping[str, str]) -> str:
    """A query's title and text: some of CISI's have both."""
    return one_line(f"{sections.get('T', '')} {sections.get('W', '')}")


def _judgments(path: Path, queries: Sequence[str]) -> dict[str, dict[str, int]]:
    """The judgments by the queries' own numbers. Errors: BadCollection."""
    text = read_text(path)
    rows = list(_lists(path, text) if _has_slashes(text) else _columns(path, text))
    judged = {query for query, _, _ in rows}
    names = {query: query for query in judged}
    if not judged <= set(queries):
        names = _by_position(path, judged, queries)
    judgments: dict[str, dict[str, int]] = {}
    for query, document, relevance in rows:
        judgments.setdefault(names[query], {})[document] = relevance
    return judgments


def _by_position(path: Path, judged: set[str], queries: Sequence[str]) -> dict[str, str]:
    """Where judgments count queries by their place, as Cranfield's do: place → number. Errors: BadCollection."""
    for query in judged:
        if not 1 <= int(query) <= len(queries):
            raise BadCollection(f"{path}: query {query} is neither the number nor the place of one of {len(queries)}")
    return {query: queries[int(query) - 1] for query in judged}


def _columns(path: Path, text: str) -> Iterator[tuple[str, str, int]]:
    rows = [(at, line.split()) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    is_trec = all(len(row) == 4 and row[1] == "0" for _, row in rows)
    for at, row in rows:
        if len(row) < 2 or not all(_NUMBER.fullmatch(value) for value in row[:2]):
            raise BadCollection(f"{path}, line {at}: expected the numbers of a query and a document")
        query, document = row[0], row[2] if is_trec else row[1]
        verdict = row[3] if is_trec else row[2] if len(row) == 3 else "1"
        yield _plain(query), _plain(document), _relevance(f"{path}, line {at}", verdict, is_trec)


def _relevance(where: str, verdict: str, is_trec: bool) -> int:
    try:
        value = float(verdict)
    except ValueError:
        raise BadCollection(f"{where}: '{verdict}' is not a relevance") from None
    return int(value > 0 if is_trec else value >= 0)


def _lists(path: Path, text: str) -> Iterator[tuple[str, str, int]]:
    query = ""
    for at, line in enumerate(text.splitlines(), 1):
        for value in line.split():
            if value == "/":
                query = ""
            elif not _NUMBER.fullmatch(value):
                raise BadCollection(f"{path}, line {at}: '{value}' is not a number")
            elif query:
                yield query, _plain(value), 1
            else:
                query = _plain(value)
