"""A search handler before one content node, without a port: what a request over HTTP answers, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.coordination.messenger import EmbeddedMessenger, Reply
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Put
from paperwasp.http.messages import Request, Response
from paperwasp.schema.model import Schema
from paperwasp.search.query import SearchResponse
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService
from tests.content.nodes import TestNode, doc_id, start


class SearchCluster:
    """A cluster named `things` of one node, which counts how many hits were rendered from rows."""

    def __init__(self, node: TestNode, schemas: Mapping[str, Schema], stack: ExitStack) -> None:
        self.node = node
        self.rendered = self.left = 0
        self._schemas = schemas
        messenger, pool = EmbeddedMessenger(), WorkerPool("search-cluster")
        stack.callback(pool.shutdown)
        self._service = ContentService(node.node, pool, ServedSchemas())
        messenger.serve("content/things", self._handle)
        self._handler = SearchHandler(messenger, SearchConfig((ClusterConfig("things", dict(schemas)),)))
        self._loop = asyncio.new_event_loop()
        stack.callback(self._loop.close)

    def _handle(self, message: Any, reply: Reply) -> None:
        def count(answer: object) -> None:
            if isinstance(answer, SearchResponse) and answer.page is not None:
                self.left += answer.page.count(None)
                self.rendered += len(answer.page) - answer.page.count(None)
            reply(answer)

        self._service.handle(message, count)

    def answer(self, **parameters: object) -> Response:
        """Answer a request with these parameters; `__` in a name stands for a dot."""
        given = {"timeout": "20s", "noCache": "true", **{n.replace("__", "."): v for n, v in parameters.items()}}
        headers = {"x-yahoo-vespa-benchmarkdata": "true"}
        request = Request("GET", "/search/", urlencode(given), headers)
        return self._loop.run_until_complete(self._handler.handle(request))

    def feed(self, fields: Mapping[int, dict[str, Any]]) -> None:
        """Put things, by number, with these fields as JSON."""
        reader = DocumentReader(self._schemas["thing"].document)
        self.node.apply(*(Put(doc_id(name, "thing"), reader.read_put(given)) for name, given in fields.items()))


@contextmanager
def search_cluster(path: Path, schemas: Mapping[str, Schema]) -> Iterator[SearchCluster]:
    with ExitStack() as stack:
        node = start(path, dict(schemas))
        stack.callback(node.close)
        yield SearchCluster(node, schemas, stack)
