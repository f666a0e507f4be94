"""A schema, and a content node with its log, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any

import orjson

from paperwasp.content.log.records import Mutate
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.reindexing import reindex
from paperwasp.coordination.messages.documents import ReindexRequest, ReindexResponse
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Put, Remove, Update
from paperwasp.document.types import BOOL, BYTE, DOUBLE, FLOAT, INT, LONG, STRING, DocumentType, array_of
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, Schema

ATTRIBUTE, INDEX = AttributeSettings(), IndexSettings()
MUSIC_FIELDS = (
    Field("title", STRING, index=INDEX),
    Field("artist", STRING, index=INDEX, attribute=ATTRIBUTE),
    Field("year", INT, attribute=AttributeSettings(fast_search=True)),
    Field("plays", LONG, attribute=ATTRIBUTE),
    Field("score", FLOAT, attribute=ATTRIBUTE),
    Field("weight", DOUBLE, attribute=ATTRIBUTE),
    Field("rating", BYTE, attribute=ATTRIBUTE),
    Field("live", BOOL, attribute=ATTRIBUTE),
    Field("genre", STRING, attribute=ATTRIBUTE),
    Field("tags", array_of(STRING), attribute=ATTRIBUTE),
    Field("numbers", array_of(FLOAT), attribute=ATTRIBUTE),
    Field("lyrics", array_of(STRING), index=INDEX),
    Field("note", STRING),
    Field("sizes", array_of(INT)),
)
IN_PLACE = [field.name for field in MUSIC_FIELDS if field.attribute and not field.index]


def schema(name: str, *fields: Field) -> Schema:
    types = {field.name: field.type for field in fields if field.in_document}
    by_name = {field.name: field for field in fields}
    nothing: Any = MappingProxyType({})
    return Schema(name, DocumentType(name, types), by_name, nothing, nothing, nothing)


MUSIC = schema("music", *MUSIC_FIELDS)
BOOK = schema("book", Field("title", STRING, index=INDEX), Field("pages", INT, attribute=ATTRIBUTE))
SCHEMAS = {"music": MUSIC, "book": BOOK}


def doc_id(name: object, kind: str = "music") -> DocumentId:
    return DocumentId("n", kind, str(name))


def put(name: object, kind: str = "music", /, **fields: Any) -> Put:
    return Put(doc_id(name, kind), fields)


def update(name: object, kind: str = "music", /, create: bool = False, **fields: Any) -> Update:
    return Update(
        doc_id(name, kind), tuple(FieldUpdate(field, Assign(value)) for field, value in fields.items()), create
    )


def assigned(operation: Update) -> dict[str, Any]:
    """Field → value, of an update that does nothing but assign."""
    values: dict[str, Any] = {}
    for change in operation.updates:
        assert isinstance(change.action, Assign)
        values[change.field] = change.action.value
    return values


def remove(name: object, kind: str = "music") -> Remove:
    return Remove(doc_id(name, kind))


@dataclass
class TestNode:
    """A node whose log is opened and closed with it."""

    __test__ = False

    node: ContentNode
    log: FileOperationLog

    def apply(self, *operations: Operation | Mutate) -> list[Any]:
        """Whether there was a document, or the error, for each of operations that are submitted together."""
        return [getattr(outcome, "existed", outcome) for outcome in self.outcomes(*operations)]

    def outcomes(self, *operations: Operation | Mutate) -> list[Any]:
        """The outcomes, or errors, of operations that are submitted together."""
        answers: list[Any] = [None] * len(operations)
        waiting, done = set(range(len(operations))), Event()

        def answer(place: int, outcome: object) -> None:
            answers[place] = outcome
            waiting.discard(place)
            if not waiting:
                done.set()

        for place, operation in enumerate(operations):
            self.node.operations.submit(operation, partial(answer, place))
        if operations:
            assert done.wait(30)
        return answers

    def get(self, name: object, kind: str = "music") -> Any:
        """What is shown of a document, but for what is false: an unset attribute of type bool is shown so."""
        fields = self.node.reader.get(doc_id(name, kind))
        return None if fields is None else {k: v for k, v in orjson.loads(fields).items() if v is not False}

    def fault(self) -> str | None:
        """Why the node cannot apply what it has logged, if it cannot."""
        return self.node.fault.reason

    def close(self) -> None:
        self.node.stop()
        self.log.close()

    def crash(self) -> None:
        """Ends without a checkpoint, as a killed process does (which also forgets its locks)."""
        self.node._checkpoints.write_last = lambda: None  # type: ignore[method-assign]
        self.close()


def start(path: Path, schemas: Mapping[str, Schema] | None = SCHEMAS, repair: bool = False) -> TestNode:
    log = FileOperationLog(path / "log", repair=repair)
    try:
        node = ContentNode(path, log, repair=repair)
    except BaseException:
        log.close()
        raise
    if schemas is not None:
        node.configure(1, schemas)
    return TestNode(node, log)


def reindexed(node: ContentNode, request: ReindexRequest) -> ReindexResponse:
    """The answer to one request."""
    answers: list[object] = []
    done = Event()

    def reply(answer: object) -> None:
        answers.append(answer)
        done.set()

    reindex(node.reader, node.operations, request, reply)
    assert done.wait(30) and isinstance(answers[0], ReindexResponse), answers
    return answers[0]


@contextmanager
def started(path: Path, schemas: Mapping[str, Schema] | None = SCHEMAS) -> Iterator[TestNode]:
    node = start(path, schemas)
    try:
        yield node
    finally:
        node.close()
