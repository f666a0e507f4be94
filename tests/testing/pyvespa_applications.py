"""The applications that pyvespa's own integration tests deploy to Docker, described again for VespaLocal.

What they are made of (field types, indexing, profiles) is as there, so that a start is one of theirs.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vespa.application import Vespa
from vespa.package import (
    HNSW,
    ApplicationPackage,
    Document,
    Field,
    FieldSet,
    QueryProfile,
    QueryProfileType,
    QueryTypeField,
    RankProfile,
    Schema,
    Struct,
    StructField,
)

from paperwasp.testing import VespaLocal

STORED: Final = ["attribute", "summary"]
SEARCHED: Final = ["index", "summary"]


@contextmanager
def deployed(package: ApplicationPackage) -> Iterator[Vespa]:
    """Deployed as the suite does it: a VespaDocker, whose container is stopped and removed after it."""
    docker = VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO())
    app = docker.deploy(application_package=package)
    assert docker.container is not None
    try:
        yield app
    finally:
        docker.container.stop(timeout=10)
        docker.container.remove()


def passages() -> ApplicationPackage:
    """Texts with vectors in a graph: `msmarco`."""
    fields = [
        Field("id", "string", STORED),
        *(Field(name, "string", SEARCHED, index="enable-bm25") for name in ("title", "body")),
        Field("metadata", "string", STORED, attribute=["fast-search", "fast-access"]),
        _vector("tensor_field", 128, 200),
    ]
    profile = RankProfile("default", first_phase="nativeRank(title, body)")
    schema = Schema(
        "msmarco", Document(fields), fieldsets=[FieldSet("default", ["title", "body"])], rank_profiles=[profile]
    )
    return ApplicationPackage("msmarco", [schema])


def questions() -> ApplicationPackage:
    """Two document types, one of which inherits the other, and a query profile type: `qa`."""
    context = Document(
        [
            Field("questions", "array<int>", STORED),
            Field("dataset", "string", STORED),
            Field("context_id", "int", STORED),
            Field("text", "string", SEARCHED, index="enable-bm25"),
            Field("id", "string", STORED),
        ]
    )
    sentence = Document([_vector("sentence_embedding", 512, 500), Field("id", "string", STORED)], inherits="context")
    near = "closeness(sentence_embedding)"
    phases = {"bm25": "bm25(text)", "nativeRank": "nativeRank(text)"}
    vectors = {"bm25": "bm25(text)", "semantic-similarity": near, "bm25-semantic-similarity": f"bm25(text) + {near}"}
    schemas = [
        Schema(
            name,
            document,
            fieldsets=[FieldSet("default", ["text"])],
            rank_profiles=[RankProfile(name, expression, inherits="default") for name, expression in profiles.items()],
        )
        for name, document, profiles in (("context", context, phases), ("sentence", sentence, vectors))
    ]
    vector = QueryTypeField("ranking.features.query(query_embedding)", "tensor<float>(x[512])")
    return ApplicationPackage(
        "qa", schemas, query_profile=QueryProfile(), query_profile_type=QueryProfileType([vector])
    )


def _vector(name: str, size: int, explored: int) -> Field:
    graph = HNSW(distance_metric="euclidean", max_links_per_node=16, neighbors_to_explore_at_insert=explored)
    return Field(name, f"tensor<float>(x[{size}])", ["attribute", "index"], ann=graph)


def mail() -> ApplicationPackage:
    """Streaming search."""
    fields = [
        Field("id", "string", STORED),
        *(Field(name, "string", SEARCHED, index="enable-bm25") for name in ("title", "body")),
    ]
    profile = RankProfile("default", first_phase="nativeRank(title, body)")
    sets = [FieldSet("default", ["title", "body"])]
    schema = Schema("mail", Document(fields), fieldsets=sets, rank_profiles=[profile], mode="streaming")
    return ApplicationPackage("mail", [schema])


def updates() -> ApplicationPackage:
    """A struct, and a tensor that is only stored, both in a fieldset: `testupdates`."""
    fields = [
        Field("id", "string", STORED),
        Field("title", "string", SEARCHED),
        Field("price", "int", STORED),
        Field("tensorfield", "tensor<int8>(x[10])", ["summary"]),
        Field("contact", "person", ["summary"]),
    ]
    person = Struct("person", [Field("first_name", "string"), Field("last_name", "string")])
    schema = Schema(
        "testupdates",
        Document(fields, structs=[person]),
        fieldsets=[FieldSet("default", ["title", "tensorfield", "contact", "price"])],
        rank_profiles=[RankProfile("default", first_phase="nativeRank(title)")],
    )
    return ApplicationPackage("testupdates", [schema])


def slow() -> ApplicationPackage:
    """A field whose indexing asks to sleep: `retryapplication`."""
    fields = [Field("id", "string", STORED), Field("latency", "double", [*STORED, "sleep"])]
    return ApplicationPackage("retryapplication", [Schema("retryapplication", Document(fields))])


def operators() -> ApplicationPackage:
    """A field for each operator of the query builder: `querybuilder`."""
    stored = ("f1", "f2", "f3", "f4", "id", "date", "status", "comments", "artist", "subject", "display_date")
    searched = ("text", "title", "description", "myStringAttribute", "myUrlField", "fieldName", "keywords")
    numbers = {"age": "int", "duration": "int", "integer_field": "int", "timestamp": "long", "price": "double"}
    fields = [
        Field("weightedset_field", "weightedset<string>", ["attribute"]),
        Field("location_field", "position", ["attribute"]),
        *(Field(name, "string", STORED) for name in stored),
        *(Field(name, "string", SEARCHED) for name in searched),
        *(Field(name, kind, STORED) for name, kind in numbers.items()),
        *(Field(name, "tensor<float>(x[128])", ["attribute"]) for name in ("embedding", "dense_rep")),
        Field("tags", "array<string>", STORED),
        Field("predicate_field", "predicate", STORED, index="arity: 2"),
    ]
    mails = ["sender", "recipient", "subject", "content"]
    structs = [
        Struct("email", [Field(name, "string") for name in mails]),
        Struct("person", [Field(name, kind) for name, kind in PERSON.items()]),
    ]
    schema = Schema(
        "sd1",
        Document(fields, structs=structs),
        fieldsets=[FieldSet("default", ["text", "title", "description"])],
        rank_profiles=[
            _profile("dotproduct", "rawScore(weightedset_field)", "rawScore(weightedset_field)"),
            _profile("geolocation", "distance(location_field)", "distance(location_field).km"),
            _profile("bm25", "bm25(text)", "bm25(text)"),
        ],
    )
    content = StructField("content", indexing=["attribute"], attribute=["fast-search"])
    people = [StructField(name, indexing=["attribute"]) for name in PERSON]
    schema.add_fields(
        Field("emails", "array<email>", ["summary"], struct_fields=[content]),
        Field("persons", "array<person>", ["summary"], struct_fields=people),
    )
    return ApplicationPackage("querybuilder", [schema])


PERSON: Final = {"first_name": "string", "last_name": "string", "year_of_birth": "int"}


def _profile(name: str, first_phase: str, feature: str) -> RankProfile:
    return RankProfile(name, first_phase=first_phase, summary_features=[feature])


def purchases() -> ApplicationPackage:
    """What is grouped: `grouping`."""
    kinds = {"date": "long", "price": "int", "tax": "double", "item": "string", "customer": "string"}
    fields = [Field(name, kind, STORED) for name, kind in kinds.items()]
    profile = RankProfile("pricerank", first_phase="attribute(price)")
    return ApplicationPackage("grouping", [Schema("purchase", Document(fields), rank_profiles=[profile])])


APPLICATIONS: Final[dict[str, Callable[[], ApplicationPackage]]] = {
    make().name: make for make in (passages, questions, mail, updates, slow, operators, purchases)
}
