"""Reads collections in the format of BEIR, as SciFact and NFCorpus are: corpus.jsonl, queries.jsonl, qrels/test.tsv."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from paperwasp.relevance.collection import BadCollection, read_judgments
from tools.collections.collection import Collection, Document, one_line, read_text


def is_beir(folder: Path) -> bool:
    return (folder / "corpus.jsonl").is_file()


def read_beir(folder: Path, split: str) -> Collection:
    """The documents, and the queries that the split judges. Errors: BadCollection with file and line."""
    documents = [
        Document(
            _member(where, row, "_id"),
            one_line(_member(where, {"title": "", **row}, "title")),
            one_line(_member(where, row, "text")),
        )
        for where, row in _rows(folder / "corpus.jsonl")
    ]
    queries = {
        _member(where, row, "_id"): _member(where, row, "text") for where, row in _rows(folder / "queries.jsonl")
    }
    judgments = read_judgments(folder / "qrels" / f"{split}.tsv")
    judged = {query: text for query, text in queries.items() if query in judgments}
    return Collection(documents, judged or queries, judgments)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Where a row stands, and the row."""
    for at, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {at}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadCollection(f"{where}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise BadCollection(f"{where}: expected an object")
        yield where, row


def _member(where: str, row: dict[str, object], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise BadCollection(f"{where}: expected a text as '{name}'")
    return value
