"""Application packages: their layout, the shape of a schema and of services.xml, and what each of it does."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests import web
from tests.conformance.application import ALBUMS, FILES, MUSIC, SERVICES
from tests.conformance.conftest import Served
from tests.conformance.deploying import SMALL, application_url, deploy, ok, refused

BLUE = "select * from music where userQuery()"
SERVICE = str(SMALL["services.xml"])


def test_the_layout_of_an_archive(served: Served) -> None:
    """What the archive had is served as it was: a schema for each document type, services.xml, a model file."""
    url = application_url(served)
    for path in ("schemas/music.sd", "schemas/note.sd", "services.xml", "models/layer.onnx"):
        content = FILES[path]
        expected = content.encode() if isinstance(content, str) else content
        answer = web.get(f"{url}/content/{path}")
        assert (answer.status_code, answer.content) == (200, expected)
    for missing in ("services.xml", "schemas/note.sd"):
        rest = {name: content for name, content in SMALL.items() if name != missing}
        refused(deploy(served, "incomplete", rest), 412, "INVALID_APPLICATION_PACKAGE")
    without_model = {name: content for name, content in FILES.items() if name != "models/layer.onnx"}
    message = refused(deploy(served, "incomplete", without_model), 412, "INVALID_APPLICATION_PACKAGE")
    assert "models/layer.onnx" in message


def test_every_part_of_a_schema_is_there() -> None:
    """The schema of these tests has each part of the shape that the specification shows, so that they prove it."""
    for part in (
        "schema music {",
        "document music {",
        "field title type string {",
        "index: enable-bm25",
        "attribute { distance-metric: angular }",
        "fieldset default { fields: title, artist }",
        "rank-profile cheap inherits default {",
        "first-phase {",
        "second-phase {",
        "rerank-count: 2",
        "inputs {",
        "query(q) tensor<float>(d0[4])",
        "function twice()",
        "onnx-model layer {",
        "file: models/layer.onnx",
        "input x: row",
    ):
        assert part in MUSIC


def test_field_types(served: Served) -> None:
    answer = served.document("GET", "albums/music/docid/1")
    shown = answer.json()["fields"]
    expected = ALBUMS["1"]
    assert {name: shown[name] for name in ("title", "year", "price")} == {
        "title": "Blue Train",
        "year": 1957,
        "price": 9.5,
    }
    assert shown["vector"] == {"type": "tensor<float>(d0[4])", "values": [1.0, 0.0, 0.0, 0.0]}
    assert set(shown) == set(expected)
    for name, wrong in (("title", [1]), ("year", "many"), ("price", "much"), ("vector", "x")):
        refused_put = served.document("POST", "types/music/docid/1", {"fields": {name: wrong}})
        assert (refused_put.status_code, name in refused_put.json()["message"]) == (400, True)


def test_indexing_statements(served: Served) -> None:
    """`index` is searched by words, `attribute` by values, `summary` is shown; joined by `|` they do all of it."""
    assert served.ids("select * from music where title contains 'steps'") == ["3"]
    assert served.ids("select * from music where year = 1965") == ["4"]
    assert "released" not in served.root(BLUE, query="train")["children"][0]["fields"]
    assert served.root(BLUE, query="train")["children"][0]["fields"]["price"] == 9.5
    unsearchable = served.search("select * from music where nothing contains 'x'")
    assert unsearchable.status_code == 400


def test_the_field_set_of_plain_queries(served: Served) -> None:
    """The schema's field set `default` has title and artist, and not the story."""
    assert served.ids(BLUE, query="giant") == ["3"]
    assert served.ids(BLUE, query="brubeck") == ["5"]
    assert served.ids(BLUE, query="quintet") == []
    assert served.ids("select * from music where story contains 'quintet'") == ["1"]


def test_two_phases_of_ranking(served: Served) -> None:
    """By price the order is 2, 4, 5, 1, 3; the second phase puts the best two in order of their years."""
    children = served.root(ranking="cheap")["children"]
    assert [each["id"][-1] for each in children] == ["4", "2", "5", "1", "3"]
    assert [each["relevance"] for each in children[:2]] == [1965.0, 1959.0]


def test_functions_of_ranking(served: Served) -> None:
    """fieldMatch: 0.95 for the whole query found, and 0.05 for half of the field; freshness: half of three months."""
    root = served.root(
        BLUE, query="blue", ranking="texts", **{"ranking.freshness": str(1_000_000_000 + 7_776_000 // 2)}
    )
    by_id = {each["id"][-1]: each["relevance"] for each in root["children"]}
    assert by_id == pytest.approx({"1": 0.95 + 0.05 / 2 + 5, "2": 0.95 + 0.05 / 3 + 5}, abs=1e-6)


def test_models_in_ranking(served: Served) -> None:
    """The network gives the fourth row of its weights, 9, 10 and 11, for a vector whose fourth number is 1."""
    root = served.root(ranking="network", **{"input.query(q)": "[0,0,0,1]"})
    assert {each["relevance"] for each in root["children"]} == {30.0}


def test_every_element_of_services_is_there() -> None:
    root = ElementTree.fromstring(SERVICES)
    assert (root.tag, root.get("version")) == ("services", "1.0")
    container = root.find("container")
    assert container is not None
    assert (container.get("id"), container.get("version")) == ("default", "1.0")
    assert [child.tag for child in container] == ["search", "document-api", "model-evaluation", "nodes"]
    content = root.find("content")
    assert content is not None
    assert (content.get("id"), content.get("version")) == ("records", "1.0")
    assert [child.tag for child in content] == ["redundancy", "documents", "nodes"]
    assert content.findtext("redundancy") == "1"
    document, node = content.find("documents/document"), content.find("nodes/node")
    assert document is not None and document.attrib == {"type": "music", "mode": "index"}
    assert node is not None and node.attrib == {"distribution-key": "0", "hostalias": "node1"}


@pytest.mark.parametrize(
    ("element", "path"),
    [
        ("<search/>", "/search/?yql=select+*+from+note+where+true"),
        ("<document-api/>", "/document/v1/ns/note/docid/1"),
        ("<model-evaluation/>", "/model-evaluation/v1/"),
    ],
)
def test_an_interface_is_there_where_its_element_is(served: Served, element: str, path: str) -> None:
    interfaces = "<search/><document-api/>"
    files = {**SMALL, "services.xml": SERVICE.replace(interfaces, interfaces.replace(element, ""))}
    ok(deploy(served, "without", files))
    url = served.service.container_url(name="default.without.default")
    answer = web.get(url + path)
    assert (answer.status_code, answer.json().get("errors")) == (404, None), answer.text
    files = {**SMALL, "services.xml": SERVICE.replace(interfaces, "<search/><document-api/><model-evaluation/>")}
    ok(deploy(served, "without", files))
    answer = web.get(served.service.container_url(name="default.without.default") + path)
    assert "No binding" not in answer.text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('<document type="note" mode="index"/>', '<document type="none" mode="index"/>', "none"),
        ('mode="index"', 'mode="indexed"', "mode"),
        ("<redundancy>1</redundancy>", "<redundancy>one</redundancy>", "redundancy"),
        ('<content id="notes"', '<contents id="notes"', "contents"),
        ("</documents>", '</documents><nodes><node distribution-key="x" hostalias="n"/></nodes>', "distribution-key"),
        ('<document type="note"', "<document", "type"),
        ("<services", "<service", "service"),
    ],
)
def test_services_that_are_wrong(served: Served, old: str, new: str, told: str) -> None:
    wrong = SERVICE.replace(old, new)
    if new == '<contents id="notes"':
        wrong = wrong.replace("</content>", "</contents>")
    if new == "<service":
        wrong = wrong.replace("</services>", "</service>")
    assert wrong != SERVICE
    assert told in refused(
        deploy(served, "wrong", {**SMALL, "services.xml": wrong}), 412, "INVALID_APPLICATION_PACKAGE"
    )


def test_a_word_that_is_no_keyword(served: Served) -> None:
    """What the specification does not list is refused by name, or executed as Vespa does."""
    schema = str(SMALL["schemas/note.sd"])
    for old, new in (("type int", "type integer32"), ("indexing:", "indxing:"), ("| index", "| indexx")):
        wrong = schema.replace(old, new, 1)
        message = refused(
            deploy(served, "wrong", {**SMALL, "schemas/note.sd": wrong}), 412, "INVALID_APPLICATION_PACKAGE"
        )
        assert "schemas/note.sd, line" in message
