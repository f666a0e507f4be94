"""Golden scripts of the search handler: requests with a fake content cluster behind them.

Cases are parted by blank lines. A case is a request line (`GET <query string>` or `POST [<query string>]`, then headers
and, for POST, the body), a line `---`, then the answer: its status and media type, `asked:` lines for what the clusters
were asked (what differs from a plain request), and the JSON. Configuration: clusters `media` (music, books) and `other`
(things); query profiles: those in the folder of the script's name, if there is one. PAPERWASP_REWRITE_SCRIPTS=1 writes
what the code says into the script instead of comparing.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import MappingProxyType

import cbor2
import orjson

from paperwasp.application.query_profiles import FOLDER, NO_QUERY_PROFILES, QueryProfiles, parse_query_profiles
from paperwasp.container.search import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.content.messages import Hit, SearchRequest, SearchResponse
from paperwasp.document.types import BOOL, INT, STRING, DocumentType, array_of, struct_of, tensor_field
from paperwasp.env import Environment
from paperwasp.errors import InvalidInput, PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.schema.model import (
    AttributeSettings,
    DocumentSummary,
    Field,
    FieldSet,
    IndexSettings,
    RankProfile,
    Schema,
    SubField,
)
from paperwasp.tensor.types import TensorType
from paperwasp.yql import to_yql

SCRIPTS = Path(__file__).parent / "scripts"
PLAIN = SearchRequest(tree=None)  # type: ignore[arg-type]
START_NS = 1_000_000_000
PERSON = struct_of("person", {"name": STRING})


def schema(name: str, *profiles: str) -> Schema:
    """title, body (index), year, alive, tags, vector (attributes), note (summary only), person; fieldset default."""
    found = [
        *(Field(field, STRING, index=IndexSettings(), summary=True) for field in ("title", "body")),
        Field("year", INT, attribute=AttributeSettings(), summary=True),
        Field("alive", BOOL, attribute=AttributeSettings()),
        Field("note", STRING, summary=True),
        Field("tags", array_of(STRING), attribute=AttributeSettings(), aliases={"labels": "tags"}),
        Field("person", PERSON, sub_fields={"name": SubField("name", STRING, attribute=AttributeSettings())}),
        Field("vector", tensor_field(TensorType.parse("tensor(x[2])")), attribute=AttributeSettings()),
    ]
    by_name = {field.name: field for field in found}
    return Schema(
        name,
        DocumentType(name, {field.name: field.type for field in found}),
        by_name,
        MappingProxyType({"default": FieldSet("default", ("title", "body"))}),
        {profile: RankProfile(profile) for profile in ("default", "unranked", *profiles)},
        {summary: DocumentSummary(summary, {}) for summary in ("default", "short")},
    )


def profiles_of(path: Path) -> QueryProfiles:
    """The query profiles in the folder, as in that of a package."""
    files = {f"{FOLDER}/{file.relative_to(path)}": file.read_bytes() for file in path.rglob("*.xml")}
    profiles, findings = parse_query_profiles(files)
    assert all("not executed yet" in finding.message for finding in findings)
    return profiles


def config(query_profiles: QueryProfiles = NO_QUERY_PROFILES) -> SearchConfig:
    return SearchConfig(
        (
            ClusterConfig("media", {"music": schema("music", "bm25", "for-music"), "books": schema("books", "bm25")}),
            ClusterConfig("other", {"things": schema("things")}),
        ),
        query_profiles,
    )


def hit(number: int, document_type: str = "music", relevance: float = 1.0, **more: object) -> Hit:
    fields_json = b'{"title":"title %d","year":%d}' % (number, 2000 + number)
    return Hit(
        b"gid%09d" % number,
        document_type,
        f"id:ns:{document_type}::{number}",
        relevance,
        fields_json,
        **more,  # type: ignore[arg-type]
    )


class FakeClusters:
    """Answers by what `query` or YQL search for: the word after `title` decides. Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, SearchRequest]] = []

    async def request(self, address: str, message: object) -> object:
        assert isinstance(message, SearchRequest)
        self.asked.append((address, message))
        text = to_yql(message.tree)
        for word, answer in ANSWERS.items():
            if f'"{word}"' in text:
                return answer(address)
        return SearchResponse(0, 10, ())


def _fail(error: Exception) -> SearchResponse:
    raise error


def _two(address: str) -> SearchResponse:
    if address == "content/other":
        return SearchResponse(1, 5, (hit(7, "things", 0.75),))
    return SearchResponse(2, 10, (hit(1, relevance=1.5), hit(2, "books", 0.5)))


FEATURES = {"bm25(title)": 1.25, "nan": float("nan"), "low": float("-inf")}
ANSWERS = {
    "two": _two,
    "features": lambda address: SearchResponse(
        1,
        10,
        (
            hit(
                3,
                relevance=float("-inf"),
                match_features=FEATURES,
                summary_features={"x": 1.0},
                rank_features={"y": 2.0},
            ),
        ),
    ),
    "noid": lambda address: SearchResponse(1, 10, (hit(4, show_document_id=False),)),
    "partial": lambda address: SearchResponse(1, 4, (hit(5),), coverage=0.75, degraded=frozenset({"timeout"})),
    "refused": lambda address: _fail(InvalidInput("this cannot be searched")),
    "broken": lambda address: _fail(RuntimeError("secret")),
    "halfbroken": lambda address: _two(address) if address == "content/media" else _fail(PaperwaspError("down")),
}


def request_of(text: str) -> Request:
    line, *rest = text.split("\n")
    method, _, query = line.partition(" ")
    headers = {}
    while rest and ": " in rest[0] and not rest[0].startswith("{"):
        name, _, value = rest.pop(0).partition(": ")
        headers[name.lower()] = value
    return Request(method, "/search/", query.replace(" ", "+"), headers, "\n".join(rest).encode())


def ask(text: str, query_profiles: QueryProfiles) -> str:
    """The answer to a case, as the script shows it."""
    clusters = FakeClusters()
    handler = SearchHandler(clusters, config(query_profiles), Environment(monotonic_ns=lambda: START_NS))
    response = asyncio.run(handler.handle(request_of(text)))
    shown = [f"{response.status} {response.content_type}"]
    shown += [f"asked: {describe(address, message)}" for address, message in clusters.asked]
    return "\n".join([*shown, orjson.dumps(content_of(response), option=orjson.OPT_INDENT_2).decode()])


def content_of(response: Response) -> object:
    return cbor2.loads(response.body) if response.content_type == "application/cbor" else orjson.loads(response.body)


def describe(address: str, message: SearchRequest) -> str:
    """The tree and whatever else is not as in a plain request; the deadline as milliseconds from the start."""
    said = [address, to_yql(message.tree)]
    for field in fields(SearchRequest):
        value = getattr(message, field.name)
        if field.name not in ("tree", "deadline_ns") and value != getattr(PLAIN, field.name):
            said.append(f"{field.name}={value if isinstance(value, str) else plainly(value)}")
    timeout_ms = (message.deadline_ns - START_NS) / 1e6
    if timeout_ms != 500:
        said.append(f"timeout={timeout_ms:g} ms")
    return " · ".join(said)


def plainly(value: object) -> str:
    """As repr, but a message's fields only where they are not the default."""
    if isinstance(value, tuple):
        return f"({', '.join(map(plainly, value))}{',' if len(value) == 1 else ''})"
    if not is_dataclass(value):
        return repr(value)
    told = (f for f in fields(value) if getattr(value, f.name) != f.default)
    return f"{type(value).__name__}({', '.join(f'{f.name}={plainly(getattr(value, f.name))}' for f in told)})"


def run(path: Path) -> None:
    """Compares the answers of a script's cases with what it says, or rewrites it."""
    head, *cases = path.read_text().strip("\n").split("\n\n")
    profiles = profiles_of(path.with_suffix(""))
    parts = [(case + "\n").partition("\n---\n") for case in cases]
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        path.write_text("\n\n".join([head, *(f"{text}\n---\n{ask(text, profiles)}" for text, _, _ in parts)]) + "\n")
        return
    for text, _, expected in parts:
        assert ask(text, profiles) == expected.rstrip("\n"), f"{path.name}:\n{text}"
