"""Two content clusters that are fed the same: one as it is, one in which every operation goes the general way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlencode

from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import Content, ContentDocument
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.container.document import routes
from paperwasp.container.document.v1 import ROOT as DOCUMENT_ROOT
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.content.node import ContentNode
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.types import DocumentType
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun, settled
from paperwasp.schema import parse_schemas
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService
from tests.http.batched import Client, KeptAnswers, alike

SCHEMAS: Final = {
    "schemas/music.sd": """
schema music {
  document music {
    field title type string { indexing: index | summary
      index: enable-bm25 }
    field body type string { indexing: index | summary }
    field name type string { indexing: index | attribute | summary
      match: word }
    field genre type string { indexing: attribute | summary }
    field parts type array<string> { indexing: index | summary }
    field labels type array<string> { indexing: attribute | summary }
    field whole type int { indexing: attribute | summary }
    field small type byte { indexing: attribute | summary }
    field long type long { indexing: attribute | summary
      attribute: fast-search }
    field truth type bool { indexing: attribute | summary }
    field double type double { indexing: attribute | summary }
    field single type float { indexing: attribute | summary }
    field shown type string { indexing: summary }
    field vector type tensor<float>(x[3]) { indexing: attribute | summary }
    field doubles type tensor(x[2]) { indexing: attribute | summary }
    field bytes type tensor<int8>(x[2]) { indexing: attribute | summary }
    field cells type tensor(y{}) { indexing: attribute | summary }
    field weights type weightedset<string> { indexing: attribute | summary }
    field numbers type array<int> { indexing: attribute | summary }
    field pairs type map<string, int> { indexing: summary }
    field raw type raw { indexing: summary }
    field place type position { indexing: attribute | summary }
    field uri type uri { indexing: index | summary }
  }
}
""",
    "schemas/book.sd": """
schema book {
  document book {
    field title type string { indexing: index | summary }
    field pages type int { indexing: attribute | summary }
  }
  field heading type string { indexing: input title . " of book" | index | summary }
}
""",
}
"""Fields of all kinds, plain and others, and a type whose documents get a field by indexing."""
START_NS: Final = 1_700_000_000_000_000_000


class RecordedLog(FileOperationLog):
    """Keeps what is written, since files go with a checkpoint, whenever one is due."""

    written = b""

    def _write(self, data: bytes) -> None:
        self.written += data
        super()._write(data)


class Way:
    """One of the two clusters, in a directory of its own."""

    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._directory = directory
        self._loop = loop
        self.now_ns = START_NS
        self.schemas = dict(parse_schemas(SCHEMAS).schemas)
        self._open()

    def _open(self) -> None:
        environment = replace(SYSTEM, time_ns=lambda: self.now_ns)
        self._log = RecordedLog(self._directory / "log", environment=environment)
        self.node = ContentNode(self._directory / "node", self._log, environment=environment)
        self.node.configure(1, self.schemas)
        self._pool = WorkerPool("media")
        self._service = ContentService(self.node, self._pool, ServedSchemas())
        messenger = EmbeddedMessenger()
        messenger.serve("content/media", self._service.handle, self._service.handle_all)
        documents = tuple(ContentDocument(name) for name in self.schemas)
        cluster = ContentCluster(Content("media", documents), self.schemas)
        self.api = DocumentApi(messenger, environment=environment)
        self._configure(ApplicationModel((), (cluster,), self.schemas, (), ""))
        self._handler = SearchHandler(messenger, SearchConfig((ClusterConfig("media", self.schemas),)))

    def _configure(self, model: ApplicationModel) -> None:
        self.api.configure(model)

    def close(self, checkpoint: bool = True) -> None:
        self._service.close()
        self._pool.shutdown()
        self.node.stop(checkpoint=checkpoint)
        self._log.close()

    def restart(self, checkpoint: bool) -> None:
        """Opens what is on disk. Without a checkpoint, what was fed since the last one comes from the log."""
        self.close(checkpoint)
        self._open()

    def send(self, requests: Sequence[Request]) -> list[Response]:
        """The answers to requests that come together: the operations among them are one batch of the writer's."""

        async def send() -> list[Any]:
            begun = self._begin_all(requests)
            return list(await asyncio.gather(*(settled(each) for each in begun)))

        return self._loop.run_until_complete(asyncio.wait_for(send(), 60))

    def _begin_all(self, requests: Sequence[Request]) -> list[Begun]:
        return [self.api.begin(request) for request in requests]

    def logged(self) -> bytes:
        """What was logged since the last call, or since the start."""
        written, self._log.written = self._log.written, b""
        return written

    def search(self, **parameters: object) -> Response:
        query = urlencode({"timeout": "60s"} | parameters)
        return self._loop.run_until_complete(self._handler.handle(Request("GET", "/search/", query)))


class BatchedWay(Way):
    """Every second time requests that are alike are taken together, as those are that come together over HTTP/2."""

    _is_together = False

    def _begin_all(self, requests: Sequence[Request]) -> list[Begun]:
        self._is_together = not self._is_together
        if not self._is_together:
            return super()._begin_all(requests)
        begun: list[Begun] = []
        line = KeptAnswers(Client())
        for run in alike(requests, DOCUMENT_ROOT):
            batch = line.batch(run)
            taken = self.api.begin_batch(batch)
            batch.take(taken)
            begun += line.answers_of(batch)[:taken]
            begun += [self.api.begin(request) for request in run[taken:]]
        return begun


class GeneralWay(Way):
    """No field is plain, so all bodies are read, and all operations encoded, the general way."""

    def _configure(self, model: ApplicationModel) -> None:
        with patch.object(routes, "PlainFields", _NothingPlain):
            super()._configure(model)


class _NothingPlain:
    def __init__(self, _: DocumentType) -> None:
        pass

    def read_put(self, *_: object) -> None:
        return None

    read_update = read_change = read_put


class Ways:
    """The two, which are sent the same and compared."""

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self.short = BatchedWay(directory / "short", self._loop)
        self.general = GeneralWay(directory / "general", self._loop)

    def close(self) -> None:
        self.short.close()
        self.general.close()
        self._loop.close()

    def send(self, requests: Sequence[Request]) -> list[Response]:
        """The answers, which are the same, as is what was logged for them."""
        found, wanted = (way.send(requests) for way in (self.short, self.general))
        for request, one, other in zip(requests, found, wanted, strict=True):
            assert _shown(one) == _shown(other), request
        assert self.short.logged() == self.general.logged(), requests
        return found

    def search(self, **parameters: object) -> Response:
        """The answer, which is the same."""
        found, wanted = (way.search(**parameters) for way in (self.short, self.general))
        assert (found.status, found.body) == (wanted.status, wanted.body), parameters
        return found

    def restart(self, checkpoint: bool) -> None:
        for way in (self.short, self.general):
            way.restart(checkpoint)

    def pass_time(self, nanoseconds: int) -> None:
        for way in (self.short, self.general):
            way.now_ns += nanoseconds


def _shown(answer: Response) -> tuple[int, bytes, str, dict[str, str]]:
    return answer.status, answer.body, answer.content_type, dict(answer.headers)
