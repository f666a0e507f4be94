"""The search handler with real content nodes behind it: two clusters of small documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any
from urllib.parse import urlencode

import orjson

from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.content.node import ContentNode
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Put, Remove, Update
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.http.messages import Request, Response
from paperwasp.schema import parse_schemas
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService
from tests.patience import patient_queries

_FIELDS = """
    field title type string { indexing: index | summary
      index: enable-bm25 }
    field name type string { indexing: attribute | summary }
    field year type int { indexing: attribute | summary }
    field price type double { indexing: attribute | summary }
"""
_PROFILES = """
  rank-profile year { first-phase { expression: attribute(year) } }
  rank-profile bm25 { first-phase { expression: bm25(title) } }
  rank-profile again inherits year { second-phase { rerank-count: 5
    expression: -attribute(year) } }
  rank-profile level inherits bm25 { second-phase { rerank-count: 3
    expression: 2 } }
  rank-profile words inherits bm25 { second-phase { rerank-count: 4
    expression: attribute(year) * 1e15
    rank-score-drop-limit: -1e15 } }
  rank-profile spread inherits year { diversity { attribute: name
      min-groups: 2 }
    second-phase { rerank-count: 6
      expression: if (attribute(year) > 1, 1 / 0, attribute(year)) } }
  rank-profile timely { first-phase { expression: now } }
"""
_PARTLY = "rank-profile partly { first-phase { expression: %s } }"
"""Asks for what is not executed, as there are no files, in `book` only."""
SOURCES = {
    f"schemas/{name}.sd": f"schema {name} {{ document {name} {{ {_FIELDS} }} {_PROFILES} {_PARTLY % shown} {more} }}"
    for name, shown, more in (
        ("music", "attribute(year)", "document-summary short { summary name {} }"),
        ("book", 'xgboost("trees.json")', ""),
        ("thing", "attribute(year)", ""),
    )
}
CLUSTERS = {"media": ("music", "book"), "other": ("thing",)}
CLUSTER_OF = {kind: cluster for cluster, kinds in CLUSTERS.items() for kind in kinds}


class Running:
    """The handler, and the nodes by cluster. Queries of one object run in one event loop."""

    def __init__(self, handler: SearchHandler, nodes: dict[str, ContentNode], loop: asyncio.AbstractEventLoop) -> None:
        self.handler = handler
        self.nodes = nodes
        self._loop = loop

    def answer(self, **parameters: object) -> Response:
        """The answer, which a slow machine has time for unless the parameters say otherwise."""
        query = urlencode({"timeout": "60s"} | {name.replace("__", "."): said for name, said in parameters.items()})
        return self._loop.run_until_complete(self.handler.handle(Request("GET", "/search/", query)))

    def ask(self, **parameters: object) -> dict[str, Any]:
        """The root of the answer."""
        root: dict[str, Any] = orjson.loads(self.answer(**parameters).body)["root"]
        return root

    def apply(self, *operations: Operation) -> None:
        """Returns when all are applied, in their order; those of one node are logged together."""
        done = [self._submit(operation) for operation in operations]
        assert all(each.wait(30) for each in done)

    def _submit(self, operation: Operation) -> Event:
        done = Event()
        self.nodes[CLUSTER_OF[operation.id.document_type]].operations.submit(operation, lambda _: done.set())
        return done


def put(name: object, kind: str = "music", /, **fields: object) -> Put:
    return Put(DocumentId("n", kind, str(name)), fields)


def update(name: object, kind: str = "music", /, **fields: object) -> Update:
    return Update(
        DocumentId("n", kind, str(name)), tuple(FieldUpdate(field, Assign(value)) for field, value in fields.items())
    )


def remove(name: object, kind: str = "music") -> Remove:
    return Remove(DocumentId("n", kind, str(name)))


@contextmanager
def running() -> Iterator[Running]:
    schemas = parse_schemas(SOURCES).schemas
    served = ServedSchemas()
    messenger = EmbeddedMessenger()
    with ExitStack() as stack:
        stack.enter_context(patient_queries())
        directory = Path(stack.enter_context(TemporaryDirectory()))
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        nodes = {}
        for cluster, kinds in CLUSTERS.items():
            log = FileOperationLog(directory / cluster / "log")
            stack.callback(log.close)
            node = nodes[cluster] = ContentNode(directory / cluster / "node", log)
            stack.callback(node.stop)
            node.configure(1, {kind: schemas[kind] for kind in kinds})
            pool = WorkerPool(cluster)
            stack.callback(pool.shutdown)
            service = ContentService(node, pool, served)
            messenger.serve(f"content/{cluster}", service.handle)
        clusters = (ClusterConfig(name, {kind: schemas[kind] for kind in kinds}) for name, kinds in CLUSTERS.items())
        yield Running(SearchHandler(messenger, SearchConfig(tuple(clusters))), nodes, loop)
