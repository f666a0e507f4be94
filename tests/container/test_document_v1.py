"""The document API against a content cluster made of a dictionary: the golden script, and before an application."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import Content
from paperwasp.container.document_v1 import DocumentApi
from paperwasp.content.messages import ApplyRequest, GetRequest, GetResponse
from paperwasp.document.operations import Outcome, Put, Remove, Update
from paperwasp.document.types import FLOAT, INT, STRING, DocumentType, array_of
from paperwasp.errors import NoSpace, Overload
from paperwasp.http.messages import Request
from paperwasp.schema.model import Schema

SCRIPT = Path(__file__).parent / "scripts" / "document_v1.txt"
MUSIC = DocumentType("music", {"title": STRING, "year": INT, "tags": array_of(STRING), "rating": FLOAT})


def schema(document: DocumentType) -> Schema:
    return Schema(document.name, document, {}, {}, {}, {})


def model() -> ApplicationModel:
    music, loose = schema(MUSIC), schema(DocumentType("loose", {}))
    return ApplicationModel(
        (), (ContentCluster(Content("records"), {"music": music}),), {"music": music, "loose": loose}, (), ""
    )


class FakeCluster:
    """A messenger with one content cluster that keeps documents and a list of what it was sent."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.sent: list[str] = []

    def serve(self, address: str, handler: object) -> None:
        raise NotImplementedError

    withdraw = notify = serve

    def request(self, address: str, message: object) -> asyncio.Future[Any]:
        assert address == "content/records"
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if isinstance(message, GetRequest):
            self.sent.append(f"GetRequest {message.id}")
            fields = self.documents.get(message.id.text)
            answer.set_result(GetResponse(None if fields is None else orjson.dumps(fields)))
        else:
            assert isinstance(message, ApplyRequest)
            self._apply(message.operation)
            _decide(answer, message.operation.id.user_specified)
        return answer

    def _apply(self, operation: Put | Update | Remove) -> None:
        if isinstance(operation, Put):
            self.sent.append(f"Put {operation.id} {orjson.dumps(operation.fields).decode()}")
            self.documents[operation.id.text] = dict(operation.fields)
        elif isinstance(operation, Update):
            values = {found.field: found.action.value for found in operation.updates}
            shown = orjson.dumps(values).decode()
            self.sent.append(f"Update {operation.id} {shown} create={str(operation.create).lower()}")
        else:
            self.sent.append(f"Remove {operation.id}")
            self.documents.pop(operation.id.text, None)


def _decide(answer: asyncio.Future[Any], user_specified: str) -> None:
    """Some documents are unlucky; `silence` is never answered."""
    if user_specified == "overload":
        answer.set_exception(Overload("4096 operations are waiting already"))
    elif user_specified == "nospace":
        answer.set_exception(NoSpace("the disk is full"))
    elif user_specified != "silence":
        answer.set_result(Outcome(True))


def cases() -> Iterator[tuple[str, str]]:
    lines = [line for line in SCRIPT.read_text().splitlines() if not line.startswith("# ") and line != "#"]
    for block in "\n".join(lines).split("\n\n"):
        if block.strip():
            request, _, expected = block.strip().partition("---")
            yield request.strip(), expected.strip()


async def answered(api: DocumentApi, cluster: FakeCluster, text: str) -> str:
    line, _, body = text.partition("\n")
    method, _, target = line.partition(" ")
    path, _, query = target.partition("?")
    cluster.sent.clear()
    response = await api.handle(Request(method, path, query, {}, body.encode()))
    assert response.content_type == "application/json; charset=UTF-8"
    shown = f"{response.status} {response.body.decode()}".rstrip()
    return "\n".join([shown, *(f"sent {message}" for message in cluster.sent)])


def test_the_script() -> None:
    async def run() -> None:
        cluster = FakeCluster()
        api = DocumentApi(cluster)
        api.configure(model())
        for request, expected in cases():
            assert await answered(api, cluster, request) == expected, request

    asyncio.run(run())


def test_before_an_application_is_active() -> None:
    async def run() -> None:
        api = DocumentApi(FakeCluster())
        put = Request("POST", "/document/v1/ns/music/docid/1", body=b'{"fields":{}}')
        assert (await api.handle(put)).status == 503
        handshake = Request("POST", "/document/v1/feeder/handshake/docid/dummy", "dryRun=true")
        assert (await api.handle(handshake)).status == 200
        api.configure(model())
        assert (await api.handle(put)).status == 200
        api.configure(None)
        assert (await api.handle(put)).status == 503

    asyncio.run(run())


@pytest.mark.parametrize(
    "path", ["ns", "ns/music", "ns/music/docids/1", "/music/docid/1", "ns/music/number/", "ns/music/group//x"]
)
def test_other_paths_are_told_what_there_is(path: str) -> None:
    async def run() -> None:
        api = DocumentApi(FakeCluster())
        response = await api.handle(Request("GET", "/document/v1/" + path))
        assert response.status == 404
        message = orjson.loads(response.body)["message"]
        assert message.startswith(f"Nothing at '/document/v1/{path}'. Available paths are:\n/document/v1/\n")

    asyncio.run(run())
