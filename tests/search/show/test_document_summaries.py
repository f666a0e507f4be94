"""Summary classes over a real node: https://docs.vespa.ai/en/querying/document-summaries.html

Among them the class of single attributes, which Vespa's schemas have without saying so.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import orjson
import pytest

from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Update
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.schema import parse_schemas
from paperwasp.schema.teaser_settings import Teasers, TeaserSettings
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Hit
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show import summary
from paperwasp.storage.documents.document_store import DocumentStore
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

ALBUM = """
schema album {
  document album {
    struct track { field name type string {}
      field seconds type int {} }
    field title type string { indexing: index | summary
      bolding: on }
    field review type string { indexing: index | summary }
    field quotes type array<string> { indexing: index | summary }
    field year type int { indexing: attribute | summary }
    field genre type string { indexing: attribute | summary }
    field labels type array<string> { indexing: attribute | summary }
    field tracks type array<track> { indexing: summary
      struct-field name { indexing: attribute }
      struct-field seconds { indexing: attribute } }
    field best type track { indexing: summary }
    field prices type map<string, track> { indexing: summary }
    field vector type tensor<float>(x[2]) { indexing: attribute | summary }
    field subtitle type string { indexing: index | summary
      stemming: multiple }
    field moods type weightedset<string> { indexing: index | summary }
    field styles type weightedset<string> { indexing: attribute | summary }
    field codes type array<string> { indexing: attribute | summary
      match: cased }
    field price type int { indexing: attribute | summary }
    field note type string { indexing: summary }
  }
  document-summary memory { summary year {}
    summary genre {}
    summary labels {}
    summary vector {} }
  document-summary with-id inherits memory { summary documentid {} }
  document-summary heir inherits default { summary teaser { source: review
      dynamic } }
  document-summary teasers { summary teaser { source: review
      dynamic }
    summary teasers { source: quotes
      dynamic } }
  document-summary named-id { summary documentid {}
    summary title {} }
  document-summary bold { summary bolded { source: review
      bolding: on } }
  document-summary words { summary title_words { source: title
      tokens }
    summary quote_words { source: quotes
      tokens }
    summary genre_words { source: genre
      tokens } }
  document-summary more-words { summary subtitle_words { source: subtitle
      tokens }
    summary mood_words { source: moods
      tokens }
    summary style_words { source: styles
      tokens }
    summary code_words { source: codes
      tokens } }
  document-summary first-of { summary heading { source: note, subtitle, title }
    summary number { source: price, year }
    summary list { source: codes, labels }
    summary short { source: subtitle, review
      dynamic } }
  document-summary matched { summary quotes { matched-elements-only }
    summary labels { matched-elements-only }
    summary tracks { matched-elements-only } }
  document-summary parts { summary names { source: tracks
      struct-field: name }
    summary best_name { source: best.name }
    summary price_seconds { source: prices
      struct-field: value.seconds } }
}
"""
SCHEMAS = parse_schemas({"schemas/album.sd": ALBUM.strip()}).schemas
PROFILES = ServedSchemas()
FILL = "lorem ipsum " * 40
DOCUMENT = Put(
    DocumentId("n", "album", "1"),
    {
        "title": "Kind of Blue trains",
        "review": f"A train. {FILL} A blue train it is. {FILL}",
        "quotes": ["Blue train", "nothing"],
        "year": 1959,
        "genre": "Modal Jazz",
        "labels": ["Columbia", "CBS"],
        "tracks": [{"name": "So What", "seconds": 562}, {"seconds": 1}],
        "best": {"name": "Blue in Green", "seconds": 327},
        "prices": {"us": {"name": "a", "seconds": 1}, "no": {"name": "b"}},
        "vector": tensor_of([1, 2], TensorType.parse("tensor<float>(x[2])")),
    },
)


@contextmanager
def node() -> Iterator[TestNode]:
    with TemporaryDirectory() as directory, started(Path(directory), dict(SCHEMAS)) as started_node:
        started_node.apply(DOCUMENT)
        yield started_node


def hit_of(node: TestNode, tree: Item = TrueItem(), **parameters: object) -> Hit:  # noqa: B008
    request = query_of(tree, rank_profile="unranked", **parameters)  # type: ignore[arg-type]
    [hit] = search(node.node.reader.view(), request, PROFILES).hits
    return hit


def shown(node: TestNode, tree: Item = TrueItem(), **parameters: object) -> dict[str, object]:  # noqa: B008
    fields: dict[str, object] = orjson.loads(hit_of(node, tree, **parameters).fields)
    return fields


def test_attributes_alone_are_shown_without_reading_documents() -> None:
    with node() as album:
        album.apply(Update(DOCUMENT.id, (FieldUpdate("year", Assign(1960)),)))
        with patch.object(DocumentStore, "multi_get", side_effect=AssertionError):
            hit = hit_of(album, summary="memory")
            some = hit_of(album, summary="memory", summary_fields=("year",))
            with pytest.raises(AssertionError):
                hit_of(album)
        other = hit_of(album, summary="memory", summary_fields=("year", "title", "vector"))
    fields = orjson.loads(hit.fields)
    assert fields | {"vector": 0} == {
        "year": 1960, "genre": "Modal Jazz", "labels": ["Columbia", "CBS"], "vector": 0,
    }  # fmt: skip
    assert not hit.show_document_id
    assert hit.document_id == ""
    assert orjson.loads(some.fields) == {"year": 1960}
    # Where one is not of the class, all are as `default` has them: PartialSummaryHandler.java.
    assert orjson.loads(other.fields).keys() == {"year", "title", "vector"}


@pytest.mark.parametrize("form", ["short", "hex"])
def test_attributes_are_shown_straight_from_columns_as_step_by_step(form: str) -> None:
    """Both ways, over a document with all values and one without any, and classes that show what attributes have."""
    empty = Put(DocumentId("n", "album", "2"), {})
    for fields in (
        ("year",),
        ("genre", "price"),
        ("styles", "labels", "codes"),
        ("year", "vector"),
        ("vector", "genre"),
    ):
        found = []
        for straight in (True, False):
            kept = summary._attributes if straight else (lambda *_: None)
            with node() as album, patch.object(summary, "_attributes", side_effect=kept) as chosen:
                album.apply(empty)
                request = query_of(TrueItem(), rank_profile="unranked", summary="memory", summary_fields=fields)
                request = replace(request, show=replace(request.show, tensor_form=form))
                found.append([hit.fields for hit in search(album.node.reader.view(), request, ServedSchemas()).hits])
                assert chosen.called
        assert found[0] == found[1]
        assert max(found[0], key=len) != b"{}"


def test_words_are_marked_in_attributes_whatever_was_asked_before() -> None:
    """The form of a class is kept, and the words of a query are not part of it."""
    text = """schema place { document place {
      field name type string { indexing: attribute | index | summary
        bolding: on }
      field year type int { indexing: attribute | summary }
    } document-summary short { summary name {}
      summary year {} } }"""
    schemas = dict(parse_schemas({"schemas/place.sd": text}).schemas)
    for asked in ((TrueItem(), WordItem("name", "blue")), (WordItem("name", "blue"), TrueItem())):
        with TemporaryDirectory() as directory, started(Path(directory), schemas) as places:
            places.apply(Put(DocumentId("n", "place", "1"), {"name": "blue", "year": 1}))
            profiles, found = ServedSchemas(), {}
            for tree in asked:
                request = query_of(tree, rank_profile="unranked", summary="short")
                [hit] = search(places.node.reader.view(), request, profiles).hits
                found[type(tree)] = orjson.loads(hit.fields)["name"]
        assert found == {TrueItem: "blue", WordItem: "<hi>blue</hi>"}


def test_the_id_is_shown_by_classes_that_have_it() -> None:
    with node() as album:
        for summary, is_shown in (("default", True), ("memory", False), ("with-id", True), ("heir", True)):
            assert hit_of(album, summary=summary).show_document_id == is_shown
        assert not hit_of(album, summary="default", summary_fields=("title",)).show_document_id
        assert hit_of(album, summary_fields=("documentid",)).document_id == "id:n:album::1"


def test_words_of_phrases_are_bold_where_the_phrase_is() -> None:
    with node() as album:
        bold = {
            tree: shown(album, tree)["title"]
            for tree in (
                PhraseItem("title", ("of", "blue")),
                AndItem((WordItem("title", "kind"), WordItem("title", "train"))),
                NotItem((WordItem("title", "blue"), WordItem("title", "kindly"))),
                OrItem((WordItem("review", "kind"), WordItem("title", "train"))),
                EquivItem((WordItem("title", "zappa"), WordItem("title", "blue"))),
                NearItem(
                    (WordItem("title", "kind"), WordItem("title", "of")), 2, exclusions=(WordItem("title", "train"),)
                ),
                RankItem((WordItem("title", "kind"), WordItem("title", "train"))),
            )
        }
        assert list(bold.values()) == [
            "Kind <hi>of</hi> <hi>Blue</hi> trains",
            "<hi>Kind</hi> of Blue <hi>trains</hi>",
            "Kind of <hi>Blue</hi> trains",
            "Kind of Blue <hi>trains</hi>",
            "Kind of <hi>Blue</hi> trains",
            "<hi>Kind</hi> <hi>of</hi> Blue trains",
            "<hi>Kind</hi> of Blue trains",
        ]


def test_teasers_show_what_is_around_the_words() -> None:
    with node() as album:
        fields = shown(album, PhraseItem("review", ("blue", "train")), summary="teasers")
        teaser = fields["teaser"]
        assert isinstance(teaser, str)
        assert teaser.startswith("<sep />")
        assert " A <hi>blue</hi> <hi>train</hi> it is. " in teaser
        assert 150 < len(teaser) < 350
        assert fields["teasers"] == ["Blue train", "nothing"]
        plain = shown(album, WordItem("review", "blue"), summary="teasers", bolding=False)["teaser"]
        assert isinstance(plain, str)
        assert plain.startswith("...")
        assert "<" not in plain
        bolded = shown(album, WordItem("review", "blue"), summary="bold")["bolded"]
        assert bolded == f"A train. {FILL} A <hi>blue</hi> train it is. {FILL}"


def test_tokens_are_what_a_field_is_searched_by() -> None:
    with node() as album:
        assert shown(album, summary="words") == {
            "title_words": ["kind", "of", "blue", "train"],
            "quote_words": [["blue", "train"], ["nothing"]],
            "genre_words": ["modal jazz"],
        }


def test_the_id_of_a_class_that_names_it_is_shown_beside_the_fields() -> None:
    with node() as album:
        assert shown(album, summary="named-id") == {"title": DOCUMENT.fields["title"]}
        assert shown(album, summary="named-id", summary_fields=("documentid", "title")) == {
            "title": DOCUMENT.fields["title"]
        }


def test_tokens_of_several_forms_and_of_weighted_sets() -> None:
    more = {
        "subtitle": "Blue trains",
        "moods": {"Calm cats": 2, "Low": 1},
        "styles": {"Modal Jazz": 3},
        "codes": ["A-1", "b"],
    }
    with node() as album:
        album.apply(Put(DOCUMENT.id, {**DOCUMENT.fields, **more}))
        assert shown(album, summary="more-words") == {
            "subtitle_words": ["blue", ["train", "trains"]],
            "mood_words": [["calm", "cat"], ["low"]],
            "style_words": [["modal jazz"]],
            "code_words": [["A-1"], ["b"]],
        }


def test_the_first_source_that_has_a_value_is_shown() -> None:
    tree = WordItem("review", "lorem")
    with node() as album:
        fields = shown(album, tree, summary="first-of")
        assert (fields["heading"], fields["number"], fields["list"]) == (
            "Kind of Blue trains", 1959, ["Columbia", "CBS"],
        )  # fmt: skip
        assert str(fields["short"]).startswith("A train. <hi>lorem</hi> ipsum")
        more = {"note": "", "subtitle": "Blue", "price": 7, "codes": []}
        album.apply(Put(DOCUMENT.id, {**DOCUMENT.fields, **more}))
        assert shown(album, tree, summary="first-of") == {
            "heading": "Blue", "number": 7, "list": ["Columbia", "CBS"], "short": "Blue",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (WordItem("quotes", "blue"), {"quotes": ["Blue train"]}),
        (WordItem("labels", "cbs"), {"labels": ["CBS"]}),
        (RangeItem("tracks.seconds", 500, 600), {"tracks": [{"name": "So What", "seconds": 562}]}),
        (SameElementItem("tracks", (RangeItem("seconds", 1, 1),)), {"tracks": [{"seconds": 1}]}),
        (RankItem((TrueItem(), WordItem("labels", "columbia"))), {"labels": ["Columbia"]}),
        (NotItem((WordItem("labels", "cbs"), WordItem("quotes", "red"))), {"labels": ["CBS"]}),
        (TrueItem(), {}),
    ],
)
def test_elements_that_the_query_matched(tree: Item, expected: dict[str, object]) -> None:
    with node() as album:
        assert shown(album, tree, summary="matched") == expected


def test_parts_of_structs() -> None:
    with node() as album:
        assert shown(album, summary="parts") == {
            "names": [{"name": "So What"}, {}],
            "best_name": "Blue in Green",
            "price_seconds": {"us": {"seconds": 1}, "no": {}},
        }


def test_floats_of_tensors_have_the_fewest_digits() -> None:
    """TensorDataSource.java: of their own type; what CBOR is made of has those of a double."""
    vector = tensor_of([1.1, math.nan], TensorType.parse("tensor<float>(x[2])"))
    with node() as album:
        album.apply(Update(DOCUMENT.id, (FieldUpdate("vector", Assign(vector)),)))
        for summary in ("default", "memory"):
            written = hit_of(album, summary=summary).fields
            assert b'"values":[1.1,null]' in written
            exact = hit_of(album, summary=summary, exact_tensors=True).fields
            assert b'"values":[1.100000023841858,null]' in exact
        assert b"1.100000023841858" in (album.node.reader.get(DOCUMENT.id) or b"")  # as document/v1 shows it


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("short", {"type": "tensor<float>(x[2])", "values": [1.0, 2.0]}),
        ("short-value", [1.0, 2.0]),
        ("long-value", [{"address": {"x": "0"}, "value": 1.0}, {"address": {"x": "1"}, "value": 2.0}]),
    ],
)
@pytest.mark.parametrize("summary", ["default", "memory"])
def test_tensors_in_the_form_asked_for(form: str, expected: object, summary: str) -> None:
    with node() as album:
        assert shown(album, summary=summary, tensor_form=form)["vector"] == expected


def test_what_is_empty_is_not_shown() -> None:
    empty = {"title": "", "quotes": [], "genre": "", "labels": [], "tracks": [], "prices": {}, "moods": {}}
    with node() as album:
        album.apply(Put(DOCUMENT.id, {**DOCUMENT.fields, **empty, "codes": ["", "b"], "note": 'in a text ":""'}))
        fields = shown(album)
        assert not set(fields) & set(empty)
        assert (fields["codes"], fields["note"]) == (["", "b"], 'in a text ":""')
        assert set(shown(album, summary="memory")) == {"year", "vector"}


def test_what_writing_the_hits_took_is_measured() -> None:
    clock = count(0, 1_000)
    with node() as album:
        request = query_of(TrueItem(), rank_profile="unranked")
        response = search(album.node.reader.view(), request, PROFILES, Environment(monotonic_ns=lambda: next(clock)))
        assert 0 < response.summary_ns < next(clock)


@pytest.mark.parametrize(
    ("teasers", "word", "expected"),
    [
        # "teaser" of the cluster's settings: 20 bytes around the word, completed to whole words. A piece takes a byte
        # more than is seen, and A as many as it, a and the nine bytes around them: 12 + 3 + 3 before it,
        # 3 + 6 + 3 + 3 + 2 + 3 after it
        (
            Teasers(TeaserSettings(surround_max=20)),
            "blue",
            "<sep />ipsum  A <hi>blue</hi> train it is<sep />",
        ),
        (Teasers(TeaserSettings(prefix=False)), "zappa", ""),
        # 11 + 1 + 5 bytes are the beginning up to train, 7 more those up to lorem
        (Teasers(TeaserSettings(length=16)), "zappa", "A<sep />"),
        (Teasers(by_name={"teaser": TeaserSettings(length=17)}), "zappa", "A train<sep />"),
        (Teasers(TeaserSettings(length=12), {"teaser": TeaserSettings(length=24)}), "zappa", "A train. lorem<sep />"),
        (Teasers(TeaserSettings(length=17), {"review": TeaserSettings(length=24)}), "zappa", "A train<sep />"),
    ],
)
def test_teasers_are_made_as_the_cluster_says(teasers: Teasers, word: str, expected: str) -> None:
    schemas = {"album": replace(SCHEMAS["album"], teasers=teasers)}
    with TemporaryDirectory() as directory, started(Path(directory), schemas) as album:
        album.apply(DOCUMENT)
        tree = OrItem((TrueItem(), WordItem("review", word)))
        assert shown(album, tree, summary="teasers").get("teaser") == expected


RAW_SCHEMA = """
schema blob {
  document blob {
    field data type raw { indexing: summary }
    field more type raw { indexing: attribute | summary }
  }
  raw-as-base64-in-summary: %s
}
"""


@pytest.mark.parametrize(
    ("setting", "expected"), [("true", "VW4Ad27D"), ("false", "Un\\x00wn\\xc3")], ids=["base64", "text"]
)
def test_raw_fields_as_text_or_base64(setting: str, expected: str) -> None:
    """RawData.java: what is not printable ASCII is \\x and two hexadecimal digits."""
    content = b"Un\x00wn\xc3"
    schemas = parse_schemas({"schemas/blob.sd": RAW_SCHEMA % setting}).schemas
    with TemporaryDirectory() as directory, started(Path(directory), dict(schemas)) as blobs:
        blobs.apply(Put(DocumentId("n", "blob", "1"), {"data": content, "more": content}))
        assert shown(blobs) == {"data": expected, "more": expected}


FLOAT_SCHEMA = """
schema s {
  document s {
    struct point { field at type float {}
      field name type string {} }
    field single type float { indexing: attribute | summary }
    field kept type array<float> { indexing: summary }
    field column type array<float> { indexing: attribute | summary }
    field points type map<string, point> { indexing: summary }
    field doubles type array<double> { indexing: summary }
  }
}
"""


def test_floats_within_a_field_have_the_digits_of_doubles() -> None:
    """slime_filler.cpp and attributedfw.cpp insert doubles, which the structured data of the result shows."""
    tenth = float(ctypes.c_float(0.1).value)
    values = {"single": tenth, "kept": [tenth, float("inf")], "column": [tenth], "doubles": [0.1]}
    schemas = parse_schemas({"schemas/s.sd": FLOAT_SCHEMA}).schemas
    with TemporaryDirectory() as directory, started(Path(directory), dict(schemas)) as floats:
        floats.apply(Put(DocumentId("n", "s", "1"), {**values, "points": {"a": {"at": tenth, "name": "x"}}}))
        fields = hit_of(floats).fields
        stored = floats.node.reader.get(DocumentId("n", "s", "1"))
    assert orjson.loads(fields) == {
        "single": 0.1,
        "kept": [0.10000000149011612, "Infinity"],
        "column": [0.10000000149011612],
        "points": {"a": {"at": 0.10000000149011612, "name": "x"}},
        "doubles": [0.1],
    }
    assert stored is not None and b"0.10000000149011612" not in stored  # document/v1 has the digits of a float


THING = """
schema thing {
  document thing {
    field title type string { indexing: index | summary | attribute
      bolding: on }
    field teaser type string { indexing: attribute | summary }
    field shade type string { indexing: attribute }
    field sizes type array<int> { indexing: attribute | summary }
    field weights type weightedset<string> { indexing: attribute }
    field count type int { indexing: attribute | summary }
    field vector type tensor<float>(x[2]) { indexing: attribute }
    field picture type raw { indexing: attribute }
    field when type predicate { indexing: attribute
      index { arity: 2 } }
    field place type position { indexing: attribute }
    field note type string { indexing: summary }
  }
  document-summary cut { summary teaser { dynamic } }
  document-summary other { summary note {} }
}
"""


def test_single_attributes_are_a_summary_of_their_own() -> None:
    """ImplicitSummaries.java in Vespa's config-model: of attributes with one value, also those that say no summary,
    but those whose words are marked."""
    schema = parse_schemas({"schemas/thing.sd": THING.strip()}).schemas["thing"]
    assert list(schema.summaries["attributeprefetch"].fields) == ["shade", "count", "vector", "picture"]
    assert "shade" not in schema.summaries["default"].fields
    own = THING.replace("document-summary other", "document-summary attributeprefetch")
    named = parse_schemas({"schemas/thing.sd": own.strip()}).schemas["thing"].summaries["attributeprefetch"]
    assert list(named.fields) == ["note", "shade", "count", "vector", "picture"]


def test_the_summary_of_single_attributes_is_read_from_memory() -> None:
    with node() as album, patch.object(DocumentStore, "multi_get", side_effect=AssertionError):
        fields = shown(album, summary="attributeprefetch")
    assert fields | {"vector": 0} == {"year": 1959, "genre": "Modal Jazz", "vector": 0}
