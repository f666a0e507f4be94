"""Ranking expressions of queries: what they change, what is refused and where, and what is kept of them.

That hits are those of a rank profile with the same expressions is shown by `tests/search/test_random_expressions.py`.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from paperwasp import limits
from paperwasp.application.query_profiles import parse_query_profiles
from paperwasp.base.records import replace
from paperwasp.container.search.answer_cache import AnswerCache
from paperwasp.container.search.binding import ReadyQuery
from paperwasp.container.search.config import ClusterConfig, SearchConfig
from paperwasp.container.search.parameters import read_parameters
from paperwasp.container.search.prepare import prepare_and_bind
from paperwasp.errors import IllegalQuery
from paperwasp.http.messages import Request
from paperwasp.ranking import CompiledProfile, Program
from paperwasp.ranking.query_expressions import PARAMETERS, RankExpressions
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.features import compile as compile_module
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import evaluate
from paperwasp.search.features.kept_profiles import KeptProfiles
from paperwasp.search.phases import scoring
from paperwasp.search.ready_profile import RankCost
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.container.search.search_nodes import Running, put, running

FIRST, SECOND = "ranking__firstPhase__expression", "ranking__secondPhase__expression"
GLOBAL, SHOWN = "ranking__globalPhase__expression", "ranking__matchFeatures__expression"
YQL = "select * from sources * where title contains 'blue'"
YEARS = {"music": (1, 2, 3), "book": (12, 11), "thing": (21, 22)}


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as service:
        service.handler.cache = AnswerCache(0)
        for kind, years in YEARS.items():
            for year in years:
                service.apply(put(year, kind, title="blue " + "sky " * year, year=year, price=100.0 - year))
        yield service


def relevances(root: dict[str, Any]) -> list[float]:
    return [hit["relevance"] for hit in root["children"]]


def test_each_phase_takes_the_place_of_that_of_the_profile(service: Running) -> None:
    asked = {"yql": YQL, "hits": 7}
    assert relevances(service.ask(**asked, ranking="year")) == [22, 21, 12, 11, 3, 2, 1]
    assert relevances(service.ask(**asked, ranking="year", **{FIRST: "-attribute(year)"})) == [
        *(-1, -2, -3, -11, -12, -21, -22)
    ]
    second = service.ask(**asked, ranking="year", restrict="music", **{SECOND: "firstPhase * attribute(price)"})
    assert relevances(second) == [3 * 97, 2 * 98, 1 * 99]
    best = {"ranking.rerankCount": 1, "restrict": "music"}
    assert relevances(service.ask(**asked, **best, ranking="year", **{SECOND: "100"}))[0] == 100
    third = service.ask(**asked, restrict="music", ranking="year", **{GLOBAL: "normalize_linear(attribute(year))"})
    assert relevances(third) == [1, 0.5, 0]
    all_three = {FIRST: "attribute(price)", SECOND: "firstPhase + 1", GLOBAL: "secondPhase * 2"}
    assert relevances(service.ask(**asked, restrict="music", **all_three)) == [200, 198, 196]


def test_match_features_are_those_of_the_query(service: Running) -> None:
    asked = {
        "yql": YQL,
        "restrict": "thing",
        "ranking": "year",
        SHOWN: "attribute(price)\n firstPhase attribute(price)",
    }
    assert [hit["fields"]["matchfeatures"] for hit in service.ask(**asked)["children"]] == [
        {"attribute(price)": 78, "firstPhase": 22},
        {"attribute(price)": 79, "firstPhase": 21},
    ]


def test_hits_are_grouped_by_the_relevance_of_the_expression(service: Running) -> None:
    grouped = f"{YQL} | all(group(year) order(-max(relevance())) max(2) each(output(max(relevance()))))"
    root = service.ask(yql=grouped, restrict="music", ranking="year", hits=0, **{FIRST: "-attribute(year) / 2"})
    (listed,) = root["children"][0]["children"]
    assert [(group["value"], group["fields"]["max(relevance())"]) for group in listed["children"]] == [
        ("1", -0.5),
        ("2", -1),
    ]


def test_hits_are_explained_by_the_expression(service: Running) -> None:
    explained = {"tracelevel": 1, "trace.explainLevel": 1}
    body = service.answer(yql=YQL, restrict="music", **explained, **{FIRST: "attribute(year) + 40"}).body
    assert b"attribute(year) + 40" in body and b'"score":43' in body


@pytest.mark.parametrize("method", ["get", "json", "nested", "form"])
def test_however_the_parameter_comes(service: Running, method: str) -> None:
    asked = {"yql": YQL, "timeout": "60s", "restrict": "music", "ranking": "year"}
    expression = "attribute(year) * 2 + 1"
    flat = asked | {"ranking.firstPhase.expression": expression}
    if method == "get":
        request = Request("GET", "/search/", urlencode(flat))
    elif method == "form":
        form = {"content-type": "application/x-www-form-urlencoded"}
        request = Request("POST", "/search/", headers=form, body=urlencode(flat).encode())
    else:
        nested = asked | {"ranking": {"profile": "year", "firstPhase": {"expression": expression}}}
        request = Request("POST", "/search/", body=orjson.dumps(flat if method == "json" else nested))
    answer = service._loop.run_until_complete(service.handler.handle(request))
    assert relevances(orjson.loads(answer.body)["root"]) == [7, 5, 3]


def test_a_query_profile_says_one_and_the_request_takes_it_back(service: Running) -> None:
    profiles, _ = parse_query_profiles(
        {
            "search/query-profiles/default.xml": b'<query-profile id="default" type="t">'
            b'<field name="ranking.firstPhase.expression">attribute(year) * 3</field></query-profile>',
            "search/query-profiles/types/t.xml": b'<query-profile-type id="t" inherits="native"/>',
        }
    )
    before = service.handler._config
    service.handler.configure(SearchConfig(before.clusters, profiles))
    try:
        asked = {"yql": YQL, "restrict": "music", "ranking": "year"}
        for _ in range(2):
            assert relevances(service.ask(**asked)) == [9, 6, 3]
            assert relevances(service.ask(**asked, **{FIRST: ""})) == [3, 2, 1]
            assert relevances(service.ask(**asked, **{FIRST: "attribute(year) + 1"})) == [4, 3, 2]
    finally:
        service.handler.configure(before)


WRONG = {
    (FIRST, "attribute(year) +\n + 1"): "ranking.firstPhase.expression, line 2, column 2: expected a value, found '+'",
    (SECOND, "(" * 201 + "1" + ")" * 201): "ranking.secondPhase.expression, line 1, column 201: nested deeper than 200",
    (GLOBAL, "1)"): "ranking.globalPhase.expression, line 1, column 2: ",
    (
        SHOWN,
        "attribute(year)\n  now(",
    ): "ranking.matchFeatures.expression, line 2, column 7: a parenthesis or a quote is",
    (SHOWN, "now, now"): "ranking.matchFeatures.expression, line 1, column 4: unexpected ',' between features",
    (SHOWN, "now  1+"): "ranking.matchFeatures.expression, line 1, column 6: ",
    (FIRST, "1 +\n debugWait(9,true)"): "ranking.firstPhase.expression, line 2, column 2: 'debugWait' keeps a thread",
    (
        SHOWN,
        "now debugAttributeWait(year,1)",
    ): "ranking.matchFeatures.expression, line 1, column 5: 'debugAttr",
    (FIRST, "1 + " * 5000 + "1"): "ranking.firstPhase.expression has 20001 characters; it may have 16384",
}


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_what_cannot_be_read_is_refused_with_its_place(service: Running, name: str, text: str) -> None:
    root = service.ask(yql=YQL, **{name: text})
    (error,) = root["errors"]
    assert error["code"] == 3
    assert error["message"].startswith(WRONG[name, text])
    assert len(error["message"]) < 200


def test_empty_says_nothing(service: Running) -> None:
    asked = {"yql": YQL, "restrict": "music", "ranking": "year", "hits": 7}
    assert service.ask(**asked, **dict.fromkeys((FIRST, SECOND, GLOBAL, SHOWN), " \n")) == service.ask(**asked)


TWO = """
schema {0} {{
  document {0} {{
    field title type string {{ indexing: index
      index: enable-bm25 }}
    field text type string {{ indexing: index
      index: enable-bm25 }}
    field year type int {{ indexing: attribute }}
    {1}
  }}
  rank-profile p {{
    inputs {{ query(n) double: 2 }}
    constants {{ c: 7 }}
    function twice(x) {{ expression: 2 * x }}
    function round_about() {{ expression: twice({2}) }}
    first-phase {{ expression: round_about }}
  }}
  rank-profile q {{ function hidden() {{ expression: 1 }} }}
}}
"""


def schemas(of_a: str = "attribute(year)") -> dict[str, Schema]:
    texts = {
        "schemas/a.sd": TWO.format("a", "field price type double { indexing: attribute }", of_a),
        "schemas/b.sd": TWO.format("b", "", "attribute(year)"),
    }
    return dict(parse_schemas(texts).schemas)


def config_of(**more: Any) -> SearchConfig:
    return SearchConfig((ClusterConfig("c", schemas()),), **more)


def planned(config: SearchConfig, **said: str) -> ReadyQuery:
    """`said`: fields of RankExpressions."""
    pairs = [("yql", "select * from sources * where true"), ("ranking", "p")]
    pairs += [(PARAMETERS[field], text) for field, text in said.items()]
    return prepare_and_bind(config, read_parameters(pairs), 0)


def test_a_type_where_it_does_not_compile_is_left_out_with_an_error_that_names_it() -> None:
    (query,) = planned(config_of(), first_phase="round_about + attribute(price)").queries
    assert query.query is not None
    assert query.query.match.document_types == ("a",)
    assert [error.message for error in query.errors] == [
        "rank profile 'p' of schema 'b' with expressions of the query: ranking.firstPhase.expression, line 1, "
        "column 15: first-phase: rank feature 'attribute': schema 'b' has no field 'price'"
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"first_phase": "hidden"}, "line 1, column 1: first-phase: unknown rank feature or function 'hidden'"),
        ({"first_phase": "twice(1, 2)"}, "function 'twice' takes 1 argument(s), not 2"),
        ({"first_phase": "1 +\n secondPhase"}, "first-phase: secondPhase is not known in this phase"),
        ({"first_phase": "tensor(x[2])(x)"}, "The first-phase expression must produce a double"),
        ({"match_features": "now \n\t hidden"}, "ranking.matchFeatures.expression, line 2, column 3: match-features"),
        ({"global_phase": "a + b"}, "ranking.globalPhase.expression, line 1, column 5: global-phase"),
    ],
)
def test_what_does_not_compile_is_told_with_its_place(said: dict[str, str], told: str) -> None:
    (query,) = planned(config_of(), **said).queries
    assert query.query is None
    assert len(query.errors) == 2
    for error, name in zip(query.errors, "ab", strict=True):
        assert error.message.startswith(f"rank profile 'p' of schema '{name}' with expressions of the query: ranking.")
        assert told in error.message


def test_of_many_problems_the_first_are_told() -> None:
    (query,) = planned(config_of(), first_phase=" + ".join(f"none{number}" for number in range(1000))).queries
    lines = query.errors[0].message.split("\n")
    assert len(lines) == limits.expressions.PROBLEMS


def test_functions_that_double_each_other_are_bounded() -> None:
    doubled = [f"function f{n}(x) {{ expression: f{n - 1}(x + 1) + f{n - 1}(x * 2) }}" for n in range(1, 40)]
    text = "\n".join(["function f0(x) { expression: x }", *doubled])
    schema = parse_schemas({"schemas/s.sd": f"schema s {{ document s {{ }} rank-profile p {{ {text} }} }}"}).schemas[
        "s"
    ]
    config = SearchConfig((ClusterConfig("c", {"s": schema}),))
    (query,) = planned(config, first_phase="f39(now)").queries
    assert "larger than" in query.errors[0].message
    assert f"{limits.expressions.OPERATIONS} operations" in query.errors[0].message
    (small,) = planned(config, first_phase="f3(now)").queries
    assert small.query is not None


def test_switched_off() -> None:
    off = config_of(allows_expressions=False)
    with pytest.raises(
        IllegalQuery, match=r"switched off by 'paperwasp\.search\.ranking-expressions' in services\.xml"
    ):
        planned(off, match_features="now")
    assert planned(off).queries[0].query is not None
    assert planned(off, match_features="").queries[0].query is not None


def test_what_depends_on_the_time_is_not_repeatable() -> None:
    config = config_of()
    assert planned(config, first_phase="twice(3)").answering.is_repeatable
    assert not planned(config, first_phase="twice(now)").answering.is_repeatable
    assert not planned(config, match_features="random").answering.is_repeatable


def test_answers_and_plans_are_kept_for_one_expression_alone() -> None:
    with running() as service:
        service.apply(put(1, year=5), put(2, year=7))
        asked = {"yql": "select * from music where true", "ranking": "year"}
        for _ in range(3):
            assert relevances(service.ask(**asked, **{FIRST: "attribute(year) * 2"})) == [14, 10]
            assert relevances(service.ask(**asked, **{FIRST: "attribute(year) * 3"})) == [21, 15]
            assert relevances(service.ask(**asked, **{SECOND: "attribute(year) * 2"})) == [14, 10]
            assert relevances(service.ask(**asked)) == [7, 5]
        assert len(service.handler.cache) == 4


def test_a_container_and_a_content_node_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config, served = config_of(), ServedSchemas()
    given = RankExpressions(first_phase="twice(attribute(year))", global_phase="firstPhase + c")
    (part, _) = planned(config, first_phase=given.first_phase or "", global_phase=given.global_phase or "").queries
    assert part.query is not None
    monkeypatch.delattr(compile_module, "compile_profile")
    a = config.clusters[0].schemas["a"]
    plan = served.ready_profile(a, "p", given)
    assert plan is served.ready_profile(a, "p", RankExpressions(*given))
    assert plan.profile.global_phase is config.global_phase(a, "p", given)
    assert part.ranking is not None and part.ranking.phase is plan.profile.global_phase
    assert plan.profile.rerank_count == 100


def test_a_deployment_with_other_functions_compiles_again() -> None:
    served, given = ServedSchemas(), RankExpressions(second_phase="round_about")
    found = []
    for of_a in ("1", "2"):
        current = schemas(of_a)
        served.compile_all(current, {})
        plan = served.ready_profile(current["a"], "p", given)
        assert plan.profile.second_phase is not None
        found.append(plan.profile.second_phase.constant)
    assert found == [2, 4]
    assert len(served._of_queries) == 1


def test_of_many_expressions_the_last_used_are_kept() -> None:
    draw = random.Random(SEED)
    config, served = config_of(), ServedSchemas()
    a = config.clusters[0].schemas["a"]
    before = len(compile_module._served)
    often = RankExpressions(first_phase="attribute(year)")
    kept = served.ready_profile(a, "p", often)
    for number in range(3 * limits.expressions.KEPT_PROFILES):
        given = RankExpressions(first_phase=f"attribute(year) + {draw.random()} * {number}")
        assert not config.profile_problem(a, "p", given)
        served.ready_profile(a, "p", given)
        assert config.profile_problem(a, "p", RankExpressions(first_phase=f"none{number}"))
        assert served.ready_profile(a, "p", often) is kept
    gc.collect()
    assert len(served._of_queries) == len(config._of_queries) == limits.expressions.KEPT_PROFILES
    assert len(compile_module._served) <= before + 2 * limits.expressions.KEPT_PROFILES


def test_kept_profiles_are_bounded_by_their_bytes_and_of_one_schema() -> None:
    kept: KeptProfiles[int] = KeptProfiles(10, 100)
    one, other = schemas()["a"], schemas()["a"]
    keys = [RankExpressions(first_phase=str(number)) for number in range(20)]
    for number, key in enumerate(keys[:3]):
        assert kept.add(one, "p", key, number, 40) == number
    assert [kept.get(one, "p", key) for key in keys[:3]] == [None, 1, 2]
    assert kept.size_bytes == 80
    assert kept.add(one, "p", keys[2], 7, 40) == 2
    assert kept.get(other, "p", keys[2]) is kept.get(one, "q", keys[2]) is None
    assert kept.add(other, "p", keys[3], 3, 1000) == 3
    assert (len(kept), kept.size_bytes, kept.get(other, "p", keys[3])) == (2, 80, None), "one would take all the room"
    for number, key in enumerate(keys):
        kept.add(one, "p", key, number, 1)
    assert [kept.get(one, "p", key) for key in keys[9:]] == [None, *range(10, 20)]
    kept.keep_only({id(other)})
    assert (len(kept), kept.size_bytes) == (0, 0)


def test_sums_of_bm25_are_pruned_as_in_a_profile() -> None:
    a, served = schemas()["a"], ServedSchemas()
    plan = served.ready_profile(a, "p", RankExpressions(first_phase="2 * bm25(title) + bm25(text)"))
    assert plan.profile.bm25_sum == (("title", 2.0), ("text", 1.0))
    by_input = served.ready_profile(a, "p", RankExpressions(first_phase="query(n) * bm25(title)"))
    assert by_input.profile.bm25_weights({"n": 5.0}) == (("title", 5.0),)
    assert by_input.profile.bm25_weights({}) == (("title", 2.0),)


def test_the_size_of_what_is_compiled_counts_its_tensors() -> None:
    a = schemas()["a"]
    served = ServedSchemas()

    def size(expression: str) -> int:
        profile = served.ready_profile(a, "p", RankExpressions(first_phase=expression)).profile
        assert isinstance(profile, CompiledProfile)
        return profile.size_bytes

    cells = 100_000
    assert size(f"reduce(tensor(x[{cells}])(x) * attribute(year), sum)") > cells * 8 > size("attribute(year)")
    many = " + ".join(f"reduce(tensor(x[1000000])(x + {number}) * attribute(year), sum)" for number in range(9))
    assert (
        limits.expressions.FOLDED_CELLS * 8 <= size(many) <= (limits.expressions.FOLDED_CELLS + 1_000_000) * 8 + 10**6
    )


def test_a_query_with_many_cells_is_answered_by_a_worker() -> None:
    a, served = schemas()["a"], ServedSchemas()

    def cost(cells: int, phase: str = "first_phase") -> RankCost:
        text = f"reduce(tensor(x[{cells}])(x + attribute(year)), sum)"
        return served.ready_profile(a, "p", RankExpressions(**{phase: text})).cost

    assert cost(1_000_000).first_ns > limits.INLINE_QUERY_NS > cost(1000).first_ns
    assert cost(1_000_000, "second_phase").second_ns > limits.INLINE_QUERY_NS
    assert cost(1_000_000, "global_phase").fixed_ns > limits.INLINE_QUERY_NS
    assert cost(1_000_000, "global_phase").global_ns > 0 == cost(1_000_000).global_ns


def test_blocks_are_smaller_the_more_cells_a_hit_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mebibyte has 8 tensors of 15,000 doubles."""
    done: list[int] = []

    def noted(program: Program, block: Block) -> Any:
        found = evaluate(program, block)
        done.append(block.hits)
        return found

    monkeypatch.setattr(scoring, "evaluate", noted)
    with running() as service:
        service.apply(*(put(number, year=number) for number in range(16)))
        service.handler.configure(replace(service.handler._config, query_memory_bytes=1 << 20))
        asked = {"yql": "select * from music where true", "hits": 1, "timeout": "60s"}
        for cells, largest in ((1000, 16), (15_000, 8), (30_000, 4)):
            done.clear()
            root = service.ask(**asked, **{FIRST: f"reduce(tensor(x[{cells}])(x + attribute(year)), sum)"})
            assert root["fields"]["totalCount"] == 16
            assert done == [largest] * (16 // largest)


def test_tensors_that_hits_show_count_with_their_text(service: Running) -> None:
    asked = {"yql": "select * from music where true", "hits": 1, "timeout": "60s"}
    shown = "map(tensor(x[{}])(x),f(a)(a+1)) attribute(year)"
    assert service.ask(**asked, **{SHOWN: shown.format(1000)})["children"]
    (error,) = service.ask(**asked, **{SHOWN: shown.format(1_100_000)})["errors"]
    assert "The tensors that hits show need more than the 67,108,864 bytes of memory" in error["message"]


def test_tensors_of_one_document_are_bounded_together(service: Running) -> None:
    one = "reduce(tensor(x[6000000])(x + attribute(year)), sum)"
    asked = {"yql": "select * from thing where true", "hits": 1}
    assert service.ask(**asked, **{FIRST: one})["children"]
    errors = service.ask(**asked, **{FIRST: " + ".join(one.replace("(x +", f"(x * {n} +") for n in range(9))})["errors"]
    assert "needs too much memory" in errors[0]["message"]
