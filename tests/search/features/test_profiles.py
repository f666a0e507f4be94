"""Rank profiles of whole schemas: what they compile to, and that one deploy shows everything that is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paperwasp import limits
from paperwasp.ranking import CompiledProfile, ProfileError, Program
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Function, RankProfile
from paperwasp.search.features import compile_profile, compile_profiles, evaluate
from paperwasp.search.features.setting import RankTerm
from tests.search.features.fake_block import fake_block, numbers, schema_of

SCHEMA = """schema music {
    document music {
        field title type string {
            indexing: index | summary
            index: enable-bm25
        }
        field artist type string {
            indexing: index | summary
            index: enable-bm25
        }
        field year type int { indexing: attribute | summary }
        field stored type string { indexing: summary }
    }
    %s
}
"""


def profiles_of(text: str) -> dict[str, CompiledProfile]:
    found = compile_profiles(parse_schemas({"schemas/music.sd": SCHEMA % text}).schemas["music"])
    executed = {name: profile for name, profile in found.items() if isinstance(profile, CompiledProfile)}
    assert len(executed) == len(found)
    return executed


def problems_of(text: str) -> list[str]:
    with pytest.raises(ProfileError) as raised:
        profiles_of(text)
    assert len(raised.value.problems) >= 1
    return str(raised.value).splitlines()


def test_the_profiles_that_are_always_there() -> None:
    profiles = profiles_of("")
    assert [feature.name for feature in profiles["default"].first_phase.features] == ["nativeRank"]
    assert profiles["unranked"].first_phase.constant == 0.0
    assert profiles["unranked"].bm25_sum is None
    assert "bm25(title)" in profiles["default"].rank_features


def test_a_whole_profile() -> None:
    profile = profiles_of(
        """
    rank-profile base {
        inputs { query(boost) double: 0.5 }
        constants { half: 0.5 }
        function text(weight) { expression: bm25(title) + weight * bm25(artist) }
        function age() { expression: max(0, 2026 - attribute(year)) }
        first-phase { expression: text(half) }
        rank-properties { bm25(title).k1: 1.5 }
        match-features: bm25(title) age
    }
    rank-profile mine inherits base {
        second-phase {
            expression: firstPhase * query(boost) + age
            rerank-count: 7
        }
        summary-features { attribute(year) }
        rank-features { age }
        ignore-default-rank-features
    }
    """
    )["mine"]
    assert profile.bm25_sum == (("title", 1.0), ("artist", 0.5))
    assert profile.rerank_count == 7
    assert profile.inputs == {"boost": 0.5}
    assert list(profile.match_features) == ["bm25(title)", "age"]
    assert list(profile.summary_features) == ["attribute(year)"]
    assert list(profile.rank_features) == ["age"]
    assert profile.second_phase is not None
    block = fake_block([{"year": 2000}, {}], inputs={"boost": 2.0}, relevance={"firstPhase": [3, 4]})
    np.testing.assert_array_equal(evaluate(profile.second_phase, block), [3 * 2 + 26, 8])


def test_weights_that_the_query_sets() -> None:
    profile = profiles_of(
        """
    rank-profile mine {
        inputs { query(w) double: 2 }
        first-phase { expression: bm25(title) + query(w) * bm25(artist) }
    }
    """
    )["mine"]
    assert profile.bm25_sum is None
    assert profile.bm25_weights({}) == (("title", 1.0), ("artist", 2.0))
    assert profile.bm25_weights({"w": 5.0}) == (("title", 1.0), ("artist", 5.0))
    assert profile.bm25_weights({"w": -1.0}) is None


def test_all_problems_are_shown_at_once() -> None:
    found = problems_of(
        """
    rank-profile one {
        first-phase { expression: bm25(titel) + }
        match-features: attribute(stored) fieldMatch(title) term(x).weight
    }
    rank-profile two {
        function unused() { expression: nativeRnk }
        function never(x) { expression: x + }
        first-phase { expression: firstPhase }
        second-phase { expression: bm25(titel) + attribute(title) + now.seconds }
        summary-features: reduce(x,sum) bm25 bm25(title,artist) nativeRank(none)
    }
    """
    )
    assert found == [
        "schemas/music.sd, line 16, column 48: first-phase: expected a value, found the end",
        "schemas/music.sd, line 17, column 25: match-features 'attribute(stored)': rank feature 'attribute': field"
        " 'stored' is no attribute: its indexing statement needs 'attribute'",
        "schemas/music.sd, line 17, column 25: match-features 'term(x).weight': rank feature 'term' takes a number"
        " counted from 0, not 'x'",
        "schemas/music.sd, line 22, column 35: first-phase: firstPhase is not known in this phase",
        "schemas/music.sd, line 23, column 36: second-phase: rank feature 'bm25': schema 'music' has no field 'titel';"
        " did you mean 'title'?",
        "schemas/music.sd, line 23, column 50: second-phase: rank feature 'attribute': field 'title' is no attribute:"
        " its indexing statement needs 'attribute'",
        "schemas/music.sd, line 23, column 69: second-phase: rank feature 'now' has no output 'seconds'; it has out",
        "schemas/music.sd, line 24, column 27: summary-features 'reduce(x,sum)': unknown rank feature or function 'x'",
        "schemas/music.sd, line 24, column 27: summary-features 'bm25': rank feature 'bm25' takes 1 to 2 argument(s),"
        " not 0",
        "schemas/music.sd, line 24, column 27: summary-features 'bm25(title,artist)': bm25 takes field: and label:",
        "schemas/music.sd, line 24, column 27: summary-features 'nativeRank(none)': rank feature 'nativeRank': schema"
        " 'music' has no field 'none'",
        "schemas/music.sd, line 20, column 41: function 'unused': unknown rank feature or function 'nativeRnk'; did you"
        " mean 'nativeRank'?",
        "schemas/music.sd, line 21, column 44: function 'never': expected a value, found the end",
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"rank_properties": {"bm25(title).k1": ("high",)}}, "rank property bm25(title).k1 is no number: 'high'"),
        ({"sort_features": ("bm25(title)",)}, "sort-features are names of functions and of features without arguments"),
        ({"sort_features": ("now.out",)}, "sort-features are names of functions and of features without arguments"),
        ({"sort_features": ("nowhere",)}, "'nowhere'"),
        ({"sort_features": ("firstPhase",)}, "sort-features: firstPhase is not known in this phase"),
        (
            {"sort_features": ("t",), "functions": {"t": Function("t", (), "tensor(x[2])(x)")}},
            "The sort-features expression must produce a double (a tensor with no dimensions), but produces",
        ),
        ({"match_features": ("now.seconds",)}, "rank feature 'now' has no output 'seconds'; it has out"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], problem: str) -> None:
    from paperwasp.document.types import STRING

    profile = RankProfile("p", **{"first_phase": "bm25(title)", **settings})
    with pytest.raises(ProfileError) as raised:
        compile_profile(schema_of(["title"], {"genre": STRING}), profile)
    assert problem in str(raised.value)


def test_a_rank_property_that_cannot_be_is_told_once() -> None:
    wrong = "rank-properties { bm25(title).k1: high }"
    told = "rank property bm25(title).k1 is no number: 'high'"
    [used] = problems_of(f"rank-profile p {{ {wrong} first-phase {{ expression: bm25(title) }} }}")
    assert used.endswith(f"first-phase: {told}")
    [unused] = problems_of(f"rank-profile p {{ {wrong} first-phase {{ expression: 1 }} }}")
    assert unused.startswith("schemas/music.sd, line ")
    assert unused.endswith(told)


def test_default_rank_features_have_values() -> None:
    profile = profiles_of("")["default"]
    terms = [("a", RankTerm(("title", "artist")))]
    block = fake_block([{"title": "a b"}], terms, relevance={"firstPhase": [0.5]})
    for name, program in profile.rank_features.items():
        assert isinstance(program, Program) and np.isfinite(evaluate(program, block)).all(), name


SITES = """schema site { document site {
    field title type string { indexing: index }
    field url type uri { indexing: index }
    field places type array<position> { indexing: attribute }
  }
  rank-profile p {
    function best() { expression: bm25(title) }
    match-features: matches(title) best attribute(places_zcurve).count firstPhase
    summary-features: term(1).weight bm25(title)
    rank-properties { fieldInfo.enable: true }
  }
}"""


def site_profile() -> CompiledProfile:
    found = compile_profiles(parse_schemas({"schemas/site.sd": SITES}).schemas["site"])["p"]
    assert isinstance(found, CompiledProfile)
    return found


def test_parts_of_uris_and_z_curves_are_among_the_default_rank_features() -> None:
    # Vespa: UriHack.java (a field for each part), CreatePositionZCurve.java (an attribute instead of the position).
    names = set(site_profile().rank_features)
    parts = ("scheme", "host", "port", "path", "query", "fragment", "hostname")
    for field in ("url", *(f"url.{part}" for part in parts)):
        assert {f"bm25({field})", f"matches({field})", f"fieldInfo({field}).len"} <= names
        assert len({name for name in names if name.startswith(f"fieldMatch({field})")}) == 30
    assert len({name for name in names if name.startswith("attributeMatch(places_zcurve)")}) == 13
    assert {"matches(places_zcurve)", "fieldInfo(places_zcurve).type"} <= names
    assert not {name for name in names if "(places)" in name}


def test_values_of_parts_of_uris_and_of_z_curves() -> None:
    features = site_profile().rank_features
    block = fake_block([{"url.hostname": "a b", "title": "b"}], [("b", RankTerm(("url.hostname",)))])
    wanted = {
        "fieldInfo.indexCnt": 9.0,
        "fieldInfo.attrCnt": 1.0,
        "fieldInfo(url.host).type": 1.0,
        "fieldInfo(places_zcurve).type": 2.0,
        "matches(url.hostname)": 1.0,
        "matches(url.host)": 1.0,
        "matches(url)": 0.0,
        "fieldTermMatch(url.host,0).firstPosition": 1.0,
        "fieldMatch(url.hostname).matches": 1.0,
        "attributeMatch(places_zcurve).matches": 0.0,
    }
    programs = {name: features[name] for name in wanted}
    assert {name: float(value[0]) for name, value in numbers(programs, block).items()} == wanted


def test_features_are_in_the_order_of_their_names() -> None:
    # Vespa: blueprintresolver.h (a sorted map); a function is rankingExpression(name) there, and renamed afterwards.
    profile = site_profile()
    assert list(profile.match_features) == [
        "attribute(places_zcurve).count", "firstPhase", "matches(title)", "best",
    ]  # fmt: skip
    assert list(profile.summary_features) == ["bm25(title)", "term(1).weight"]
    assert list(profile.rank_features) == sorted(profile.rank_features)


@pytest.mark.parametrize("value", ["inf", "nan", "1e30", "-1e400"])
@pytest.mark.parametrize(
    "key",
    [
        "nativeProximity.slidingWindowSize",
        "nativeFieldMatch.minFieldLength",
        "nativeFieldMatch.averageFieldLength.title",
        "term.numTerms",
        "fieldTermMatch.numTerms",
    ],
)
def test_rank_properties_that_are_too_large(key: str, value: str) -> None:
    problems = problems_of(f"rank-profile p {{ rank-properties {{ {key}: {value} }} }}")
    assert "at most" in problems[0]
    assert problems[0].startswith("schemas/music.sd, ")


@pytest.mark.parametrize(
    "feature", ["term(%s)", "matches(title,%s)", "fieldTermMatch(title,%s)", "termDistance(title,1,%s)"]
)
@pytest.mark.parametrize("number", ["9" * 5000, "9" * 10, '"²"'])
def test_numbers_in_arguments_that_are_none(feature: str, number: str) -> None:
    [problem] = problems_of(f"rank-profile p {{ match-features: {feature % number} }}")
    assert "takes a number counted from 0" in problem


def test_work_ends_where_there_are_many_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEMA_PROBLEMS", 10)
    unknown = " + ".join(f"unknown{number}" for number in range(30))
    profiles = "".join(f"rank-profile p{number} {{ first-phase {{ expression: {unknown} }} }}\n" for number in range(5))
    problems = problems_of(profiles)
    assert len(problems) == 10
    assert "unknown0" in problems[0]
