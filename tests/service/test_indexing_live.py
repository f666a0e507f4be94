"""Fields that indexing makes, in a whole service: searched, sorted, shown, indexed anew, there after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import web
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import SERVICES
from tests.service.test_live_changes import overrides, wait_for_reindexing

SCHEMA = """schema music {{
    document music {{
        field title type string {{ indexing: summary | index }}
        field artist type string {{ indexing: summary }}
        field date type string {{ indexing: summary }}
        field tags type string {{ indexing: summary }}
        field language type string {{ indexing: set_language }}
    }}
    field everything type string {{ indexing: input artist . " {separator} " . input title | index }}
    field seconds type long {{ indexing: input date | to_epoch_second | attribute | summary }}
    field each type array<string> {{
        indexing: input tags | split " *, *" | for_each {{ lowercase }} | attribute | summary
    }}
    field fed type long {{ indexing: now | attribute }}
    field share type int {{ indexing: random 10 | attribute | summary }}
    {more}
    fieldset default {{ fields: everything }}
    rank-profile default {{ first-phase {{ expression: attribute(seconds) }} }}
}}
"""
MORE = "field upper type int { indexing: input title | hash | attribute | summary }"
TITLES = ("Kind of Blue", "Blue Train", "Giant Steps")


def files(separator: str = "by", more: str = "") -> dict[str, str]:
    return {"services.xml": SERVICES, "schemas/music.sd": SCHEMA.format(separator=separator, more=more), **overrides()}


def feed(service: Deployed) -> None:
    for number, title in enumerate(TITLES):
        fields = {
            "title": title,
            "artist": f"Artist {number}",
            "date": f"195{number}-01-01T00:00:00Z",
            "tags": f"Jazz, Number {number}",
        }
        answer = web.post(f"{service.url}/document/v1/ns/music/docid/{number}", json={"fields": fields})
        assert answer.status_code == 200, answer.text


def hits(service: Deployed, where: str, order: str = "") -> list[dict[str, Any]]:
    """The fields of the hits."""
    yql = f"select * from music where {where} {order}"
    answer = web.get(service.url + "/search/", params={"yql": yql, "timeout": "20s"}, timeout=30).json()
    assert "errors" not in answer["root"], answer
    return [hit["fields"] for hit in answer["root"].get("children", [])]


def titles(service: Deployed, where: str, order: str = "") -> list[str]:
    return [fields["title"] for fields in hits(service, where, order)]


def test_fields_that_indexing_makes(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        active(service.deploy(files()))
        feed(service)
        assert titles(service, "everything contains 'artist'") == ["Giant Steps", "Blue Train", "Kind of Blue"]
        assert titles(service, "everything contains phrase('1', 'by', 'blue')") == ["Blue Train"]
        assert titles(service, "each contains 'number 2'") == ["Giant Steps"]
        assert titles(service, "seconds < -568080000") == ["Blue Train", "Kind of Blue"]
        assert titles(service, "true", "order by seconds asc") == list(TITLES)
        assert titles(service, "fed > 1700000000 and share < 10", "order by seconds asc") == list(TITLES)
        shown = hits(service, "title contains 'giant'")[0]
        assert (shown["seconds"], shown["each"]) == (-568080000, ["jazz", "number 2"])
        assert 0 <= shown["share"] < 10 and "everything" not in shown and "fed" not in shown
        document = web.get(f"{service.url}/document/v1/ns/music/docid/2").json()["fields"]
        assert document.keys() == {"title", "artist", "date", "tags"}
        changed = web.put(
            f"{service.url}/document/v1/ns/music/docid/2",
            json={"fields": {"title": {"assign": "Countdown"}, "artist": {"assign": "Coltrane"}}},
        )
        assert changed.status_code == 200
        assert titles(service, "everything contains 'coltrane'") == ["Countdown"]
        assert titles(service, "everything contains 'giant'") == []
        refused = web.put(f"{service.url}/document/v1/ns/music/docid/2", json={"fields": {"date": {"assign": "never"}}})
        assert refused.status_code == 400 and "Could not index field 'seconds'" in refused.text
        _indexed_anew(service)
    with deployed_service(tmp_path) as service:
        assert titles(service, "everything contains phrase('0', 'says', 'kind')") == ["Kind of Blue"]
        assert titles(service, "seconds < -568080000") == ["Blue Train", "Kind of Blue"]


def _indexed_anew(service: Deployed) -> None:
    """Another script, and another field, for the documents that are there."""
    before = {fields["title"]: fields["share"] for fields in hits(service, "true")}
    active(service.deploy(files("says", MORE)))
    wait_for_reindexing(service)
    assert titles(service, "everything contains phrase('0', 'says', 'kind')") == ["Kind of Blue"]
    assert titles(service, "everything contains 'by'") == []
    found = {fields["title"]: fields for fields in hits(service, "true")}
    assert all(isinstance(fields["upper"], int) and fields["share"] in range(10) for fields in found.values())
    assert before.keys() == found.keys()
    visited = web.get(f"{service.url}/document/v1/ns/music/docid", params={"fieldSet": "[all]"}, timeout=30).json()
    assert all("everything" in document["fields"] for document in visited["documents"])


def test_a_script_that_makes_no_value_of_its_field_is_told_at_the_deployment(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        wrong = "field wrong type int { indexing: input title | lowercase | attribute }"
        answer = service.deploy(files(more=wrong))
        assert answer.status_code == 412
        message = answer.json()["message"]
        assert "For schema 'music', field 'wrong': For expression 'attribute wrong': Can not assign string" in message
        assert "schemas/music.sd, line 16, column 64" in message
