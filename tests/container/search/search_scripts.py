"""Golden scripts of the search handler: requests with a fake content cluster behind them.

Cases are parted by blank lines. A case is a request line (`GET <query string>` or `POST [<query string>]`, then headers
and, for POST, the body), a line `---`, then the answer: its status and media type, `asked:` lines for what the clusters
were asked (what differs from a plain request), and the JSON. Configuration: clusters `media` (music, books) and `other`
(things); query profiles and rules: those in the folder of the script's name, if there is one.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into the script instead of comparing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import cbor2
import orjson
from msgspec import Struct

from paperwasp.application.query_profiles import FOLDER, NO_QUERY_PROFILES, QueryProfiles, parse_query_profiles
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.container.search.prepared_cache import PreparedCache
from paperwasp.coordination.messages.documents import StampRequest
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import BOOL, INT, POSITION, STRING, DocumentType, array_of, struct_of, tensor_field
from paperwasp.errors import InvalidInput, PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.query_languages.rules import NO_RULES, RuleBases, load_rules
from paperwasp.schema.model import (
    AttributeSettings,
    DocumentSummary,
    Field,
    FieldSet,
    IndexSettings,
    Input,
    RankProfile,
    Schema,
    Sorting,
    SubField,
    SummaryField,
)
from paperwasp.search.query import Hit, Query, SearchResponse
from tests.search.queries import NAMES, query_of
from tests.struct_fields import defaults_of

SCRIPTS = Path(__file__).parent / "scripts"
PLAIN = query_of(tree=None)  # type: ignore[arg-type]
START_NS = 1_000_000_000
NOW_SECONDS = 1_700_000_000
PERSON = struct_of("person", {"name": STRING})


INPUTS = {
    "number": Input(TensorType()),
    "text": Input(None),
    "dense": Input(TensorType.parse("tensor<float>(x[2])")),
    "mapped": Input(TensorType.parse("tensor(category{})")),
    "mixed": Input(TensorType.parse("tensor<int8>(category{},x[2])")),
}


def schema(name: str, *profiles: str) -> Schema:
    """title, body (index), year, artist (sorted as in Norway), alive, tags, vector, place (attributes), note (summary
    only), person; fieldset default. A rank profile `typed` has INPUTS, `timely` asks for the time; `profiles` have a
    sort-feature."""
    found = [
        *(Field(field, STRING, index=IndexSettings(), summary=True) for field in ("title", "body")),
        Field("year", INT, attribute=AttributeSettings(fast_search=True), summary=True),
        Field("artist", STRING, attribute=AttributeSettings(sorting=Sorting(locale="nb_NO")), aliases={"by": "artist"}),
        Field("place", POSITION, attribute=AttributeSettings()),
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
        {profile: RankProfile(profile) for profile in ("default", "unranked")}
        | {profile: RankProfile(profile, sort_features=("nativeRank",)) for profile in profiles}
        | {"typed": RankProfile("typed", inputs=INPUTS), "timely": RankProfile("timely", first_phase="now - 1")},
        {
            "default": DocumentSummary("default", {}),
            "short": DocumentSummary("short", {"note": SummaryField("note", ("note",))}),
        },
    )


def profiles_of(path: Path) -> QueryProfiles:
    """The query profiles in the folder, as in that of a package."""
    files = {f"{FOLDER}/{file.relative_to(path)}": file.read_bytes() for file in path.rglob("*.xml")}
    profiles, findings = parse_query_profiles(files)
    assert all("not executed yet" in finding.message for finding in findings)
    return profiles


def rules_of(path: Path) -> RuleBases:
    """The rule bases in the folder."""
    rules, findings = load_rules({f"rules/{file.name}": file.read_text() for file in sorted(path.glob("*.sr"))})
    assert findings == []
    return rules


def config(query_profiles: QueryProfiles = NO_QUERY_PROFILES, rules: RuleBases = NO_RULES) -> SearchConfig:
    return SearchConfig(
        (
            ClusterConfig("media", {"music": schema("music", "bm25", "for-music"), "books": schema("books", "bm25")}),
            ClusterConfig("other", {"things": schema("things")}),
        ),
        query_profiles,
        rules,
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
    """Answers by what `query` or YQL search for: the word after `title` decides. Keeps what it was asked.

    `stamp` is that of the view that all clusters have.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, Query]] = []
        self.stamp = 0

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
        reply(None)

    async def ask(self, address: str, message: object) -> object:
        if isinstance(message, StampRequest):
            return self.stamp
        assert isinstance(message, Query)
        self.asked.append((address, message))
        text = message.match.tree.to_yql()
        for word, answer in ANSWERS.items():
            if f'"{word}"' in text:
                return replace(answer(address, message), stamp=self.stamp)
        return SearchResponse(0, 10, (), stamp=self.stamp)


def _fail(error: Exception) -> SearchResponse:
    raise error


def _two(address: str, message: Query) -> SearchResponse:
    if address == "content/other":
        return SearchResponse(1, 5, (hit(7, "things", 0.75),))
    return SearchResponse(2, 10, (hit(1, relevance=1.5), hit(2, "books", 0.5)))


def _many(address: str, message: Query) -> SearchResponse:
    """Twenty hits of each cluster, their years 2000 to 2002 in turn; hit 3 has none. Sorted, they rise by number."""
    first, type_ = (100, "things") if address == "content/other" else (0, "music")
    hits = []
    for number in range(20):
        year = None if number == 3 else 2000 + number % 3
        fields_json = orjson.dumps({"year": year, "note": f"n{number % 2}"} if year else {"note": "n"})
        attributes = {name: year if name == "year" else None for name in message.show.prefetch} or None
        keys = tuple((1, 0, number) for _ in message.order.keys) or None
        one = hit(first + number, type_, 20.0 - number, sort_keys=keys, attributes=attributes, lid=number)
        hits.append(one._replace(fields=fields_json))
    if message.order.after is not None:
        hits = [
            hit for hit in hits if (-hit.relevance, hit.gid) > (-message.order.after.relevance, message.order.after.gid)
        ]
    return SearchResponse(20, 20, tuple(hits[message.order.offset : message.order.offset + message.order.hits]))


FEATURES = {
    "bm25(title)": 1.25,
    "nan": float("nan"),
    "low": float("-inf"),
    "tensor": parse_tensor("tensor(x[2]):[1,2]"),
}
ANSWERS: dict[str, Callable[[str, Query], SearchResponse]] = {
    "two": _two,
    "many": _many,
    "features": lambda address, message: SearchResponse(
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
    "noid": lambda address, message: SearchResponse(1, 10, (hit(4, show_document_id=False),)),
    "partial": lambda address, message: SearchResponse(
        1, 4, (hit(5),), coverage=0.75, degraded=frozenset(("timeout",))
    ),
    "limited": lambda address, message: SearchResponse(
        1, 4, (hit(5),), coverage=0.5, degraded=frozenset(("match-phase",))
    ),
    "traced": lambda address, message: SearchResponse(
        1, 4, (hit(5),), trace=[{"tag": "query_setup", "duration_ms": 1}]
    ),
    "refused": lambda address, message: _fail(InvalidInput("this cannot be searched")),
    "broken": lambda address, message: _fail(RuntimeError("secret")),
    "halfbroken": lambda address, message: (
        _two(address, message) if address == "content/media" else _fail(PaperwaspError("down"))
    ),
}


def request_of(text: str) -> Request:
    line, *rest = text.split("\n")
    method, _, query = line.partition(" ")
    headers = {}
    while rest and ": " in rest[0] and not rest[0].startswith("{"):
        name, _, value = rest.pop(0).partition(": ")
        headers[name.lower()] = value
    return Request(method, "/search/", query.replace(" ", "+"), headers, "\n".join(rest).encode())


def handler_of(
    search_config: SearchConfig, prepared: PreparedCache | None = None
) -> tuple[SearchHandler, FakeClusters]:
    """A handler at the time of the scripts, and the clusters behind it."""
    clusters = FakeClusters()
    environment = Environment(monotonic_ns=lambda: START_NS, time_ns=lambda: NOW_SECONDS * 10**9)
    return SearchHandler(clusters, search_config, environment, prepared=prepared), clusters


def ask(text: str, query_profiles: QueryProfiles, rules: RuleBases = NO_RULES) -> str:
    """The answer to a case, as the script shows it."""
    return answer_of(request_of(text), *handler_of(config(query_profiles, rules)))


def answer_of(request: Request, handler: SearchHandler, clusters: FakeClusters) -> str:
    """The answer of a handler, and what it asked the clusters for it, as a script shows it."""
    clusters.asked.clear()
    response = asyncio.run(handler.handle(request))
    shown = [f"{response.status} {response.content_type}"]
    shown += [f"asked: {describe(address, message)}" for address, message in clusters.asked]
    return "\n".join([*shown, *shown_body(response)])


def shown_body(response: Response) -> list[str]:
    """The JSON, indented; where the answer is the call of a function, its name before. XML as it is."""
    if response.content_type.startswith("text/xml"):
        return [response.body.decode(response.content_type.rpartition("charset=")[2]).rstrip("\n")]
    name = response.body.partition(b"(")[0].decode() if response.body.endswith(b");") else ""
    shown = orjson.dumps(content_of(response), option=orjson.OPT_INDENT_2).decode()
    return [f"{name}(…);", shown] if name else [shown]


def content_of(response: Response) -> object:
    if response.content_type == "application/cbor":
        return cbor2.loads(response.body)
    body = response.body
    return orjson.loads(body[body.index(b"(") + 1 : -2] if body.endswith(b");") else body)


def describe(address: str, message: Query) -> str:
    """The tree and whatever else is not as in a plain request, but for who may render hits or rank them globally; the
    deadline as milliseconds from the start."""
    said = [address, message.match.tree.to_yql()]
    for name, (group, field) in NAMES.items():
        value = getattr(getattr(message, group), field)
        if name not in ("deadline_ns", "source", "global_page") and value != getattr(getattr(PLAIN, group), field):
            said.append(f"{name}={value if isinstance(value, str) else plainly(value)}")
    timeout_ms = (message.deadline.at_ns - START_NS) / 1e6
    if timeout_ms != 500:
        said.append(f"timeout={timeout_ms:g} ms")
    return " · ".join(said)


def plainly(value: object) -> str:
    """As repr, but a message's fields only where they are not the default."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {plainly(each)}' for name, each in value.items())}}}"
    if isinstance(value, Tensor):
        return str(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(plainly, value))}{',' if len(value) == 1 else ''})"
    if not isinstance(value, Struct):
        return repr(value)
    told = {name: found for name, default in defaults_of(value).items() if (found := getattr(value, name)) != default}
    return f"{type(value).__name__}({', '.join(f'{name}={plainly(found)}' for name, found in told.items())})"


def run(path: Path) -> None:
    """Compares the answers of a script's cases with what it says, or rewrites it."""
    head, *cases = path.read_text().strip("\n").split("\n\n")
    profiles, rules = profiles_of(path.with_suffix("")), rules_of(path.with_suffix(""))
    parts = [(case + "\n").partition("\n---\n") for case in cases]
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        path.write_text(
            "\n\n".join([head, *(f"{text}\n---\n{ask(text, profiles, rules)}" for text, _, _ in parts)]) + "\n"
        )
        return
    for text, _, expected in parts:
        assert ask(text, profiles, rules) == expected.rstrip("\n"), f"{path.name}:\n{text}"
