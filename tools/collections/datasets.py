"""Takes a collection of the library ir_datasets, which downloads it, or says where it can be had."""

from __future__ import annotations

from typing import Any, Final

from paperwasp.embedded.frames import import_optional
from tools.collections.collection import Collection, Document, one_line

PREFIX: Final = "ir_datasets:"
_TEXTS: Final = ("text", "abstract", "body", "contents")
_QUERY_TEXTS: Final = ("text", "query", "title")


def read_dataset(name: str) -> Collection:
    """The collection that ir_datasets calls `name`. Errors: MissingLibrary; those of the library."""
    library = import_optional("ir_datasets", "collections by name", "ir_datasets")
    dataset = library.load(name)
    documents = [
        Document(str(each.doc_id), one_line(getattr(each, "title", "") or ""), one_line(_first(each, _TEXTS)))
        for each in dataset.docs_iter()
    ]
    queries = {str(each.query_id): _first(each, _QUERY_TEXTS) for each in dataset.queries_iter()}
    judgments: dict[str, dict[str, int]] = {}
    for each in dataset.qrels_iter():
        judgments.setdefault(str(each.query_id), {})[str(each.doc_id)] = int(each.relevance)
    return Collection(documents, queries, judgments)


def _first(record: Any, names: tuple[str, ...]) -> str:
    """The first of the members that the record has and that says something."""
    return next((str(getattr(record, name)) for name in names if getattr(record, name, None)), "")
