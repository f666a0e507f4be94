"""What a test collection is, and the one form in which it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paperwasp.relevance.collection import BadCollection, check_fit

DOCUMENTS: Final = "documents.jsonl"
QUERIES: Final = "queries.tsv"
JUDGMENTS: Final = "qrels.txt"


@dataclass(frozen=True)
class Document:
    """A text with a title, which may be empty; `id` is what judgments call it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Collection:
    """Documents, queries by their ids, and judgments: query → document → relevance (relevant: more than 0)."""

    documents: Sequence[Document]
    queries: Mapping[str, str]
    judgments: Mapping[str, Mapping[str, int]]

    def check(self) -> None:
        """Says whether the parts fit together. Errors: BadCollection."""
        known: set[str] = set()
        for document in self.documents:
            if document.id in known:
                raise BadCollection(f"There are two documents '{document.id}'")
            known.add(document.id)
        judged = check_fit(self.queries, self.judgments)
        if not any(document in known for query in judged for document in self.judgments[query]):
            named = next(iter(self.judgments[judged[0]]))
            raise BadCollection(
                f"No document of the judgments is in the collection: judgments name them like '{named}', and documents "
                f"are named like '{self.documents[0].id}'"
            )

    def known(self) -> Collection:
        """The collection without judgments of documents that it does not have, and without queries that lose all."""
        there = {document.id for document in self.documents}
        judgments = {
            query: {document: relevance for document, relevance in judged.items() if document in there}
            for query, judged in self.judgments.items()
        }
        judgments = {query: judged for query, judged in judgments.items() if judged}
        queries = {query: text for query, text in self.queries.items() if query in judgments}
        return Collection(self.documents, queries, judgments)

    def unknown_documents(self) -> int:
        """How many judgments are of documents that the collection does not have."""
        known = {document.id for document in self.documents}
        return sum(document not in known for judged in self.judgments.values() for document in judged)


def write(collection: Collection, folder: Path, document_type: str) -> None:
    """Writes the three files: a feed of `document_type` with `title` and `text`, queries a line each, TREC's qrels."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / DOCUMENTS).open("w", encoding="utf-8") as file:
        for document in collection.documents:
            fields = {"title": document.title, "text": document.text}
            operation = {"put": f"id:{document_type}:{document_type}::{document.id}", "fields": fields}
            file.write(json.dumps(operation, ensure_ascii=False) + "\n")
    with (folder / QUERIES).open("w", encoding="utf-8") as file:
        file.writelines(f"{query}\t{one_line(text)}\n" for query, text in collection.queries.items())
    with (folder / JUDGMENTS).open("w", encoding="utf-8") as file:
        for query, judged in collection.judgments.items():
            file.writelines(f"{query} 0 {document} {relevance}\n" for document, relevance in judged.items())


def one_line(text: str) -> str:
    """The text with single spaces in place of white space, and without control characters, which documents refuse."""
    return "".join(letter for letter in " ".join(text.split()) if letter >= " ")


def read_text(path: Path) -> str:
    """The text of a file: UTF-8, or Latin-1, in which some of the old collections are. Errors: BadCollection."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadCollection(f"Could not read '{path}': {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
