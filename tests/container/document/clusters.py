"""An application with real content nodes behind the document API, for tests of visiting and of bulk operations."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import Content, ContentDocument
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.content.node import ContentNode
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import FLOAT, INT, LONG, STRING, DocumentType, array_of, tensor_field
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.schema.model import AttributeSettings, Field, Schema
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService

START_NS = 1_700_000_000_000_000_000
ATTRIBUTE = AttributeSettings()
MUSIC_FIELDS = (
    Field("title", STRING),
    Field("year", INT, attribute=ATTRIBUTE),
    Field("plays", LONG, attribute=ATTRIBUTE),
    Field("tags", array_of(STRING)),
    Field("rating", FLOAT),
    Field("vector", tensor_field(TensorType.parse("tensor<float>(x[2])"))),
)
"""Fields of `music`; `rock` inherits it."""


def schema(name: str, fields: Sequence[Field], inherits: tuple[str, ...] = ()) -> Schema:
    nothing: Any = MappingProxyType({})
    by_name = {field.name: field for field in fields}
    document = DocumentType(name, {field.name: field.type for field in fields}, inherits)
    return Schema(name, document, by_name, nothing, nothing, nothing)


SCHEMAS = {
    "music": schema("music", MUSIC_FIELDS),
    "rock": schema("rock", (*MUSIC_FIELDS, Field("loudness", INT)), ("music",)),
    "book": schema("book", (Field("title", STRING), Field("pages", INT, attribute=ATTRIBUTE))),
    "artist": schema("artist", (Field("name", STRING),)),
}
"""`artist` is global."""


def cluster(name: str, *types: str) -> ContentCluster:
    documents = tuple(ContentDocument(type, is_global=type == "artist") for type in types)
    return ContentCluster(Content(name, documents), {type: SCHEMAS[type] for type in types})


def model(*clusters: ContentCluster) -> ApplicationModel:
    return ApplicationModel((), clusters, SCHEMAS, (), "")


class Clock:
    """Time that stands still, a microsecond for each look aside."""

    def __init__(self) -> None:
        self.ns = START_NS

    def time_ns(self) -> int:
        self.ns += 1000
        return self.ns


class Running:
    """The API, and the nodes of its clusters by name."""

    def __init__(self, api: DocumentApi, nodes: dict[str, ContentNode], messenger: EmbeddedMessenger) -> None:
        self.api = api
        self.nodes = nodes
        self.messenger = messenger

    async def send(
        self, method: str, target: str, body: str | bytes = b"", headers: dict[str, str] | None = None
    ) -> Response:
        """The answer, whole; a streamed one is put together."""
        path, _, query = target.partition("?")
        data = body.encode() if isinstance(body, str) else body
        return await whole(await self.api.handle(Request(method, path, query, headers or {}, data)))


async def whole(answer: Answer) -> Response:
    if isinstance(answer, Response):
        return answer
    pieces = [piece async for piece in answer.chunks]
    return Response(answer.status, b"".join(pieces), answer.content_type, answer.headers)


@contextmanager
def running(directory: Path, *clusters: ContentCluster) -> Iterator[Running]:
    """Everything in one process. Call it outside the event loop; stop is graceful."""
    with ExitStack() as stack:
        messenger, nodes, clock = EmbeddedMessenger(), {}, Clock()
        environment = replace(SYSTEM, time_ns=clock.time_ns)
        for found in clusters:
            log = FileOperationLog(directory / found.id / "log")
            stack.callback(log.close)
            node = ContentNode(directory / found.id / "node", log, environment=environment)
            stack.callback(node.stop)
            node.configure(1, found.schemas)
            pool = WorkerPool("query")
            stack.callback(pool.shutdown)
            messenger.serve(f"content/{found.id}", ContentService(node, pool, ServedSchemas()).handle)
            nodes[found.id] = node
        api = DocumentApi(messenger, environment=environment)
        api.configure(model(*clusters))
        yield Running(api, nodes, messenger)


def cases(script: Path) -> Iterator[tuple[str, str]]:
    """Request and expected answer, from blocks that empty lines separate; lines with `# ` are comments."""
    lines = [line for line in script.read_text().splitlines() if not line.startswith("# ") and line != "#"]
    for block in "\n".join(lines).split("\n\n"):
        if block.strip():
            request, _, expected = block.strip().partition("---")
            yield request.strip(), expected.strip()


async def answered(service: Running, text: str, continuations: list[str]) -> str:
    """The answer to `METHOD target`, header lines, and a body that begins with `{`.

    Continuations are shown as <continuation>; in a request that is the last one that was given.
    """
    line, *rest = text.split("\n")
    for number, token in enumerate(reversed(continuations)):
        line = line.replace("<continuation>" if number == 0 else f"<continuation {number}>", token)
    headers = dict(found.split(": ", 1) for found in rest if not found.startswith("{"))
    body = "\n".join(found for found in rest if found.startswith("{"))
    method, _, target = line.partition(" ")
    lowered = {name.lower(): value for name, value in headers.items()}
    response = await service.send(method, target.replace(" ", "+"), body, lowered)
    shown = response.body.decode()
    continuations += re.findall(r'"(?:continuation|token)":"([^"]+)"', shown)
    shown = re.sub(r'"(continuation|token)":"[^"]+"', r'"\1":"<continuation>"', shown)
    kind = "" if response.content_type == "application/json; charset=UTF-8" else f" {response.content_type}"
    return f"{response.status}{kind} {shown}".rstrip()


def run_script(script: Path, service: Running) -> None:
    async def run() -> None:
        continuations: list[str] = []
        for request, expected in cases(script):
            assert await answered(service, request, continuations) == expected, request

    asyncio.run(run())
