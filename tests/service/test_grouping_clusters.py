"""Groups of several document types and several content clusters, over HTTP.

The groups of the types of a cluster are one; each cluster has a root group of its own, and what is grouped by.
Authority: GroupingExecutor.java and GroupingValidator.java, which run once for each cluster; values are worked by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests import web
from tests.service.in_process import Deployed, active, deployed_service

NODES = '<nodes><node hostalias="node1" distribution-key="0"/></nodes>'


def content(name: str, *types: str, mode: str = "index") -> str:
    documents = "".join(f'<document type="{each}" mode="{mode}"/>' for each in types)
    documents = f"<redundancy>1</redundancy><documents>{documents}</documents>"
    return f'<content id="{name}" version="1.0">{documents}{NODES}</content>'


def schema(name: str, fields: str = "", profile: str = "") -> str:
    return f"""schema {name} {{
  document {name} {{
    field topic type string {{ indexing: attribute | summary }}
    field pages type int {{ indexing: attribute }}
    {fields}
  }}
  document-summary topics {{ summary topic {{}} }}
  rank-profile pages {{
    first-phase {{ expression: attribute(pages) }}
    {profile}
  }}
}}
"""


FILES = {
    "services.xml": '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
    + content("print", "book", "paper")
    + content("screen", "film")
    + content("notes", "note", mode="streaming")
    + "</services>",
    "schemas/book.sd": schema("book", "field isbn type long { indexing: attribute }"),
    "schemas/paper.sd": schema("paper", "", "global-phase { expression: -attribute(pages) }"),
    "schemas/film.sd": schema("film"),
    "schemas/note.sd": schema("note"),
}
DOCUMENTS = {
    "book": [("art", 300), ("art", 100), ("law", 200)],
    "paper": [("art", 10), ("war", 20)],
    "film": [("law", 1), ("war", 2)],
    "note": [("art", 5), ("zoo", 6)],
}
BY_TOPIC = "all(group(topic) order(max(topic)) each(output(count(), sum(pages))))"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("clusters")) as service:
        active(service.deploy(FILES))
        for kind, documents in DOCUMENTS.items():
            place = "group/me" if kind == "note" else "docid"
            for number, (topic, pages) in enumerate(documents):
                path = f"{service.url}/document/v1/ns/{kind}/{place}/{number}"
                answer = web.post(path, json={"fields": {"topic": topic, "pages": pages}}, timeout=30)
                assert answer.status_code == 200, answer.text
        yield service


def ask(service: Deployed, sources: str, statement: str = BY_TOPIC, **more: object) -> dict[str, Any]:
    body = {"yql": f"select * from sources {sources} where true | {statement}", "hits": 0, "timeout": "20s", **more}
    root: dict[str, Any] = web.post(f"{service.url}/search/", json=body, timeout=30).json()["root"]
    return root


def topics(root: dict[str, Any]) -> list[tuple[str, dict[str, tuple[int, int]]]]:
    """Of each root group its id, and the groups below it with what they count and sum."""
    assert "errors" not in root, root
    return [
        (
            each["id"],
            {
                group["value"]: (group["fields"]["count()"], group["fields"]["sum(pages)"])
                for group in each["children"][0]["children"]
            },
        )
        for each in root["children"]
    ]


PRINT = {"art": (3, 410), "law": (1, 200), "war": (1, 20)}
SCREEN = {"law": (1, 1), "war": (1, 2)}


def test_the_types_of_a_cluster_are_grouped_together(service: Deployed) -> None:
    assert topics(ask(service, "book")) == [("group:root:0", {"art": (2, 400), "law": (1, 200)})]
    assert topics(ask(service, "print")) == [("group:root:0", PRINT)]
    assert topics(ask(service, "book, paper")) == [("group:root:0", PRINT)]


def test_types_that_are_asked_for_by_themselves_are_grouped_together(service: Deployed) -> None:
    """A global phase ranks the hits of papers, and those of books are ranked without one."""
    root = ask(service, "print", ranking="pages", hits=10)
    assert [child["relevance"] for child in root["children"] if "source" in child] == [300, 200, 100, -10, -20]
    root["children"] = [child for child in root["children"] if "source" not in child]
    assert topics(root) == [("group:root:0", PRINT)]
    best = "all(group(topic) max(2) each(max(1) output(count()) each(output(summary(topics)))))"
    (found,) = ask(service, "print", best, ranking="pages")["children"]
    (groups,) = found["children"]
    shown = [(group["value"], group["fields"]["count()"], group["children"][0]) for group in groups["children"]]
    assert [(value, count, hits["children"][0]["relevance"]) for value, count, hits in shown] == [
        ("art", 3, 300.0),
        ("law", 1, 200.0),
    ]
    assert [hits["children"][0]["fields"]["topic"] for _, _, hits in shown] == ["art", "law"]
    assert list(groups["continuation"]) == ["next"]


def test_each_cluster_has_its_own_groups(service: Deployed) -> None:
    assert topics(ask(service, "print, screen")) == [("group:root:0", PRINT), ("group:root:0", SCREEN)]
    both = topics(ask(service, "print, screen", f"{BY_TOPIC} | {BY_TOPIC}"))
    assert both == [(f"group:root:{number}", groups) for number in (0, 1) for groups in (PRINT, SCREEN)]


def test_streamed_documents_are_grouped_beside_indexed_ones(service: Deployed) -> None:
    mine = {"streaming.groupname": "me"}
    notes = {"art": (1, 5), "zoo": (1, 6)}
    assert topics(ask(service, "note", **mine)) == [("group:root:0", notes)]
    assert topics(ask(service, "film, note", **mine)) == [("group:root:0", SCREEN), ("group:root:0", notes)]


def test_every_cluster_must_have_the_attribute(service: Deployed) -> None:
    by_isbn = "all(group(isbn) each(output(count())))"
    (error,) = ask(service, "print, screen", by_isbn)["errors"]
    assert error["code"] == 4 and error["message"] == (
        "Grouping request references attribute 'isbn' which is not available in cluster 'screen'."
    )


def test_a_type_without_the_attribute_is_left_out(service: Deployed) -> None:
    """Papers have no isbn; that of books is not set, which is a value of its own."""
    (root,) = ask(service, "print", "all(output(count()) all(group(isbn) each(output(count()))))")["children"]
    assert root["fields"] == {"count()": 3}
    (group,) = root["children"][0]["children"]
    assert group["fields"] == {"count()": 3}
    counted = ask(service, "print", f"all(group(isbn) each(output(count()))) | {BY_TOPIC}", ranking="pages")
    assert [(each["id"], len(each["children"][0]["children"])) for each in counted["children"]] == [
        ("group:root:0", 1),
        ("group:root:1", 3),
    ]


def test_what_is_not_validated_is_left_out(service: Deployed) -> None:
    by_isbn = "all(group(isbn) each(output(count())))"
    (root,) = ask(service, "print, screen", by_isbn, validate_select=False)["children"]
    assert root["children"][0]["children"][0]["fields"] == {"count()": 3}
    nothing = ask(service, "print", "all(group(nosuch) each(output(count())))", validate_select=False)
    assert "errors" not in nothing and "children" not in nothing
    assert "errors" in ask(service, "print", "all(group(nosuch) each(output(count())))", validate_select=True)


def test_a_trace_and_headers_tell_of_groups(service: Deployed) -> None:
    body = {"yql": f"select * from book where true limit 1 | {BY_TOPIC}", "tracelevel": 3, "timeout": "20s"}
    answer = web.post(f"{service.url}/search/", json=body, headers={"X-Yahoo-Vespa-Benchmarkdata": "true"}, timeout=30)
    counts = [answer.headers[f"X-Yahoo-Vespa-{name}"] for name in ("NumHits", "NumFastHits", "TotalHitCount")]
    assert counts == ["2", "1", "3"]
    trace = answer.json()["trace"]
    assert {"message": "Grouping in 1 passes."} in trace["children"] and "'groups': [[1, 2]]" in str(trace)
