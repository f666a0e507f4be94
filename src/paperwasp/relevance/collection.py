"""Reads queries and judgments in the forms in which collections and pyvespa's evaluators have them.

Queries: lines of an id, a tab and a text; JSON `{id: text}`; JSON lines with `_id` or `id` and `text` or `query`;
topics of TREC (`<top> <num> <title>`). Judgments: lines of TREC (`query 0 document relevance`); columns `query document
relevance` with a header or without, separated by tabs or commas; JSON `{query: {document: relevance}}` or
`{query: [documents]}`; JSON lines with `query_id`, `document_id` and `relevance`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput

Queries = Mapping[str, str]
"""Id → text."""
Judgments = Mapping[str, Mapping[str, int]]
"""Query → document → relevance, of which more than 0 is relevant."""
_QUERY_IDS: Final = ("_id", "id", "query_id", "qid", "query-id")
_TEXTS: Final = ("text", "query", "title")
_DOCUMENTS: Final = ("document_id", "doc_id", "docid", "corpus-id", "document")
_RELEVANCES: Final = ("relevance", "score", "label", "rel")
_TREC_PARTS: Final = 4
"""Of a line: query, 0, document, relevance, which some files separate by tabs and spaces together."""
_TOPIC: Final = compile_later(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_NUMBER: Final = compile_later(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE: Final = compile_later(r"<title>\s*(?:Topic:)?\s*(.*?)(?:</title>|<|$)", re.DOTALL | re.IGNORECASE)


class BadCollection(InvalidInput):
    """Queries or judgments that cannot be read, or that do not fit together."""


def read_queries(path: Path) -> dict[str, str]:
    """The queries of a file, in its order. Errors: BadCollection with the line."""
    text = _read(path)
    if text.lstrip().startswith("{"):
        queries = _once(path, _queries_of_json(path, text))
    elif "<top>" in text.lower():
        queries = _once(path, _topics(path, text))
    else:
        queries = _once(path, _query_lines(path, text))
    if not queries:
        raise BadCollection(f"{path}: there is no query in it")
    return queries


def _once(path: Path, queries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Errors: BadCollection for an id that two queries have: only one of them would be asked."""
    found: dict[str, str] = {}
    for query, text in queries:
        if query in found:
            raise BadCollection(f"{path}: there are two queries '{query}'")
        found[query] = text
    return found


def read_judgments(path: Path) -> dict[str, dict[str, int]]:
    """The judgments of a file. Errors: BadCollection with the line."""
    text = _read(path)
    judgments: dict[str, dict[str, int]] = {}
    rows = _judgments_of_json(path, text) if text.lstrip().startswith("{") else _judgment_lines(path, text)
    for query, document, relevance in rows:
        judgments.setdefault(query, {})[document] = relevance
    if not judgments:
        only = " but the names of columns" if text.strip() else ""
        raise BadCollection(f"{path}: there is no judgment in it{only}: expected lines 'query 0 document relevance'")
    return judgments


def judgments_of_mapping(judged: Mapping[str, Mapping[str, int] | Iterable[str]]) -> dict[str, dict[str, int]]:
    """Judgments; of a query there may be all documents, or a list of those that are relevant. Errors: BadCollection."""
    judgments = {
        query: {document: _relevance(f"query '{query}'", value) for document, value in _pairs(documents)}
        for query, documents in judged.items()
    }
    if not judgments:
        raise BadCollection("There is no judgment")
    return judgments


def _pairs(documents: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(documents, str):
        return ((documents, 1),)
    if isinstance(documents, Mapping):
        return ((str(document), relevance) for document, relevance in documents.items())
    return ((str(document), 1) for document in documents)


def check_fit(queries: Queries, judgments: Judgments) -> list[str]:
    """The queries that are judged, in their order. Errors: BadCollection where none is."""
    judged = [query for query in queries if any(relevance > 0 for relevance in judgments.get(query, {}).values())]
    if not queries:
        raise BadCollection("There is no query")
    if not judged:
        some, others = next(iter(queries)), next(iter(judgments))
        if any(query in judgments for query in queries):
            raise BadCollection(
                "No query has a relevant document in the judgments: all that are judged have relevance 0"
            )
        raise BadCollection(
            f"No query has a relevant document in the judgments: queries are named like '{some}', and in the judgments "
            f"like '{others}'"
        )
    return judged


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadCollection(f"Could not read '{path}': {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadCollection(f"{path}: not UTF-8 at byte {error.start}") from None


def _queries_of_json(path: Path, text: str) -> Iterable[tuple[str, str]]:
    whole = _whole(text)
    if whole is not None and not any(name in whole for name in _QUERY_IDS):
        return [(str(query), _text_of(path, query, value)) for query, value in whole.items()]
    rows = _rows(path, text)
    return [(str(_member(path, at, row, _QUERY_IDS)), str(_member(path, at, row, _TEXTS))) for at, row in rows]


def _text_of(path: Path, query: str, value: Any) -> str:
    found = value.get("query") if isinstance(value, dict) else value
    if not isinstance(found, str):
        raise BadCollection(f"{path}: query '{query}' has no text")
    return found


def _judgments_of_json(path: Path, text: str) -> Iterator[tuple[str, str, int]]:
    whole = _whole(text)
    if whole is None or any(name in whole for name in _DOCUMENTS):
        for number, row in _rows(path, text):
            relevance = next((row[name] for name in _RELEVANCES if name in row), 1)
            names = (_member(path, number, row, _QUERY_IDS[2:]), _member(path, number, row, _DOCUMENTS))
            yield str(names[0]), str(names[1]), _relevance(f"{path}, line {number}", relevance)
        return
    for query, documents in whole.items():
        for document, relevance in _pairs(documents):
            yield str(query), document, _relevance(f"{path}, query '{query}'", relevance)


def _whole(text: str) -> dict[str, Any] | None:
    """The text as one object; None: it is lines of them."""
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return content if isinstance(content, dict) else None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, by number. Only line feeds end them: texts may hold what `splitlines` splits at."""
    return ((number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(text):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadCollection(f"{path}, line {number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise BadCollection(f"{path}, line {number}: expected an object")
        yield number, row


def _member(path: Path, number: int, row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    found = next((row[name] for name in names if name in row), None)
    if found is None:
        raise BadCollection(f"{path}, line {number}: expected one of {', '.join(names)}")
    return found


def _topics(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for topic in _TOPIC.findall(text):
        number, title = _NUMBER.search(topic), _TITLE.search(topic)
        if number is None or title is None:
            raise BadCollection(f"{path}: a topic without <num> or <title>: {topic.strip()[:80]}")
        yield number[1], " ".join(title[1].split())


def _query_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, line in _lines(text):
        query, tab, words = line.partition("\t")
        if not tab:
            raise BadCollection(f"{path}, line {number}: expected an id, a tab and a query")
        if number == 1 and query.strip().lower() in _QUERY_IDS:
            continue
        yield query.strip(), words.strip()


def _judgment_lines(path: Path, text: str) -> Iterator[tuple[str, str, int]]:
    for number, line in _lines(text):
        parts = _columns(line.strip())
        if not _is_row(parts):
            raise BadCollection(f"{path}, line {number}: expected 'query 0 document relevance', found {line[:80]!r}")
        if number == 1 and not _is_number(parts[-1]):
            continue  # the names of columns
        yield parts[0], parts[-2], _relevance(f"{path}, line {number}", parts[-1])


def _columns(line: str) -> list[str]:
    """The parts of a line between its tabs, its commas or its spaces: ids may hold those that do not separate them."""
    if "\t" in line:
        parts, mixed = _separated(line, "\t"), line.split()
        return mixed if not _is_row(parts) and len(mixed) == _TREC_PARTS else parts
    spaced = [part for part in line.split(" ") if part]
    if "," not in line:
        return spaced
    parts = _separated(line, ",")
    return parts if not _is_row(spaced) or (_is_row(parts) and _is_number(parts[-1])) else spaced


def _separated(line: str, separator: str) -> list[str]:
    """The parts without their quotes; none where quotes do not end."""
    try:
        (parts,) = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
    except csv.Error:
        return []
    return [part.strip() for part in parts]


def _is_row(parts: list[str]) -> bool:
    return len(parts) in (3, 4) and parts[0] != "" and parts[-2] != ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _relevance(where: str, value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadCollection(f"{where}: '{value}' is not a number") from None
    if not number.is_integer():
        raise BadCollection(f"{where}: '{value}' is not a whole number")
    return int(number)
