"""The Search API: requests and results, every parameter, the shapes of YQL, grouping and paging."""

from __future__ import annotations

import math
from typing import Any

import pytest
from cbor2 import loads

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.search.query import Query
from paperwasp.search.query_resources import QueryClock
from tests import web
from tests.conformance.conftest import Served
from tests.patience import default_timeout

ALL = "select * from music where true"
BLUE = "select * from music where userQuery()"
NUMBERED = "select * from note where userQuery()"
BM25 = math.log(1 + (5 - 2 + 0.5) / (2 + 0.5)) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2.4))
"""Of `blue` in `Blue Train`: 2 of 5 titles have it; this one has 2 words, all have 2.4 on average."""


def error_of(served: Served, yql: str = ALL, **parameters: Any) -> dict[str, Any]:
    """Return the only error of a query that must fail."""
    answer = served.search(yql, **parameters)
    assert answer.status_code >= 400, answer.text
    (error,) = answer.json()["root"]["errors"]
    found: dict[str, Any] = error
    return found


def hit(served: Served, yql: str = BLUE, **parameters: Any) -> dict[str, Any]:
    """Return the first hit."""
    found: dict[str, Any] = served.root(yql, **parameters)["children"][0]
    return found


def test_a_result(served: Served) -> None:
    answer = served.search(BLUE, query="blue").json()
    assert set(answer) == {"root"}
    root = answer["root"]
    assert set(root) == {"id", "relevance", "fields", "coverage", "children"}
    assert (root["id"], root["relevance"], root["fields"]) == ("toplevel", 1.0, {"totalCount": 2})
    assert root["coverage"] == {
        "coverage": 100,
        "documents": 5,
        "full": True,
        "nodes": 1,
        "results": 1,
        "resultsFull": 1,
    }
    first, second = root["children"]
    assert set(first) == {"id", "relevance", "source", "fields"}
    assert (first["id"], second["id"]) == ("id:albums:music::1", "id:albums:music::2")
    assert first["relevance"] == pytest.approx(BM25, abs=1e-6)
    assert first["relevance"] > second["relevance"]
    assert first["source"] == "records"
    assert (first["fields"]["year"], first["fields"]["artist"]) == (1957, "Coltrane")


def test_nothing_found_is_no_error(served: Served) -> None:
    root = served.root(BLUE, query="yellow")
    assert root["fields"] == {"totalCount": 0}
    assert "children" not in root


def test_coverage_of_what_was_not_searched_to_the_end(served: Served) -> None:
    """A query that may search for no share of its time at all has searched nothing when it ends, and says so."""
    root = served.root(ALL, **{"ranking.softtimeout.factor": "0.0"})
    assert root["fields"] == {"totalCount": 0}
    coverage = root["coverage"]
    assert coverage.pop("degraded")["timeout"] is True
    assert coverage == {
        "coverage": 0,
        "documents": 0,
        "full": False,
        "nodes": 1,
        "results": 1,
        "resultsFull": 0,
    }


def test_an_error(served: Served) -> None:
    answer = served.search("select * from music where")
    assert answer.status_code == 400
    root = answer.json()["root"]
    assert (root["id"], root["relevance"], root["fields"]) == ("toplevel", 1.0, {"totalCount": 0})
    (error,) = root["errors"]
    assert (error["code"], error["summary"]) == (4, "Invalid query parameter")
    assert error["message"].startswith("Could not create query from YQL")


def test_an_internal_id(served: Served) -> None:
    """A hit whose document id is not shown has an id of its cluster, node and global id."""
    found = hit(served, "select title from music where userQuery()", query="train")
    assert found["id"].startswith("index:records/0/c4ca4238")  # the first bytes of md5("1")
    assert found["fields"] == {"title": "<hi>Blue</hi> Train".replace("<hi>Blue</hi> Train", "Blue <hi>Train</hi>")}


def test_get_and_post_are_alike(served: Served) -> None:
    parameters = {"yql": BLUE, "query": "blue", "ranking.profile": "added", "hits": "1", "timeout": "20s"}
    url = f"{served.url}/search/"
    expected = web.get(url, params=parameters).json()
    assert expected["root"]["children"][0]["id"] == "id:albums:music::2"
    assert web.post(url, json=parameters).json() == expected
    nested = {**parameters, "ranking": {"profile": "added"}}
    del nested["ranking.profile"]
    assert web.post(url, json=nested).json() == expected
    assert web.post(url, data=parameters).json() == expected
    untyped = web.post(url, content=web.CLIENT.build_request("POST", url, json=parameters).content)
    assert untyped.json() == expected
    assert web.post(url, params=parameters).json() == expected


def test_a_query_is_required(served: Served) -> None:
    answer = web.get(f"{served.url}/search/")
    assert answer.status_code == 400
    assert answer.json()["root"]["errors"][0]["code"] == 3
    assert served.ids(ALL) == ["1", "2", "3", "4", "5"]


def test_simple_text(served: Served) -> None:
    assert served.ids(BLUE, query="giant steps") == ["3"]
    assert served.ids(BLUE, query="supreme coltrane")[0] == "4"
    assert served.ids(BLUE, query="artist:davis") == ["2"]


def test_search_chains(served: Served) -> None:
    expected = served.ids(BLUE, query="blue")
    for chain in ("default", "service"):
        assert served.ids(BLUE, query="blue", searchChain=chain) == expected
    error = error_of(served, BLUE, query="blue", searchChain="none")
    assert (error["code"], "'none'" in error["message"]) == (4, True)


def test_hits_and_offset(served: Served) -> None:
    for number in range(12):
        body = {"fields": {"text": "paged words", "stars": number}}
        assert served.document("POST", f"paging/note/docid/{number:02}", body).status_code == 200
    yql = "select * from note where text contains 'paged' order by stars"
    everything = [f"{number:02}" for number in range(12)]
    assert served.ids(yql) == everything[:10]
    assert served.ids(yql, hits=3) == everything[:3]
    assert served.ids(yql, hits=3, offset=4) == everything[4:7]
    assert served.ids(yql, offset=11) == everything[11:]
    assert served.ids(yql, hits=0) == []
    assert served.root(yql, hits=0)["fields"] == {"totalCount": 12}
    assert len(served.ids(yql, hits=400)) == 12
    for wrong in ({"hits": 401}, {"offset": 1001}, {"hits": -1}, {"offset": -1}, {"hits": "x"}):
        assert error_of(served, yql, **wrong)["code"] == 3


def test_the_deployment_says_how_many_hits_there_may_be(served: Served) -> None:
    beyond: tuple[dict[str, Any], ...] = ({"hits": 401}, {"offset": 1001})
    for parameters in beyond:
        assert error_of(served, **parameters)["code"] == 3
        assert served.search(ALL, queryProfile="many", **parameters).status_code == 200
    assert "configured limit: 500" in error_of(served, queryProfile="many", hits=501)["message"]
    assert "configured limit: 2000" in error_of(served, queryProfile="many", offset=2001)["message"]


def test_a_deep_page_goes_on_behind_a_hit(served: Served) -> None:
    for number in range(7):
        body = {"fields": {"text": "deep words", "stars": number}}
        served.document("POST", f"deep/note/docid/{number}", body)
    yql = "select * from note where text contains 'deep' order by stars desc"
    seen: list[str] = []
    after = ""
    for _ in range(4):
        answer = served.search(yql, hits=3, searchAfter=after).json()
        seen += [each["id"].rpartition(":")[2] for each in answer["root"].get("children", ())]
        if "continuation" not in answer["root"]:
            break
        after = answer["root"]["continuation"]["next"]
    assert seen == list("6543210")


@pytest.mark.parametrize("timeout", ["5s", "5000ms", "5", "5.0 s"])
def test_timeouts(served: Served, timeout: str) -> None:
    traced = web.get(f"{served.url}/search/", params={"yql": ALL, "timeout": timeout, "tracelevel": 1}).text
    assert "timeout=5000ms" in traced
    assert served.search(timeout="0ms").status_code == 504
    error = error_of(served, timeout="0ms")
    assert (error["code"], error["summary"]) == (12, "Timed out")
    assert error_of(served, timeout="soon")["code"] == 3


def test_the_default_timeout(served: Served) -> None:
    assert limits.QUERY_TIMEOUT_MS == 500
    with default_timeout():
        traced = web.post(f"{served.url}/search/", json={"yql": ALL, "tracelevel": 1}).text
    assert "timeout=500ms" in traced


@pytest.mark.parametrize("name", ["format", "presentation.format"])
def test_formats(served: Served, name: str) -> None:
    expected = served.search(BLUE, query="blue")
    assert expected.headers["content-type"].startswith("application/json")
    as_json = served.search(BLUE, query="blue", **{name: "json"})
    assert (as_json.headers["content-type"], as_json.json()) == (expected.headers["content-type"], expected.json())
    as_cbor = served.search(BLUE, query="blue", **{name: "cbor"})
    assert (as_cbor.headers["content-type"], loads(as_cbor.content)) == ("application/cbor", expected.json())
    assert error_of(served, **{name: "other"})["code"] in (3, 4)


def test_the_header_accept(served: Served) -> None:
    yql = "select title, year from music where true"
    parameters = {"yql": yql, "timeout": "20s"}
    answer = web.get(f"{served.url}/search/", params=parameters, headers={"Accept": "application/cbor"})
    assert (answer.headers["content-type"], loads(answer.content)) == ("application/cbor", served.search(yql).json())


@pytest.mark.parametrize("name", ["ranking.profile", "ranking"])
def test_rank_profiles(served: Served, name: str) -> None:
    assert hit(served, query="blue")["relevance"] == pytest.approx(BM25, abs=1e-6)
    assert hit(served, query="blue", **{name: "default"})["relevance"] == pytest.approx(BM25, abs=1e-6)
    found = hit(served, query="blue", **{name: "added"})
    assert (found["id"], found["relevance"]) == ("id:albums:music::2", 25.0)
    error = error_of(served, BLUE, query="blue", **{name: "none"})
    assert (error["code"], "'none'" in error["message"]) == (4, True)


@pytest.mark.parametrize("name", ["ranking.features.query(bonus)", "input.query(bonus)"])
def test_inputs_that_are_numbers(served: Served, name: str) -> None:
    assert hit(served, query="blue", ranking="added", **{name: "5"})["relevance"] == 29.0


@pytest.mark.parametrize("name", ["ranking.features.query(q)", "input.query(q)"])
def test_inputs_that_are_tensors(served: Served, name: str) -> None:
    """closeness is 1 / (1 + angle): of (1,0) and (0.8,0.6), the angle whose cosine is 0.8."""
    yql = "select * from music where {targetHits:3}nearestNeighbor(vector, q)"
    for text in ("[1,0,0,0]", "tensor<float>(d0[4]):[1,0,0,0]", "{{d0:0}:1}"):
        root = served.root(yql, ranking="near", **{name: text})
        assert [each["id"][-1] for each in root["children"]] == ["1", "4", "3"]
        relevance = [each["relevance"] for each in root["children"]]
        assert relevance == pytest.approx([1 / (1 + math.acos(x)) for x in (1.0, 0.8, 0.6)], abs=1e-5)
    assert error_of(served, yql, ranking="near", **{name: "[1,0]"})["code"] in (3, 4)


def test_the_share_of_a_soft_timeout(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content nodes get the share; tests/search/phases/test_degrading.py shows on a clock of its own what it does."""
    shares: list[float] = []
    begin = QueryClock.__init__

    def record(clock: QueryClock, query: Query, env: Environment) -> None:
        shares.append(query.deadline.soft_share)
        begin(clock, query, env)

    monkeypatch.setattr(QueryClock, "__init__", record)
    for parameters in ({}, {"ranking.softtimeout.factor": "0.3"}):
        assert len(served.ids(ALL, nocache="true", **parameters)) == 5
    assert shares == [0.5, 0.3]


def test_soft_timeouts(served: Served) -> None:
    for value in ("true", "false"):
        assert len(served.ids(ALL, **{"ranking.softtimeout.enable": value})) == 5
    for factor in ("0.5", "1.0"):
        assert len(served.ids(ALL, **{"ranking.softtimeout.factor": factor})) == 5
    for factor in ("-0.1", "1.1", "x"):
        assert error_of(served, **{"ranking.softtimeout.factor": factor})["code"] in (3, 4)


@pytest.mark.parametrize("name", ["presentation.summary", "summary"])
def test_summary_classes(served: Served, name: str) -> None:
    everything = hit(served, query="train")["fields"]
    assert {"sddocname", "documentid", "title", "artist", "year"} <= set(everything)
    assert hit(served, query="train", **{name: "default"})["fields"] == everything
    assert hit(served, query="train", **{name: "short"})["fields"] == {
        "sddocname": "music",
        "title": "Blue <hi>Train</hi>",
    }
    assert error_of(served, **{name: "none"})["code"] == 4


def messages(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all entries of a trace that have a message."""
    found = [each for each in children if "message" in each]
    for each in children:
        found += messages(each.get("children", []))
    return found


def test_the_trace_level(served: Served) -> None:
    for parameters in ({}, {"tracelevel": 0}):
        assert "trace" not in served.search(ALL, **parameters).json()
    for level in (1, 5, 9, 10):
        trace = served.search(ALL, tracelevel=level).json()["trace"]
        assert messages(trace["children"])[0]["message"] == "No query profile is used"
    assert error_of(served, tracelevel="x")["code"] == 3


def test_times_in_traces(served: Served) -> None:
    for value in ("false", "true"):
        trace = served.search(ALL, tracelevel=1, **{"trace.timestamps": value}).json()["trace"]
        assert all(("timestamp" in each) is (value == "true") for each in messages(trace["children"]))
    for value in ("false", "true"):
        trace = served.search(ALL, tracelevel=1, **{"trace.timingDetails": value}).json()["trace"]
        (of_node,) = next(each["message"] for each in messages(trace["children"]) if isinstance(each["message"], list))
        assert of_node["duration_ms"] > 0
        assert all("timestamp_ms" in each for each in of_node["traces"])


def test_the_explain_level(served: Served) -> None:
    def tags(**parameters: Any) -> set[str]:
        trace = served.search(BLUE, query="blue", tracelevel=1, **parameters).json()["trace"]
        (of_node,) = next(each["message"] for each in messages(trace["children"]) if isinstance(each["message"], list))
        return {each["tag"] for each in of_node["traces"] if "tag" in each}

    assert "query_execution_plan" not in tags()
    assert tags(explainlevel=0) == tags()
    for level in (1, 2, 3, 4):
        assert "query_execution_plan" in tags(explainlevel=level)
    assert "trace" not in served.search(ALL, explainlevel=3).json()


def test_bolding(served: Served) -> None:
    for parameters in ({}, {"bolding": "true"}):
        assert hit(served, query="train", **parameters)["fields"]["title"] == "Blue <hi>Train</hi>"
    assert hit(served, query="train", bolding="false")["fields"]["title"] == "Blue Train"
    assert hit(served, query="coltrane train")["fields"]["artist"] == "Coltrane"  # a field without bolding


def test_dynamic_teasers(served: Served) -> None:
    yql = "select * from music where story contains 'quintet'"
    for value in ("true", "false"):
        assert "<hi>quintet</hi>" in hit(served, yql, dynteaser=value)["fields"]["story"]


def test_query_profiles(served: Served) -> None:
    root = served.root(ALL, queryProfile="few")
    assert [(each["id"][-1], each["relevance"]) for each in root["children"]] == [("4", 1965.0), ("2", 1959.0)]
    assert len(served.ids(ALL, queryProfile="few", hits=3)) == 3
    assert error_of(served, queryProfile="none")["code"] == 3


@pytest.mark.parametrize(("field", "size"), [("collapse.field", "collapse.size"), ("collapsefield", "collapsesize")])
def test_collapsing(served: Served, field: str, size: str) -> None:
    yql = "select * from music where true order by year"
    assert served.ids(yql, **{field: "artist"}) == ["1", "2", "5"]
    assert served.ids(yql, **{field: "artist", size: "1"}) == ["1", "2", "5"]
    assert sorted(served.ids(yql, **{field: "artist", size: "2"})) == ["1", "2", "3", "5"]


def test_streaming_selections(served: Served) -> None:
    for number in range(4):
        body = {"fields": {"subject": "weekly letter", "size": number}}
        served.document("POST", f"mails/mail/group/ann/{number}", body)
    served.document("POST", "mails/mail/group/bob/9", {"fields": {"subject": "weekly letter", "size": 9}})
    yql = "select * from mail where subject contains 'weekly' order by size"
    assert served.ids(yql, **{"streaming.selection": "id.group == 'ann' and mail.size > 1"}) == ["2", "3"]
    assert served.ids(yql, **{"streaming.selection": "true"}) == ["0", "1", "2", "3", "9"]
    assert served.search(yql).status_code == 400
    assert served.search(yql, **{"streaming.selection": "mail.size >"}).status_code == 400


@pytest.mark.parametrize("name", ["nocache", "nocachewrite"])
def test_answers_without_the_cache(served: Served, name: str) -> None:
    yql = f"select * from music where year = 1959 and price < {99 if name == 'nocache' else 98}"
    expected = served.search(yql).json()
    for value in ("true", "false"):
        assert served.search(yql, **{name: value}).json() == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("true", "12345"),
        ("title contains 'blue'", "12"),
        ("year > 1959", "34"),
        ("year < 1959", "1"),
        ("year > 1957 and price < 11", "35"),
        ("userQuery()", "1"),
        ("geoLocation(place, 40.72, -74.0, '20 km')", "12"),
        ("geoLocation(place, 59.9, 10.8, '10 km')", "5"),
    ],
)
def test_conditions_of_yql(served: Served, condition: str, expected: str) -> None:
    assert "".join(sorted(served.ids(f"select * from music where {condition}", query="train"))) == expected


def test_a_statement_of_yql(served: Served) -> None:
    root = served.root("select title, year from music where price > 8.5 order by year desc limit 2")
    assert [each["fields"] for each in root["children"]] == [
        {"title": "A Love Supreme", "year": 1965},
        {"title": "Kind of Blue", "year": 1959},
    ]
    assert root["fields"] == {"totalCount": 4}
    assert served.ids("select * from music where price > 8.5 order by year, price") == ["1", "5", "2", "4"]
    assert served.ids("select * from sources * where title contains 'giant'", restrict="music") == ["3"]
    assert error_of(served, "select * from nowhere where true")["code"] == 4


def test_grouping(served: Served) -> None:
    statement = "all(group(artist) max(2) each(output(count(), sum(price), avg(price), max(year), min(year))))"
    root = served.root(f"{ALL} limit 0 | {statement}")
    assert root["fields"] == {"totalCount": 5}
    (group_root,) = root["children"]
    (groups,) = group_root["children"]
    assert (group_root["id"], groups["label"]) == ("group:root:0", "artist")
    brubeck, coltrane = groups["children"]
    assert (brubeck["value"], coltrane["value"]) == ("Brubeck", "Coltrane")
    assert coltrane["fields"] == {
        "count()": 3,
        "sum(price)": 28.5,
        "avg(price)": 9.5,
        "max(year)": 1965,
        "min(year)": 1957,
    }
    (counts,) = served.root(f"{ALL} limit 0 | all(group(artist) max(9) each(output(count())))")["children"]
    found = {each["value"]: each["fields"]["count()"] for each in counts["children"][0]["children"]}
    assert found == {"Brubeck": 1, "Coltrane": 3, "Davis": 1}


def test_cbor_of_a_query(served: Served) -> None:
    """A body of CBOR says the same as one of JSON: {"yql": …, "hits": 1}."""
    yql = ALL.encode()
    body = b"\xa3cyqlx" + bytes([len(yql)]) + yql + b"dhits\x01gtimeoutc20s"
    answer = web.post(f"{served.url}/search/", content=body, headers={"Content-Type": "application/cbor"})
    assert (answer.status_code, answer.json()["root"]["children"][0]["id"]) == (200, "id:albums:music::1")
