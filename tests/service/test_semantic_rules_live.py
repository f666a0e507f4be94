"""Semantic rules from deployment to query: used at once, changed by the next deployment, refused when broken."""

from __future__ import annotations

from pathlib import Path

from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.music import FILES

RULES = """
@default
title:lp -> title:album;
title:[decade] -> ;
[decade] :- fifties, sixties;
"""


def found(service: Deployed, query: str, **parameters: str) -> list[str]:
    given = {"query": query, "type": "all", "default-index": "title", "bolding": "false", **parameters}
    answer = web.get(f"{service.url}/search/", params=given, timeout=30).json()
    assert "errors" not in answer["root"], answer
    return [hit["fields"]["title"] for hit in answer["root"].get("children", ())]


def with_rules(**files: str) -> dict[str, str]:
    return FILES | {f"rules/{name}.sr": text for name, text in files.items()}


def test_rules_are_executed_and_changed_by_the_next_deployment(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        assert service.deploy(with_rules(main=RULES, other="title:lp -> title:single;")).status_code == 200
        for number, title in enumerate(("old album", "new album", "album sixties", "a single", "lp")):
            fields = {"fields": {"title": title, "year": 1960 + number}}
            assert web.post(f"{service.url}/document/v1/ns/music/docid/{number}", json=fields).status_code == 200
        assert sorted(found(service, "lp")) == ["album sixties", "new album", "old album"]
        assert sorted(found(service, "sixties lp")) == ["album sixties", "new album", "old album"]
        assert found(service, "lp", **{"rules.off": "true"}) == ["lp"]
        assert found(service, "lp", **{"rules.rulebase": "other"}) == ["a single"]
        yql = "select * from music where title contains 'lp' and year > 1960"
        answer = web.get(f"{service.url}/search/", params={"yql": yql, "tracelevel.rules": "1"}, timeout=30).json()
        assert answer["root"]["fields"]["totalCount"] == 2
        (told,) = answer["trace"]["children"]
        assert "to 'AND title:album year:>1960' since 'title:lp -> title:album' matched" in told["message"]

        refused = service.deploy(with_rules(main="title:lp -> [nothing];"))
        assert refused.status_code in (400, 412)
        assert "rules/main.sr, line 1, column 1: Nothing in the condition is called 'nothing'" in refused.text
        assert found(service, "lp", **{"rules.rulebase": "other"}) == ["a single"]

        assert service.deploy(with_rules(main="@default\ntitle:single -> title:old;")).status_code == 200
        assert found(service, "single") == ["old album"]
        assert service.deploy(FILES).status_code == 200
        assert found(service, "lp") == ["lp"]
        answer = web.get(f"{service.url}/search/", params={"query": "lp", "rules.rulebase": "main"}, timeout=30)
        assert "Requested rule base 'main' does not exist: there are no rule bases" in answer.text
