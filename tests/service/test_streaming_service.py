"""Streaming mode through the whole service, as https://docs.vespa.ai/en/performance/streaming-search.html describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paperwasp import Service
from paperwasp.embedded.requests import RequestFailed
from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.music import FILES

STREAMING = {**FILES, "services.xml": FILES["services.xml"].replace('mode="index"', 'mode="streaming"')}


def feed(service: Deployed, path: str, title: str, year: int) -> None:
    fields = {"fields": {"title": title, "year": year, "tags": ["x"]}}
    answer = web.post(f"{service.url}/document/v1/mynamespace/music/{path}", json=fields, timeout=30)
    assert answer.status_code == 200, answer.text


def search(service: Deployed, yql: str = "select * from music where true", **more: str | int) -> dict[str, Any]:
    answer = web.post(f"{service.url}/search/", json={"yql": yql, "timeout": "20s", **more}, timeout=30)
    root: dict[str, Any] = answer.json()["root"]
    return root


def titles(root: dict[str, Any]) -> list[str]:
    return [hit["fields"]["title"] for hit in root.get("children", ())]


def test_a_group_is_searched(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        assert service.deploy(STREAMING).status_code == 200
        for number, title in enumerate(("Kind of Blue", "Blue Train", "Giant Steps")):
            feed(service, f"group/myuser/{number}", title, 1957 + number)
        feed(service, "group/other/1", "Blue of another", 1950)
        feed(service, "number/42/1", "Blue by number", 1951)

        root = search(service, **{"streaming.groupname": "myuser"})
        assert root["fields"] == {"totalCount": 3}
        assert root["coverage"] == {
            "coverage": 100, "documents": 3, "full": True, "nodes": 1, "results": 1, "resultsFull": 1,
        }  # fmt: skip
        words = "select * from music where title contains 'blue' order by year desc"
        assert titles(search(service, words, **{"streaming.groupname": "myuser"})) == [
            "<hi>Blue</hi> Train",
            "Kind of <hi>Blue</hi>",
        ]
        assert titles(search(service, words, **{"streaming.userid": 42})) == ["<hi>Blue</hi> by number"]
        selection = {"streaming.selection": "music.year < 1952", "presentation.bolding": "false"}
        assert titles(search(service, words, **selection)) == ["Blue by number", "Blue of another"]
        (error,) = search(service)["errors"]
        assert error["code"] == 3
        assert error["message"].startswith(
            "Streaming search requires either streaming.groupname or streaming.selection"
        )


def test_a_summary_class_that_is_unknown_finds_nothing() -> None:
    """Of a type that is streamed, also where another type has it: StreamingBackend.java (`doSearch2`)."""
    schema = """schema {0} {{
        document {0} {{ field title type string {{ indexing: index | summary }} }}
        {1}
    }}"""
    services = FILES["services.xml"].replace(
        '<document type="music" mode="index"/>',
        '<document type="music" mode="index"/><document type="mail" mode="streaming"/>',
    )
    files = {
        "services.xml": services,
        "schemas/music.sd": schema.format("music", "document-summary short { summary title {} }"),
        "schemas/mail.sd": schema.format("mail", ""),
    }
    with Service(files) as service:
        service.feed([{"put": f"id:n:{name}::1", "fields": {"title": "blue"}} for name in ("music", "mail")])
        said = {"yql": "select * from mail where true", "streaming.selection": "true"}
        assert service.query(said).total == 1
        for summary in ("short", "nosuch"):
            with pytest.raises(RequestFailed) as caught:
                service.query({**said, "summary": summary})
            content: Any = caught.value.content
            root = content["root"]
            assert root["fields"] == {"totalCount": 0}
            (error,) = root["errors"]
            assert (error["code"], error["message"]) == (3, f"invalid presentation.summary={summary}")
        both = service.query({**said, "yql": "select * from sources * where true", "summary": "short"}).json["root"]
        assert [hit["fields"]["title"] for hit in both["children"]] == ["blue"]
        assert [(error["code"], both["fields"]["totalCount"]) for error in both["errors"]] == [(3, 1)]


def test_another_mode_must_be_allowed(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        assert service.deploy(STREAMING).status_code == 200
        refused = service.deploy(FILES)
        assert refused.status_code == 412 and "indexing-mode-change" in refused.text
