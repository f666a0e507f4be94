"""The real pyvespa groups: each method of its builder, its pages of groups, and its evaluator of what is matched.

Values are worked by hand, or by Python's own functions, from one document.
"""

from __future__ import annotations

import hashlib
import io
import math
import time
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
import vespa.querybuilder as qb
from vespa.application import Vespa
from vespa.evaluation import VespaMatchEvaluator
from vespa.io import VespaQueryResponse
from vespa.package import ApplicationPackage, Document, Field, RankProfile, Schema, Summary
from vespa.package import DocumentSummary as SummaryClass
from vespa.querybuilder import Grouping

from tests import web
from tests.service.in_process import ZIP, Deployed, active, deployed_service

pytestmark = pytest.mark.clients
G = Grouping
SAME = {name.removeprefix("math_") for name in dir(G) if name.startswith("math_")} - {"acosh", "hypot", "pow"}
"""Functions of one number that Python has, too, and that 0.5 has."""
DATE = 1_157_526_000  # 2006-09-06T07:00:00Z, a Wednesday
UTC = time.gmtime(DATE)
ONE: dict[str, Any] = {
    "key": "one",
    "name": "Ann b",
    "n": 7,
    "m": 3,
    "x": 0.5,
    "ids": [3, 1, 2],
    "steps": [1.0, 2.0, 4.0],
    "date": DATE,
    "flag": True,
    "place": {"lat": 63.5, "lng": 10.25},
}


def shown(data: bytes) -> str:
    """Raw values are shown in base64: RawBase64.java."""
    return b64encode(data).decode()


GROUPED: dict[str, tuple[str, list[Any]]] = {
    "add": (G.add("n", "m", "1"), [11]),
    "sub": (G.sub("n", "m"), [4]),
    "mul": (G.mul("n", "m", "2"), [42]),
    "div": (G.div("n", "m"), [2]),
    "mod": (G.mod("n", "m"), [1]),
    "and_": (G.and_("n", "m"), [7 & 3]),
    "or_": (G.or_("n", "8"), [7 | 8]),
    "xor_expr": (G.xor_expr("n", "m"), [7 ^ 3]),
    "strlen": (G.strlen("name"), [5]),
    "strcat": (G.strcat("name", '"_"', "key"), ["Ann b_one"]),
    "todouble": (G.todouble("n"), [7.0]),
    "tolong": (G.tolong("x"), [1]),
    "tostring": (G.tostring("n"), ["7"]),
    "toraw": (G.toraw("name"), [shown(b"Ann b")]),
    "cat": (G.cat("name", "name"), [shown(b"Ann bAnn b")]),
    "md5": (G.md5("name", 16), [shown(hashlib.md5(b"Ann b").digest()[:2])]),
    "xorbit": (G.xorbit("n", 8), [shown(b"\7")]),
    "array_at": (G.array_at("ids", "1"), [1]),
    "zcurve_x": (G.zcurve_x("place_zcurve"), [10_250_000]),
    "zcurve_y": (G.zcurve_y("place_zcurve"), [63_500_000]),
    "time_year": (G.time_year("date"), [UTC.tm_year]),
    "time_monthofyear": (G.time_monthofyear("date"), [UTC.tm_mon]),
    "time_dayofmonth": (G.time_dayofmonth("date"), [UTC.tm_mday]),
    "time_dayofyear": (G.time_dayofyear("date"), [UTC.tm_yday - 1]),
    "time_dayofweek": (G.time_dayofweek("date"), [(UTC.tm_wday + 1) % 7]),  # Sunday is 0
    "time_hourofday": (G.time_hourofday("date"), [UTC.tm_hour]),
    "time_minuteofhour": (G.time_minuteofhour("date"), [UTC.tm_min]),
    "time_secondofminute": (G.time_secondofminute("date"), [UTC.tm_sec]),
    "time_date": (G.time_date("date"), ["2006-9-6"]),
    "math_pow": (G.math_pow("n", "2"), [49.0]),
    "math_hypot": (G.math_hypot("m", "4"), [5.0]),
    "math_acosh": (G.math_acosh("n"), [math.acosh(7)]),
    "size": (G.size("ids"), [3]),
    "sort": (G.sort("ids"), [1, 2, 3]),
    "reverse": (G.reverse("ids"), [1, 2, 3]),
    "fixedwidth": (G.fixedwidth("n", 5), [("5", "10")]),
    "predefined": (G.predefined("n", ["bucket(-inf,0)", "bucket[0,10)", "bucket[10,inf)"]), [("0", "10")]),
    "interpolatedlookup": (G.interpolatedlookup("steps", "3.0"), [1.5]),
    "relevance": (G.add(G.relevance(), "1"), [8.0]),
    **{
        f"math_{name}": (getattr(G, f"math_{name}")("x"), [function(0.5)])
        for name in sorted(SAME)
        for function in [getattr(math, name)]
    },
}
"""Method → what is grouped by, and the values of the groups, or their limits."""
AGGREGATED: dict[str, tuple[str, Any]] = {
    "count": (G.count(), 2),
    "sum": (G.sum("n"), 12),
    "avg": (G.avg("n"), 6.0),
    "min": (G.min("n"), 5),
    "max": (G.max("n"), 7),
    "stddev": (G.stddev("n"), 1.0),
    "xor": (G.xor("n"), 7 ^ 5),
}
"""Method → an output of all documents, and its value."""
ELSEWHERE = {"all", "each", "group", "output", "order", "precision", "summary", "as_", "alias"}
FILTERS = {"filter_", "regex", "range_", "istrue"}


def package() -> ApplicationPackage:
    kinds = {"key": "string", "name": "string", "n": "int", "m": "int", "x": "double", "date": "long", "flag": "bool"}
    kinds |= {"ids": "array<int>", "steps": "array<double>", "place": "position"}
    schema = Schema(
        "thing",
        Document([Field(name, kind, ["attribute", "summary"]) for name, kind in kinds.items()]),
        rank_profiles=[RankProfile("default", first_phase="attribute(n)")],
        document_summaries=[SummaryClass("keys", summary_fields=[Summary("key")])],
    )
    return ApplicationPackage("things", schema=[schema])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("grouping")) as service:
        zip_bytes: io.BytesIO = package().to_zip()
        address = f"{service.config_url}/application/v2/tenant/default/prepareandactivate"
        active(web.post(address, content=zip_bytes.getvalue(), headers=ZIP, timeout=60))
        yield service


@pytest.fixture(scope="module")
def vespa(service: Deployed) -> Vespa:
    host, _, port = service.url.rpartition(":")
    app = Vespa(url=host, port=int(port))
    app.feed_data_point("thing", "one", ONE)
    app.feed_data_point("thing", "two", {"key": "two", "name": "Bob", "n": 5, "flag": False, "ids": [9]})
    return app


def asked(vespa: Vespa, grouping: str, *continuations: str, query: str = "") -> dict[str, Any]:
    """The root group."""
    built = qb.select("*").from_("thing").where(True).set_limit(0)  # type: ignore[attr-defined]
    answer = vespa.query(yql=query or str(built.groupby(grouping, continuations=list(continuations))))
    assert isinstance(answer, VespaQueryResponse) and answer.is_successful()
    (root,) = answer.json["root"]["children"]
    return dict(root)


def listed(node: dict[str, Any]) -> list[dict[str, Any]]:
    (only,) = node.get("children") or [{}]
    return list(only.get("children", []))


def test_all_methods_are_tested() -> None:
    methods = {name for name in dir(G) if not name.startswith("_")}
    assert methods == set(GROUPED) | set(AGGREGATED) | ELSEWHERE | FILTERS


@pytest.mark.parametrize("method", GROUPED)
def test_expressions(vespa: Vespa, method: str) -> None:
    expression, expected = GROUPED[method]
    grouping = G.all(G.group(expression), G.order(G.min(expression)), G.each(G.output(G.count())))
    if method in ("fixedwidth", "predefined", "sort", "reverse"):  # of what is grouped, orders see one element
        grouping = G.all(G.group(expression), G.each(G.output(G.count())))
    query = f'select * from thing where key contains "one" limit 0 | {grouping}'
    groups = listed(asked(vespa, "", query=query))
    assert [group["fields"] for group in groups] == [{"count()": 1}] * len(expected)
    if isinstance(expected[0], tuple):
        assert [(group["limits"]["from"], group["limits"]["to"]) for group in groups] == expected
    elif isinstance(expected[0], float):
        assert [float(group["value"]) for group in groups] == pytest.approx(expected, rel=1e-15)
    else:
        assert [group["value"] for group in groups] == [str(value) for value in expected]


@pytest.mark.parametrize("method", AGGREGATED)
def test_aggregators(vespa: Vespa, method: str) -> None:
    aggregator, expected = AGGREGATED[method]
    assert list(asked(vespa, G.all(G.output(aggregator)))["fields"].values()) == [expected]


def test_filters(vespa: Vespa) -> None:
    def keys(predicate: Any) -> list[str]:
        grouping = G.all(G.group("key"), G.filter_(predicate), G.order(G.max("key")), G.each(G.output(G.count())))
        return [group["value"] for group in listed(asked(vespa, grouping))]

    assert keys(G.regex("A.*", "name")) == ["one"]
    assert keys(G.range_(5, 7, "n")) == ["two"]
    assert keys(G.range_(5, 7, "n", False, True)) == ["one"]
    assert keys(G.istrue("flag")) == ["one"]
    assert keys(~G.istrue("flag") | G.regex("Ann b", "name")) == ["one", "two"]
    assert keys(~G.istrue("flag") & G.range_(0, 5, "n")) == []


def test_lists_labels_orders_and_hits(vespa: Vespa) -> None:
    grouping = G.all(
        G.group("key"),
        G.precision(10),
        "max(10)",
        G.order(-G.sum("n")),
        G.as_(G.each(G.output(G.count().as_("times")), "max(1)", G.each(G.output(G.summary("keys")))), "keys"),
    )
    root = asked(vespa, grouping)
    assert root["children"][0]["label"] == "keys"
    for group, key in zip(listed(root), ["one", "two"], strict=True):
        assert (group["value"], group["fields"]) == (key, {"times": 1})
        assert [hit["fields"]["key"] for hit in listed(group)] == [key]


def test_aliases(vespa: Vespa) -> None:
    grouping = f"all(group(key) {G.alias('both', G.add('n', '1'))} order(-max($both)) each(output(max($both) as(b))))"
    assert [group["fields"] for group in listed(asked(vespa, grouping))] == [{"b": 8}, {"b": 6}]


def test_pages(vespa: Vespa) -> None:
    grouping = G.all(G.group("key"), "max(1)", G.order(-G.max("n")), G.each(G.output(G.count())))
    first = asked(vespa, grouping)
    assert [group["value"] for group in listed(first)] == ["one"]
    turn = first["children"][0]["continuation"]["next"]
    second = asked(vespa, grouping, first["continuation"]["this"], turn)
    assert [group["value"] for group in listed(second)] == ["two"]


def test_the_evaluator_of_matches(vespa: Vespa) -> None:
    """The first matches one of its two documents, the second both."""
    relevant: dict[str, set[str] | dict[str, float]] = {"q1": {"one", "two"}, "q2": {"one", "two"}}

    queries = {"q1": 'name contains "Ann b"', "q2": "n > 4"}
    body: Any = lambda text, hits: {"yql": f"select * from thing where {text}"}  # noqa: E731 its names are looked at
    found = VespaMatchEvaluator(queries, relevant, body, vespa, write_csv=False, id_field="key").run()
    assert found["match_recall"] == 0.75
    assert (found["total_relevant_docs"], found["total_matched_relevant"]) == (4, 3)
