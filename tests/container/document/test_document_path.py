"""docs/internals/document-path.md beside the code: what each parameter does for each kind of request, and which files.

Authority of the table of parameters: DocumentV1ApiHandler.java. The names of readers: the folder
document/src/main/java/com/yahoo/document/json of Vespa, with its folder `readers`.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import orjson
import pytest

from paperwasp.http.messages import Request, Response
from tests.container.document.document_scripts import SCRIPTS, running

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/internals/document-path.md").read_text()
ONE, MANY = "/document/v1/ns/song/docid/1", "/document/v1/ns/song/docid"
WHERE = "cluster=records&selection=true"
BODY = b'{"fields":{}}'
KINDS = {
    "get one": ("GET", ONE, "", b""),
    "put one": ("POST", ONE, "", BODY),
    "update one": ("PUT", ONE, "", BODY),
    "remove one": ("DELETE", ONE, "", b""),
    "visit": ("GET", MANY, "cluster=records", b""),
    "update many": ("PUT", MANY, WHERE, BODY),
    "remove many": ("DELETE", MANY, WHERE, b""),
    "copy many": ("POST", MANY, f"{WHERE}&destinationCluster=archive", b""),
}
READERS = """AddRemoveCreator ArrayReader CompositeReader DocumentParseInfo DocumentParser DocumentToFields
DocumentUpdateJsonSerializer GeoPositionReader JsonFeedReader JsonParserHelpers JsonReader JsonSerializationHelper
JsonWriter LazyTokenBuffer MapReader SingleDocumentParser SingleValueReader StructReader TensorAddUpdateReader
TensorModifyUpdateReader TensorReader TensorRemoveUpdateReader TokenBuffer VespaJsonDocumentReader
WeightedSetReader"""


def rows(heading: str) -> list[list[str]]:
    table = PAGE.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Parameter → what is done with it for each kind. Without a value, who reads it refuses it."""
    names = [row[0].strip("`") for row in rows("Request parameters")[1:]]

    with running(SCRIPTS / "document_application", tmp_path_factory.mktemp("service")) as (api, _):

        async def done(kind: str, name: str) -> str:
            method, path, query, body = KINDS[kind]
            answer = await api.handle(Request(method, path, f"{query}&{name}=".lstrip("&"), {}, body))
            assert isinstance(answer, Response)
            message = orjson.loads(answer.body).get("message", "")
            if message == f"May not specify '{name}' at '{path}'":
                return "refused"
            if message == f"Expected non-empty value for request property '{name}'":
                return "read"
            assert answer.status in (200, 404), (kind, name, message)
            return "-"

        async def all_done() -> dict[str, list[str]]:
            return {name: [await done(kind, name) for kind in KINDS] for name in names}

        return asyncio.run(all_done())


def test_parameters(found: dict[str, list[str]]) -> None:
    head, *table = rows("Request parameters")
    assert head[1:9] == list(KINDS)
    assert {row[0].strip("`"): row[1:9] for row in table} == found


def test_every_parameter_that_is_read_is_in_the_table() -> None:
    sources = [
        (ROOT / "src/paperwasp/container/document" / name).read_text()
        for name in ("request.py", "visit_parameters.py", "bulk.py")
    ]
    asked = re.compile(r'(?:parameters\.(?:get|text|required)\(|_positive\(parameters, |\.required\()"([A-Za-z.]+)"')
    read = {name for source in sources for name in asked.findall(source)}
    options = sources[0].split("\nOPTIONS: Final", 1)[1]
    read |= set(re.findall(r'^    "([A-Za-z.]+)": \(', options, re.MULTILINE))
    assert len(read) > 15
    assert read <= {row[0].strip("`") for row in rows("Request parameters")[1:]}


def test_steps() -> None:
    _, *steps = rows("Steps")
    files = [name for row in steps for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", row[2])]
    assert len(files) > 30
    assert [name for name in files if not (ROOT / "src/paperwasp" / name).exists()] == []
    assert all(re.match(r"`[a-z_]+/|none: ", row[2]) for row in steps)
    named = {name for row in steps for name in re.findall(r"`([A-Za-z0-9]+)`", row[0])}
    assert sorted(set(READERS.split()) - named) == []
