"""Grouping statements are found in YQL and parameters, checked against the schemas, and made requests of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paperwasp.container.search.config import ClusterConfig, Target
from paperwasp.container.search.grouping import PreparedGrouping, prepare_grouping, time_zone_offset_seconds
from paperwasp.container.search.parameters import read_parameters
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.yql import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.grouping.continuation import PagePosition, encode
from paperwasp.search.grouping.request import Expression

SCHEMA = """
schema doc {
  document doc {
    field a type string { indexing: attribute | summary }
    field n type int { indexing: attribute }
    field ns type array<int> { indexing: attribute }
    field text type string { indexing: index | summary }
    field t type tensor(x[2]) { indexing: attribute }
    field place type position { indexing: attribute }
    field scores type map<string, int> {
      indexing: summary
      struct-field key { indexing: attribute }
      struct-field value { indexing: attribute }
    }
  }
}
"""
TARGET = Target(ClusterConfig("c", {}), tuple(parse_schemas({"schemas/doc.sd": SCHEMA}).schemas.values()))
JANUARY = 1_577_836_800  # 2020-01-01T00:00:00Z
JULY = 1_593_561_600  # 2020-07-01T00:00:00Z


def prepared(pipe: str = "", parameters: Mapping[str, str] = {}) -> PreparedGrouping | None:
    statement = parse_yql(f"select * from doc where true{pipe and f' | {pipe}'}")
    return prepare_grouping(read_parameters(parameters.items()), statement, (TARGET,))


def found(pipe: str = "", parameters: Mapping[str, str] = {}) -> PreparedGrouping:
    made = prepared(pipe, parameters)
    assert made is not None
    return made


def refused(pipe: str = "", parameters: Mapping[str, str] = {}) -> str:
    with pytest.raises(InvalidQuery) as caught:
        prepared(pipe, parameters)
    return caught.value.message


BY_A = "all(group(a) each(output(count())))"
BY_N = "all(group(n) each(output(count())))"


def test_no_statement_no_grouping() -> None:
    assert prepared() is None
    assert prepared("", {"select.grouping": "[]"}) is None
    assert prepared("all(group(a))") is None  # it asks for no output


def test_statements_of_yql_and_parameters_follow_each_other() -> None:
    json = '[{"all": {"group": "ns", "each": {"output": "count()"}}}]'
    made = found(
        f'{BY_A} | all(group("x|y") each(output(count())))', {"select": f"{BY_N}; {BY_A}", "select.grouping": json}
    )
    first, second, third, fourth, fifth = made.layouts
    assert [layout.number for layout in made.layouts] == [0, 1, 2, 3, 4]
    assert [layout.requests[0].number for layout in made.layouts] == [0, 1, 2, 3, 4]
    assert [first.labels[2], second.labels[2], third.labels[2]] == ["a", '"x|y"', "ns"]
    assert [fourth.labels[2], fifth.labels[2]] == ["n", "a"]


@pytest.mark.parametrize("piece", ["/*", "'", '"', '\\\\"', "{", "[{", "|", "//", "'\\\\"])
def test_many_beginnings_without_an_end_are_refused(piece: str) -> None:
    assert refused(piece * 20_000)


def test_bars_in_strings_and_comments_separate_nothing() -> None:
    texts = ["all(group('|') each(output(count())))", "all(/* | */ group(a) each(output(count())))", BY_A]
    assert [layout.labels[2] for layout in found("|".join(texts)).layouts] == ['"|"', "a", "a"]


def test_limits_of_a_request() -> None:
    limits = {"grouping.defaultMaxGroups": "3", "grouping.defaultPrecisionFactor": "4", "grouping.defaultMaxHits": "2"}
    (layout,) = found("all(group(a) each(each(output(summary()))))", limits).layouts
    (level,) = layout.requests[0].levels
    assert (level.max_groups, level.precision, level.aggregations[0].max_hits) == (4, 12, 3)
    assert "grouping.globalMaxGroups" in refused("all(group(a) max(10001) each(output(count())))")


def test_continuations_are_annotations() -> None:
    second = encode([PagePosition((0, 0), 2, 10)])
    for annotation in (
        f"{{continuations: ['{second}']}}",
        f'[{{ "continuations": ["{second}"] }}]',
        "{continuations:[@c]}",
    ):
        (layout,) = found(f"{annotation}{BY_A}", {"c": second}).layouts
        assert layout.requests[0].levels[0].max_groups == 21
        assert layout.pages.by_path == {(0, 0): 10}
    (layout,) = found("", {"select": BY_A, "continue": second}).layouts
    assert layout.pages.by_path == {(0, 0): 10}
    many = ",".join([f"'{second}'"] * 20_000)
    assert len(found(f"{{continuations: [{many}]}}{BY_A}").layouts) == 1
    assert "is not a continuation" in refused(f"{{continuations: ['!']}}{BY_A}")
    assert refused(f"{{continuations: 1}}{BY_A}") == (
        "Could not create query from YQL: Expected a list as the value of 'continuations'"
    )


def test_parameters_are_read_for_each_request() -> None:
    made = found("all(group(a) max(@n) each(output(count())))", {"n": "5"})
    assert made.layouts[0].requests[0].levels[0].max_groups == 6
    assert made.bind({"n": "8"}, 0)[0].requests[0].levels[0].max_groups == 9
    with pytest.raises(InvalidQuery, match="Input 'n' must be a number, but was 'x'"):
        made.bind({"n": "x"}, 0)


def test_time_zones() -> None:
    made = found(BY_A, {"timezone": "GMT-1"})
    assert made.bind({}, JANUARY)[0].requests[0].time_offset_seconds == -3600
    assert found(BY_A).bind({}, JANUARY)[0].requests[0].time_offset_seconds == 0
    assert time_zone_offset_seconds("Europe/Oslo", JANUARY) == 3600
    assert time_zone_offset_seconds("Europe/Oslo", JULY) == 7200
    assert time_zone_offset_seconds("GMT+05:30", JULY) == 19800
    assert time_zone_offset_seconds("America/New_York", JANUARY) == -18000
    assert time_zone_offset_seconds("PST", JANUARY) == -28800
    assert time_zone_offset_seconds("PST", JULY) == -25200
    assert time_zone_offset_seconds("EST", JULY) == -18000
    assert time_zone_offset_seconds("IST", JULY) == 19800
    for unknown in ("utc", "nosuch", "../etc/passwd", "GMT+24", ""):
        assert time_zone_offset_seconds(unknown, JULY) == 0


@pytest.mark.parametrize(
    "expression",
    ["a", "n", "ns", "attribute(a)", "scores.key", 'scores{"k"}', "scores{attribute(a)}", "array.at(ns, 0)",
     "zcurve.x(place_zcurve)", "geo_distance(attribute(place), 1, 2).km"],
)  # fmt: skip
def test_attributes(expression: str) -> None:
    assert found(f"all(group({expression}) each(output(count())))")


@pytest.mark.parametrize(
    ("expression", "name", "near"),
    [("absent", "absent", ""), ("text", "text", ""), ("t", "t", ""), ("scores.absent", "scores.absent", ""),
     ("n_zcurve", "n_zcurve", "place_zcurve"), ('a{"k"}', "a.key", ""), ("strcat(a, attribute(no))", "no", "n"),
     ("array.at(no, 0)", "no", "n")],
)  # fmt: skip
def test_what_is_no_attribute(expression: str, name: str, near: str) -> None:
    hint = f" Did you mean '{near}'?" if near else ""
    expected = f"Grouping request references attribute '{name}' which is not available in cluster 'c'.{hint}"
    assert refused(f"all(group({expression}) each(output(count())))") == expected
    assert refused(f"all(group(a) filter(regex('x', {expression})) each(output(count())))") == expected


def test_key_sources() -> None:
    assert refused("all(group(scores{attribute(n)}) each(output(count())))") == (
        "Grouping request references key source attribute 'n' with data type 'int' that is different than data type "
        "'string' of key attribute 'scores.key'"
    )


def test_errors_say_where_the_statement_is_from() -> None:
    assert refused("all(group(a?))").startswith("Could not create query from YQL: Lexical error at line 1, column 12.")
    assert refused("all(group(a)); all(group(n))") == "Could not create query from YQL: Expected 1 operation, got 2."
    assert refused("", {"select": "all("}).startswith('Encountered "<EOF>" at line 1, column 5.')
    assert refused("", {"select.grouping": "{}"}).startswith("Could not create query from select: ")
    assert refused("all(output(sum(n), sum(n)))") == "Can not use output label 'sum(n)' for multiple siblings."


def test_what_depends_on_the_time_is_not_repeatable() -> None:
    assert found(BY_A).is_repeatable
    assert not found("all(group(now() - n) each(output(count())))").is_repeatable
    (request,) = found(BY_A).layouts[0].requests
    assert request.levels[0].expression == Expression("attribute", ("a",))
