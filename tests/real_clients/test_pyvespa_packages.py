"""Every option of pyvespa's package generation, deployed for real: fields, rank profiles, models, profiles, services.

What Vespa would refuse is refused, with a message that says why; everything else deploys, and its container is up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from vespa.configuration import query_profiles as qp
from vespa.configuration import services as sv
from vespa.package import (
    HNSW,
    ApplicationConfiguration,
    ApplicationPackage,
    AuthClient,
    Component,
    ContainerCluster,
    ContentCluster,
    DeploymentConfiguration,
    Diversity,
    Document,
    DocumentSummary,
    Field,
    FieldSet,
    FirstPhaseRanking,
    Function,
    GlobalPhaseRanking,
    ImportedField,
    MatchPhaseRanking,
    Mutate,
    Nodes,
    OnnxModel,
    Parameter,
    QueryField,
    QueryProfile,
    QueryProfileType,
    QueryTypeField,
    RankProfile,
    Schema,
    SecondPhaseRanking,
    ServicesConfiguration,
    Struct,
    StructField,
    Summary,
    Validation,
    ValidationID,
)

from tests import web
from tests.real_clients.onnx_model import onnx_model
from tests.service.in_process import ZIP, Deployed, deployed_service

pytestmark = pytest.mark.clients
USERDATA = "container.handler.observability.application-userdata"
SOON = (datetime.now(UTC) + timedelta(days=5)).strftime("%Y-%m-%d")
TEXT = ["index", "summary"]
NUMBER = ["attribute", "summary"]
TITLE = Field("title", "string", TEXT, index="enable-bm25")
YEAR = Field("year", "int", NUMBER, attribute=["fast-search"])
EMBEDDING = Field("embedding", "tensor<float>(x[3])", [*NUMBER, "index"], ann=HNSW("angular", 16, 200))
PERSON = Struct("person", [Field("name", "string"), Field("age", "int")])


def song(*fields: Field, **options: Any) -> ApplicationPackage:
    """A package with these fields beside a title, a year and an embedding."""
    document = Document([TITLE, YEAR, EMBEDDING, *fields], structs=options.pop("structs", None))
    return ApplicationPackage("music", schema=[Schema("music", document, **options)])


def ranked(profile: RankProfile, *others: RankProfile, **options: Any) -> ApplicationPackage:
    return song(rank_profiles=[*others, profile], **options)


def packaged(**options: Any) -> ApplicationPackage:
    return ApplicationPackage("music", schema=[Schema("music", Document([TITLE, YEAR]))], **options)


def field(*arguments: Any, **options: Any) -> Callable[[Path], ApplicationPackage]:
    return lambda _: song(Field("tried", *arguments, **options))


def profile(**options: Any) -> Callable[[Path], ApplicationPackage]:
    return lambda _: ranked(RankProfile("tried", **{"first_phase": "bm25(title)", **options}))


FIELDS: dict[str, Callable[[Path], ApplicationPackage]] = {
    **{
        f"type {name}": field(name, NUMBER)
        for name in ("bool", "byte", "int", "long", "float", "double", "string", "array<string>", "array<int>")
    },
    **{
        f"type {name}": field(name, NUMBER)
        for name in ("weightedset<string>", "weightedset<int>", "position", "tensor<bfloat16>(x[8])", "tensor(a{})")
    },
    **{f"type {name}": field(name, ["summary"]) for name in ("raw", "map<string,int>", "uri")},
    "tensor int8 mixed": field("tensor<int8>(page{},x[16])", NUMBER),
    "predicate": field("predicate", NUMBER, index={"arity": 2}),
    "indexing of several lines": field("string", ("index", "summary")),
    "indexing as text": field("string", indexing="index | summary"),
    "index with a value": field("string", TEXT, index="enable-bm25"),
    "index as a block": field("string", TEXT, index={"enable-bm25": None}),
    "index with several": field("string", TEXT, index=["enable-bm25", {"prefix": None}]),
    "attribute settings": field("int", NUMBER, attribute=["fast-search", "fast-access", "paged"]),
    **{
        f"distance metric {name}": field("tensor<float>(x[4])", [*NUMBER, "index"], ann=HNSW(name, 8, 50))
        for name in ("euclidean", "angular", "dotproduct", "prenormalized-angular")
    },
    "distance metric hamming": field("tensor<int8>(x[4])", [*NUMBER, "index"], ann=HNSW("hamming")),
    "distance metric geodegrees": field("tensor<float>(x[2])", [*NUMBER, "index"], ann=HNSW("geodegrees")),
    "an index of vectors": field("tensor<float>(p{},x[4])", ["attribute", "index"], ann=HNSW()),
    "match exact": field("string", TEXT, match=["exact", ("exact-terminator", '"%%"')]),
    "match word": field("string", NUMBER, match=["word"]),
    "match cased": field("string", NUMBER, match=["cased"]),
    "match gram": field("string", TEXT, match=["gram", ("gram-size", "3")]),
    "weight": field("string", TEXT, weight=200),
    "bolding": field("string", TEXT, bolding=True),
    "summary dynamic": field("string", TEXT, summary=Summary(None, None, ["dynamic"])),
    "summary with source": field("string", TEXT, summary=Summary("other", None, [("source", ["title"])])),
    "summary of matched elements": field(
        "array<string>", NUMBER, summary=Summary(None, None, ["matched-elements-only"])
    ),
    "stemming": field("string", TEXT, stemming="shortest"),
    "rank": field("string", TEXT, rank="filter"),
    "query command": field("string", TEXT, query_command=['"exact %%"', "phrase-segmenting"]),
    "alias": field("uri", TEXT, alias=["link", "hostname: site"]),
    "alias of a field": field("string", TEXT, alias=["name"]),
    "outside of the document": field("string", ["input title", "index"], is_document_field=False),
    "struct": lambda _: song(Field("who", "person", ["summary"]), structs=[PERSON]),
    "array of structs": lambda _: song(
        Field("who", "array<person>", ["summary"], struct_fields=[StructField("name", indexing=["attribute"])]),
        structs=[PERSON],
    ),
    "struct fields whole": lambda _: song(
        Field(
            "who",
            "map<string,person>",
            ["summary"],
            struct_fields=[
                StructField("key", indexing=["attribute"], attribute=["fast-search"], match=["word"], rank="filter"),
                StructField("value.age", indexing=["attribute"]),
            ],
        ),
        structs=[PERSON],
    ),
}

PROFILES: dict[str, Callable[[Path], ApplicationPackage]] = {
    "first phase": profile(),
    "first phase whole": profile(first_phase=FirstPhaseRanking("bm25(title)", 100, -10.5)),
    "second phase": profile(second_phase=SecondPhaseRanking("bm25(title) * 2", 50, 0.5)),
    "global phase": profile(global_phase=GlobalPhaseRanking("bm25(title) * 2", 50, 0.5)),
    "match phase": profile(match_phase=MatchPhaseRanking("year", "descending", 1000)),
    "match phase total": profile(match_phase=MatchPhaseRanking("year", "ascending", total_max_hits=1000)),
    "diversity": profile(match_phase=MatchPhaseRanking("year", "descending", 1000), diversity=Diversity("year", 10)),
    "constants": profile(constants={"alpha": 0.5}, first_phase="alpha * bm25(title)"),
    "functions": profile(functions=[Function("f", "x * 2", ["x"]), Function("g", "f(3)")], first_phase="g"),
    "summary features": profile(summary_features=["bm25(title)", "attribute(year)"]),
    "match features": profile(match_features=["bm25(title)"]),
    "inputs": profile(
        inputs=[("query(q)", "tensor<float>(x[3])"), ("query(b)", "double", "0.5")], first_phase="query(b) * 2"
    ),
    "closeness": profile(inputs=[("query(q)", "tensor<float>(x[3])")], first_phase="closeness(field, embedding)"),
    "weight": profile(weight=[("title", 200)]),
    "rank type": profile(rank_type=[("title", "about")]),
    "rank properties": profile(rank_properties=[("fieldMatch(title).maxAlternativeSegmentations", "10")]),
    "filter threshold": profile(filter_threshold=0.05),
    "weakand": profile(weakand={"stopword-limit": 0.6, "adjust-target": 0.01}),
    "threads": profile(num_threads_per_search=1),
    "inheritance": lambda _: ranked(
        RankProfile("tried", inherits="base", first_phase="h"),
        RankProfile("base", functions=[Function("h", "attribute(year)")], first_phase="1"),
    ),
    "mutate": lambda _: song(
        Field("seen", "long", ["0 | to_long", *NUMBER], attribute=["mutable"], is_document_field=False),
        rank_profiles=[
            RankProfile(
                "tried",
                first_phase="bm25(title)",
                mutate=Mutate(
                    {"attribute": "seen", "operation_string": "=", "operation_value": 5},
                    {"attribute": "seen", "operation_string": "+=", "operation_value": 1},
                    {"attribute": "seen", "operation_string": "-=", "operation_value": 1},
                    None,
                ),
            )
        ],
    ),
}


def with_onnx(folder: Path) -> ApplicationPackage:
    path = folder / "tried.onnx"
    path.write_bytes(onnx_model())
    model = OnnxModel("tried", str(path), {"input": "vector"}, {"output": "out"})
    profile = RankProfile(
        "tried",
        functions=[Function("vector", "tensor<float>(d0[1],d1[3])(d1)")],
        first_phase="sum(onnx(tried).out)",
    )
    return song(models=[model], rank_profiles=[profile])


def related(_: Path) -> ApplicationPackage:
    artist = Schema("artist", Document([Field("name", "string", NUMBER)]), global_document=True)
    music = Schema(
        "music",
        Document([TITLE, Field("artist", "reference<artist>", NUMBER)]),
        imported_fields=[ImportedField("artist_name", "artist", "name")],
    )
    return ApplicationPackage("music", schema=[artist, music])


def inherited(_: Path) -> ApplicationPackage:
    base = Schema("base", Document([TITLE]), rank_profiles=[RankProfile("plain", first_phase="1")])
    music = Schema("music", Document([YEAR], inherits="base"), inherits="base")
    return ApplicationPackage("music", schema=[base, music])


SCHEMAS: dict[str, Callable[[Path], ApplicationPackage]] = {
    "fieldsets": lambda _: song(fieldsets=[FieldSet("default", ["title"])]),
    "stemming": lambda _: song(stemming="none"),
    "document summaries": lambda _: song(
        document_summaries=[
            DocumentSummary("small", summary_fields=[Summary("title")]),
            DocumentSummary("large", "small", [Summary("year")], from_disk=True, omit_summary_features=True),
        ]
    ),
    "streaming": lambda _: ApplicationPackage("music", schema=[Schema("music", Document([TITLE]), mode="streaming")]),
    "store only": lambda _: ApplicationPackage("music", schema=[Schema("music", Document([TITLE]), mode="store-only")]),
    "inheritance": inherited,
    "global documents and imported fields": related,
    "onnx": with_onnx,
    "by default": lambda _: ApplicationPackage("music"),
}

SERVICES: dict[str, Callable[[Path], ApplicationPackage]] = {
    "query profile": lambda _: packaged(
        query_profile=QueryProfile([QueryField("maxHits", 1000), QueryField("anotherField", "string_value")]),
        query_profile_type=QueryProfileType([QueryTypeField("ranking.features.query(q)", "tensor<float>(x[3])")]),
    ),
    "query profiles as tags": lambda _: packaged(
        query_profile_config=[
            qp.query_profile(qp.field("rank", name="ranking"), id="best", type="typed"),
            qp.query_profile_type(qp.field(name="depth", type="integer"), id="typed"),
        ]
    ),
    "stateless model evaluation": lambda _: packaged(stateless_model_evaluation=True),
    "configuration": lambda _: packaged(configurations=[ApplicationConfiguration(USERDATA, {"version": "1"})]),
    "validation overrides": lambda _: packaged(
        validations=[
            Validation(
                ValidationID.fieldTypeChange, (datetime.now(UTC) + timedelta(days=5)).strftime("%Y-%m-%d"), "why"
            )
        ]
    ),
    "embedder": lambda _: packaged(
        components=[
            Component(
                "e5",
                type="hugging-face-embedder",
                parameters=[
                    Parameter("transformer-model", {"url": "https://models.example/model.onnx"}),
                    Parameter("tokenizer-model", {"url": "https://models.example/tokenizer.json"}),
                ],
            )
        ]
    ),
    "clients": lambda _: packaged(
        auth_clients=[AuthClient("mtls", ["read", "write"], [Parameter("certificate", {"file": "clients.pem"})])]
    ),
    "clusters": lambda _: packaged(
        clusters=[
            ContainerCluster("music_container", nodes=Nodes("1", [Parameter("jvm", {"options": "-Xmx1g"})])),
            ContentCluster("music_content", "music", min_redundancy="1"),
        ]
    ),
    "deployment": lambda _: packaged(deployment_config=DeploymentConfiguration("prod", ["aws-us-east-1c"])),
    "services as tags": lambda _: packaged(
        services_config=ServicesConfiguration(
            "music",
            services_config=sv.services(
                sv.container(sv.search(), sv.document_api(), sv.nodes(count="1"), id="music_container", version="1.0"),
                sv.content(
                    sv.min_redundancy("1"),
                    sv.documents(sv.document(type="music", mode="index")),
                    sv.nodes(count="1"),
                    id="music_content",
                    version="1.0",
                ),
            ),
        )
    ),
}


def included(folder: Path) -> ApplicationPackage:
    (folder / "notes.txt").write_text("a file of the application")
    return packaged(include_files=[(folder / "notes.txt", "ext/notes.txt")])


SERVICES["included files"] = included
REFUSED: dict[str, tuple[Callable[[Path], ApplicationPackage], str]] = {
    "an unknown field in a rank profile": (profile(first_phase="bm25(titel)"), "titel"),
    "a type that there is not": (field("strng", ["index"]), "string"),
    "a predicate without arity": (field("predicate", NUMBER), "arity"),
    "a rank profile that is not there": (profile(inherits="nobody"), "nobody"),
    "a component of Java": (
        lambda _: packaged(components=[Component("mine", cls="com.example.Mine", bundle="mine")]),
        "mine",
    ),
    "a field set of nothing": (lambda _: song(fieldsets=[FieldSet("default", ["nothing"])]), "nothing"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("packages") / "data") as running:
        yield running


def deploy(service: Deployed, package: ApplicationPackage) -> httpx.Response:
    url = service.config_url + "/application/v2/tenant/default/prepareandactivate"
    return web.post(url, content=package.to_zip().getvalue(), headers=ZIP, timeout=60)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=f"{kind}: {name}")
        for kind, makers in (("field", FIELDS), ("profile", PROFILES), ("schema", SCHEMAS), ("services", SERVICES))
        for name, make in makers.items()
    ],
)
def test_a_package_deploys_and_is_up(
    service: Deployed, tmp_path: Path, make: Callable[[Path], ApplicationPackage]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = make(tmp_path)
    answer = deploy(service, package)
    content = answer.json()
    assert (answer.status_code, content.get("activated")) == (200, True), f"{content}\n{package.schema.schema_to_text}"
    assert [entry for entry in content["log"] if entry["level"] == "ERROR"] == []
    for cluster in service.ports():
        assert web.get(service.container_url(cluster) + "/ApplicationStatus").status_code == 200
    assert web.delete(service.application_url(), timeout=60).status_code == 200


@pytest.mark.parametrize("name", REFUSED)
def test_what_vespa_refuses_is_refused_with_a_reason(service: Deployed, tmp_path: Path, name: str) -> None:
    make, word = REFUSED[name]
    answer = deploy(service, make(tmp_path))
    assert answer.status_code in (400, 412), answer.text
    assert answer.json()["error-code"] == "INVALID_APPLICATION_PACKAGE"
    assert word in answer.json()["message"]
