"""What a change of an application needs: the whole table of docs/reference/changes.md, on models made by hand."""

from __future__ import annotations

import pytest

from paperwasp.application.changes.find import find_changes
from paperwasp.application.changes.found import Changes, Refusal
from paperwasp.base.records import replace
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    INT,
    PREDICATE,
    STRING,
    TAG,
    DataType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    weighted_set_of,
)
from paperwasp.schema.model import (
    AttributeSettings,
    Field,
    FieldSet,
    Hnsw,
    ImportedField,
    IndexingScript,
    Linguistics,
    MatchSettings,
    RankProfile,
    SubField,
    SummaryField,
)
from tests.application.changes.change_models import ATTRIBUTE, INDEX, application, field, lines, with_fields

VECTOR = tensor_field(TensorType.parse("tensor<float>(x[2])"))
PERSON = struct_of("person", {"name": STRING, "age": INT})
SPLIT_AND_SHOWN = IndexingScript('input a | split "| index" | summary f1 | index f1', is_plain=False)
PLAIN = '{ input f1 | tokenize normalize stem:"BEST" | index f1; }'


def of_field(before: Field, after: Field, mode: str = "index") -> list[str]:
    found = lines(find_changes(with_fields(before, mode=mode), with_fields(after, mode=mode)))
    return [line.replace("Document type 'music': Field 'f1' changed: ", "") for line in found]


def attribute(**settings: object) -> Field:
    return field(attribute=AttributeSettings(**settings))  # type: ignore[arg-type]


def vector(metric: str = "", hnsw: Hnsw | None = None) -> Field:
    index = replace(INDEX, hnsw=hnsw) if hnsw else INDEX
    return field("f1", VECTOR, index=index, attribute=AttributeSettings(distance_metric=metric))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"summary": True}),
        ({"index": INDEX}, {"index": replace(INDEX, enable_bm25=True)}),
        ({"index": INDEX}, {"index": replace(INDEX, prefix=True)}),
        ({"index": INDEX}, {"index": INDEX, "rank_filter": True}),
        ({"index": INDEX}, {"index": INDEX, "weight": 3, "aliases": {"a": "f1"}, "rank_type": "identity"}),
        ({"index": INDEX}, {"index": INDEX, "bolding": True}),
        ({"index": INDEX}, {"index": INDEX, "query_commands": ("x",)}),
        ({"index": INDEX, "attribute": ATTRIBUTE}, {"index": INDEX}),
        ({"attribute": ATTRIBUTE}, {"attribute": replace(ATTRIBUTE, mutable=True)}),
        ({"index": INDEX}, {"index": INDEX, "match": "text"}),
        (
            {"index": INDEX, "script": IndexingScript("input f1 | index f1")},
            {"index": INDEX, "script": IndexingScript("input f1 | index f1 | summary f1")},
        ),
        (
            {"index": INDEX, "script": IndexingScript('input a | split "| index" | index f1', is_plain=False)},
            {"index": INDEX, "script": SPLIT_AND_SHOWN},
        ),
        ({"linguistics": Linguistics("a")}, {"linguistics": Linguistics("b")}),
        ({"match_settings": MatchSettings(exact_terminator="%")}, {}),
    ],
)
def test_settings_that_need_nothing(before: dict[str, object], after: dict[str, object]) -> None:
    assert of_field(field(**before), field(**after)) == []


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (field(), attribute(), "add attribute aspect"),
        (attribute(), field(), "remove attribute aspect"),
        (attribute(), attribute(fast_search=True), "add attribute 'fast-search'"),
        (attribute(fast_rank=True), attribute(), "remove attribute 'fast-rank'"),
        (attribute(), attribute(fast_access=True), "add attribute 'fast-access'"),
        (attribute(), attribute(paged=True), "add attribute 'paged'"),
        (attribute(), attribute(enable_only_bit_vector=True), "add attribute 'rank: filter'"),
        (replace(attribute(), rank_filter=True), attribute(), "remove attribute 'rank: filter'"),
        (
            attribute(),
            attribute(hashed=True, ordered=False),
            "change property 'dictionary: btree/hash' from 'BTREE' to 'HASH'",
        ),
        (
            attribute(hashed=True),
            attribute(),
            "change property 'dictionary: btree/hash' from 'BTREE_AND_HASH' to 'BTREE'",
        ),
        (
            attribute(),
            attribute(cased=True),
            "change property 'dictionary: cased/uncased' from 'UNCASED' to 'CASED'",
        ),
        (
            field("f1", PREDICATE, attribute=ATTRIBUTE, index=replace(INDEX, dense_posting_list_threshold=0.2)),
            field("f1", PREDICATE, attribute=ATTRIBUTE, index=INDEX),
            "change property 'dense-posting-list-threshold' from '0.2' to '0.4'",
        ),
        (
            field("f1", VECTOR, attribute=ATTRIBUTE),
            field("f1", VECTOR, attribute=AttributeSettings(distance_metric="prenormalized-angular")),
            "change property 'distance-metric' from 'EUCLIDEAN' to 'PRENORMALIZED_ANGULAR'",
        ),
        (field("f1", VECTOR, attribute=ATTRIBUTE), vector(), "add attribute 'indexing: index'"),
        (vector(), field("f1", VECTOR, attribute=ATTRIBUTE), "remove attribute 'indexing: index'"),
        (
            vector(),
            vector(hnsw=Hnsw(neighbors_to_explore_at_insert=100)),
            "change hnsw index property 'neighbors-to-explore-at-insert' from '200' to '100'",
        ),
    ],
)
def test_columns_that_are_made_anew(before: Field, after: Field, change: str) -> None:
    assert of_field(before, after) == [f"restart: {change}"]
    assert find_changes(with_fields(before), with_fields(after)).refusals == ()


@pytest.mark.parametrize(
    ("after", "change"),
    [
        (vector("angular"), "change property 'distance-metric' from 'EUCLIDEAN' to 'ANGULAR'"),
        (vector(hnsw=Hnsw(max_links_per_node=4)), "change hnsw index property 'max-links-per-node' from '16' to '4'"),
    ],
)
def test_what_builds_a_graph_anew_must_be_allowed(after: Field, change: str) -> None:
    changes = find_changes(with_fields(vector()), with_fields(after))
    message = f"Document type 'music': Field 'f1' changed: {change}"
    assert lines(changes) == [f"restart: {message}"]
    assert changes.refusals == (Refusal("hnsw-settings-change", message),)


def test_an_attribute_may_only_cease_to_be_paged_where_that_is_allowed() -> None:
    changes = find_changes(with_fields(attribute(paged=True)), with_fields(attribute()))
    assert lines(changes) == [
        "restart: Document type 'music': Field 'f1' changed: remove attribute 'paged'",
        "refused paged-setting-removal: Document type 'music': Attribute 'f1' has setting 'paged' removed. "
        "This may take much more memory",
    ]


@pytest.mark.parametrize("type_", [array_of(PERSON), map_of(STRING, PERSON), PERSON])
def test_columns_of_struct_fields(type_: DataType) -> None:
    path = "value.name" if type_.name.startswith("map") else "name"
    with_part = field("f1", type_, sub_fields={path: SubField(path, STRING, attribute=ATTRIBUTE)})
    fast = field("f1", type_, sub_fields={path: SubField(path, STRING, attribute=AttributeSettings(True))})
    other = field("f1", type_, sub_fields={"new": SubField("new", STRING, attribute=ATTRIBUTE)})
    start = f"restart: Document type 'music': Field 'f1.{path}' changed: "
    assert of_field(field("f1", type_), with_part) == [f"{start}add attribute aspect"]
    assert of_field(with_part, fast) == [f"{start}add attribute 'fast-search'"]
    assert of_field(with_part, field("f1", type_)) == []
    assert of_field(field("f1", type_), other) == []


def test_maps_have_columns_of_their_keys_and_values() -> None:
    type_ = map_of(STRING, INT)
    parts = {path: SubField(path, STRING, attribute=ATTRIBUTE) for path in ("key", "value")}
    assert len(of_field(field("f1", type_), field("f1", type_, sub_fields=parts))) == 2


def reindexing(change: str, before: str, after: str) -> list[str]:
    return [f"reindex indexing-change: {change}{', ' if change else ''}indexing script: '{before}' -> '{after}'"]


@pytest.mark.parametrize(
    ("before", "after", "change", "scripts"),
    [
        (field(), field(index=INDEX), "add index aspect", ("{ input f1; }", PLAIN)),
        (field(index=INDEX), field(), "remove index aspect", (PLAIN, "{ input f1; }")),
        (
            field(index=INDEX),
            field(index=replace(INDEX, stemming="none")),
            "stemming: 'best' -> 'none'",
            (PLAIN, "{ input f1 | tokenize normalize | index f1; }"),
        ),
        (
            field(index=INDEX),
            field(index=replace(INDEX, normalizing=False)),
            "normalizing: 'ACCENT' -> 'NONE'",
            (PLAIN, '{ input f1 | tokenize stem:"BEST" | index f1; }'),
        ),
        (
            field(index=INDEX, match="exact"),
            field(index=INDEX, match="gram", match_settings=MatchSettings(gram_size=3)),
            "matching: 'exact' -> 'gram (size 3)', normalizing: 'LOWERCASE' -> 'CODEPOINT'",
            ("{ input f1 | exact | index f1; }", "{ input f1 | ngram 3 | index f1; }"),
        ),
        (
            field(index=INDEX, match="gram"),
            field(index=INDEX, match="gram", match_settings=MatchSettings(gram_size=4)),
            "matching: 'gram (size 2)' -> 'gram (size 4)'",
            ("{ input f1 | ngram 2 | index f1; }", "{ input f1 | ngram 4 | index f1; }"),
        ),
        (
            field(index=INDEX),
            field(index=INDEX, cased=True, match="cased"),
            "",
            (PLAIN, '{ input f1 | tokenize normalize stem:"BEST" keep-case | index f1; }'),
        ),
        (
            field(index=INDEX),
            field(index=INDEX, match_settings=MatchSettings(max_length=10, max_occurrences=5, max_token_length=3)),
            "",
            (
                PLAIN,
                '{ input f1 | tokenize normalize stem:"BEST" max-length:10 max-occurrences:5 max-token-length:3 '
                "| index f1; }",
            ),
        ),
        (
            field(index=INDEX),
            field(index=INDEX, linguistics=Linguistics("names")),
            "",
            (PLAIN, '{ input f1 | tokenize normalize stem:"BEST" linguistics-profile:names | index f1; }'),
        ),
        (
            field(index=INDEX, script=IndexingScript("input f1 | index f1")),
            field(index=INDEX, script=IndexingScript("input f1 | lowercase | index f1", is_plain=False)),
            "",
            (PLAIN, '{ input f1 | lowercase | tokenize normalize stem:"BEST" | index f1; }'),
        ),
        (
            field(attribute=ATTRIBUTE),
            field(attribute=ATTRIBUTE, index=INDEX),
            "add index aspect, matching: 'word' -> 'text', stemming: 'none' -> 'best', "
            "normalizing: 'LOWERCASE' -> 'ACCENT'",
            (
                "{ input f1 | attribute f1; }",
                '{ input f1 | tokenize normalize stem:"BEST" | index f1 | attribute f1; }',
            ),
        ),
        (
            field("f1", PREDICATE, index=replace(INDEX, arity=2), attribute=ATTRIBUTE),
            field("f1", PREDICATE, index=replace(INDEX, arity=8, lower_bound=3), attribute=ATTRIBUTE),
            "",
            (
                "{ 2 | set_var arity; input f1 | index f1 | attribute f1; }",
                "{ 8 | set_var arity; 3 | set_var lower_bound; input f1 | index f1 | attribute f1; }",
            ),
        ),
    ],
)
def test_values_that_are_made_anew(before: Field, after: Field, change: str, scripts: tuple[str, str]) -> None:
    assert of_field(before, after) == reindexing(change, *scripts)
    (refusal,) = find_changes(with_fields(before), with_fields(after)).refusals
    assert refusal.validation_id == "indexing-change"


def test_elements_of_arrays_are_indexed_one_by_one() -> None:
    type_ = array_of(STRING)
    after = '{ input f1 | for_each { tokenize normalize stem:"BEST" } | index f1; }'
    assert of_field(field("f1", type_), field("f1", type_, index=INDEX)) == reindexing(
        "add index aspect", "{ input f1; }", after
    )


def test_a_dynamic_summary_needs_tokens_where_there_is_no_index() -> None:
    def changes(**settings: object) -> Changes:
        teaser = SummaryField("f1", ("f1",), dynamic=True)
        plain = field(summary=True, **settings)
        return find_changes(with_fields(plain), with_fields(plain, shown=[teaser]))

    after = '{ input f1 | tokenize normalize stem:"BEST" | summary f1; }'
    expected = reindexing(
        "summary field 'f1' transform: 'none' -> 'dynamicteaser'", "{ input f1 | summary f1; }", after
    )
    assert lines(changes()) == [
        line.replace(": summary", ": Document type 'music': Field 'f1' changed: summary", 1) for line in expected
    ]
    assert changes(index=INDEX) == Changes()
    assert changes(attribute=ATTRIBUTE) == Changes()


def test_a_field_outside_the_document_is_filled_by_reindexing() -> None:
    outside = field("f2", index=INDEX, in_document=False)
    changes = find_changes(with_fields(field()), with_fields(field(), outside))
    (action,) = changes.actions
    assert (action.kind, action.name, action.validation_id) == ("reindex", "reindexing", None)
    assert action.messages == (
        "Document type 'music': Non-document field 'f2' added; this may be populated by reindexing",
    )
    assert changes.refusals == ()
    assert find_changes(with_fields(field(), outside), with_fields(field())) == Changes()
    other = find_changes(with_fields(outside), with_fields(replace(outside, type=INT, index=None)))
    assert [action.kind for action in other.actions] == ["reindex"]
    assert "data type: 'string' -> 'int'" in other.actions[0].messages[0]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (STRING, INT, "'string' -> 'int'"),
        (STRING, array_of(STRING), "'string' -> 'Array<string>'"),
        (weighted_set_of(STRING), TAG, "'WeightedSet<string>' -> 'WeightedSet<string>;Add;Remove'"),
        (map_of(STRING, INT), map_of(STRING, STRING), "'Map<string,int>' -> 'Map<string,string>'"),
        (reference_to("a"), reference_to("b"), "'Reference<a>' -> 'Reference<b>'"),
        (VECTOR, tensor_field(TensorType.parse("tensor(x[2])")), "'tensor<float>(x[2])' -> 'tensor(x[2])'"),
        (PERSON, struct_of("person", {"age": STRING}), "'person:{name:string,age:int}' -> 'person:{age:string}'"),
        (
            array_of(PERSON),
            array_of(struct_of("person", {"age": STRING})),
            "'Array<person:{name:string,age:int}>' -> 'Array<person:{age:string}>'",
        ),
        (
            array_of(PERSON),
            array_of(struct_of("human", {"age": INT})),
            "'Array<person:{name:string,age:int}>' -> 'Array<human:{age:int}>'",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["index", "streaming", "store-only"])
def test_values_that_do_not_fit_must_be_fed_again(before: DataType, after: DataType, change: str, mode: str) -> None:
    old, new = field("f1", before), field("f1", after)
    assert of_field(old, new, mode) == [f"refeed field-type-change: data type: {change}"]
    (refusal,) = find_changes(with_fields(old), with_fields(new)).refusals
    assert refusal.validation_id == "field-type-change"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PERSON, struct_of("person", {"name": STRING, "new": INT})),
        (PERSON, struct_of("human", {"name": STRING})),
        (array_of(PERSON), array_of(struct_of("person", {"name": STRING, "new": INT}))),
        (TAG, weighted_set_of(STRING, create_if_nonexistent=True, remove_if_zero=True)),
    ],
)
def test_structs_gain_and_lose_fields_freely(before: DataType, after: DataType) -> None:
    assert of_field(field("f1", before), field("f1", after)) == []


def test_fields_profiles_fieldsets_and_imports_come_and_go_freely() -> None:
    one = with_fields(field(index=INDEX, attribute=ATTRIBUTE))
    parent = ImportedField("p", "ref", "target", "other")
    both = with_fields(
        field(index=INDEX, attribute=ATTRIBUTE),
        field("f2", index=INDEX),
        field("f3", INT, attribute=ATTRIBUTE),
        field("p", INT, attribute=ATTRIBUTE, in_document=False, imported=parent),
    )
    (content,) = both.content_clusters
    profiles = {"default": RankProfile("default"), "other": RankProfile("other", "attribute(f3)")}
    wider = replace(content.schemas["music"], rank_profiles=profiles, fieldsets={"d": FieldSet("d", ("f1",))})
    changed = application(replace(content, schemas={"music": wider}))
    assert find_changes(one, changed) == Changes()
    assert find_changes(changed, one) == Changes()


def test_streaming_documents_only_mind_which_columns_are_kept() -> None:
    kept = attribute(fast_access=True)
    assert of_field(field(), kept, "streaming") == ["restart: add fast-access attribute"]
    assert of_field(kept, attribute(), "streaming") == ["restart: remove fast-access attribute"]
    assert of_field(field(), field(index=INDEX), "streaming") == []
