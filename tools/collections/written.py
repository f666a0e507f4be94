"""Reads a collection back in the form in which it is written here."""

from __future__ import annotations

import json
from pathlib import Path

from paperwasp.relevance.collection import BadCollection, read_judgments, read_queries
from tools.collections.collection import DOCUMENTS, JUDGMENTS, QUERIES, Collection, Document, read_text


def is_written(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (DOCUMENTS, QUERIES, JUDGMENTS))


def read_written(folder: Path) -> Collection:
    """The collection of the three files. Errors: BadCollection with file and line."""
    documents = []
    for at, line in enumerate(read_text(folder / DOCUMENTS).split("\n"), 1):
        if not line.strip():
            continue
        try:
            operation = json.loads(line)
            identity, fields = operation["put"].split(":", 4)[4], operation["fields"]
            documents.append(Document(identity, fields["title"], fields["text"]))
        except (ValueError, TypeError, AttributeError, LookupError):
            where = f"{folder / DOCUMENTS}, line {at}"
            raise BadCollection(f"{where}: expected a put of a document with title and text") from None
    return Collection(documents, read_queries(folder / QUERIES), read_judgments(folder / JUDGMENTS))
