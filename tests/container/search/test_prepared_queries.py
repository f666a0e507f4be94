"""Queries that are prepared once: each request is answered as if it were read anew, whatever was asked before it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.build import build_model
from paperwasp.application.package import load_package
from paperwasp.application.query_profiles import parse_query_profiles
from paperwasp.base.records import replace
from paperwasp.container.search.answer_cache import AnswerCache
from paperwasp.container.search.config import ClusterConfig, SearchConfig
from paperwasp.container.search.handler import SearchHandler
from paperwasp.container.search.parameters import read_parameters
from paperwasp.container.search.prepare import prepare_query
from paperwasp.container.search.prepared_cache import PreparedCache
from paperwasp.container.search.shapes import Forms, Shape, form_of, shape_of
from paperwasp.http.messages import Request
from paperwasp.search.features import check_profiles
from tests.container.search.search_scripts import (
    SCRIPTS,
    FakeClusters,
    answer_of,
    config,
    handler_of,
    profiles_of,
    request_of,
    rules_of,
)

CONFIG = config()


def warm_handler(prepared: PreparedCache) -> tuple[SearchHandler, FakeClusters]:
    """A handler that keeps prepared queries and no answers."""
    handler, clusters = handler_of(CONFIG, prepared)
    handler.cache = AnswerCache(0)
    return handler, clusters


@pytest.mark.parametrize("queries", [limits.PREPARED_QUERIES, 0], ids=["kept", "not kept"])
@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("search_*.txt")), ids=lambda path: path.stem)
def test_scripts_are_answered_the_same_again(path: Path, queries: int) -> None:
    """One handler answers all cases of a script, twice."""
    _, *cases = path.read_text().strip("\n").split("\n\n")
    folder = path.with_suffix("")
    prepared = PreparedCache(queries)
    handler, clusters = handler_of(config(profiles_of(folder), rules_of(folder)), prepared)
    handler.cache = AnswerCache(0)
    for _ in range(2):
        for text, _, expected in ((case + "\n").partition("\n---\n") for case in cases):
            assert answer_of(request_of(text), handler, clusters) == expected.rstrip("\n"), f"{path.name}:\n{text}"
    assert bool(len(prepared)) <= bool(queries)


SERVICE_SCRIPTS = Path(__file__).parents[2] / "service"
APPLICATIONS = [SERVICE_SCRIPTS / f"{name}_scripts/application" for name in ("chain", "matching", "override", "query")]


def requests_of(script: Path) -> list[Request]:
    """The requests of a script of queries: see `tests/service/query_scripts.py`."""
    found = []
    for case in script.read_text().strip().split("\n\n"):
        lines = [line for line in case.partition("\n---")[0].splitlines() if not line.startswith("#")]
        if not lines or lines[0].split()[0] == "POST":
            continue
        if lines[0].startswith("GET "):
            found.append(Request("GET", "/search/", lines[0][4:].replace(" ", "+")))
            continue
        body = dict(line.split("=", 1) for line in lines[1:] if "=" in line)
        if lines[0] != "query":
            body["yql"] = f"select * from music {lines[0]}" if lines[0].startswith("where") else lines[0]
        found.append(Request("POST", "/search/", body=orjson.dumps(body)))
    return found


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda path: path.parent.name)
def test_requests_of_applications_are_planned_the_same_again(application: Path) -> None:
    """What is asked of the clusters, for all queries that the service's scripts ask."""
    model = build_model(load_package(application), check_profiles)
    clusters = tuple(ClusterConfig(cluster.id, cluster.schemas) for cluster in model.content_clusters)
    own = SearchConfig(clusters, model.query_profiles, model.rules)
    asked = [each for script in sorted(application.parent.glob("*.txt")) for each in requests_of(script)]
    assert asked
    prepared = PreparedCache()
    handler = handler_of(own, prepared)
    handler[0].cache = AnswerCache(0)
    expected = [answer_of(request, *handler_of(own, PreparedCache(0))) for request in asked]
    for _ in range(2):
        assert [answer_of(request, *handler) for request in asked] == expected
    assert prepared


WORDS = st.sampled_from(["two", "many", "blue", "x -y", 'a "b c"', "year:5", "Straße", "le chat et la souris", "", " "])
LITERALS = st.sampled_from(["two", "it", "a b", "%", "/*", "", "1", "-"])
NUMBERS = st.integers(-(10**9), 10**9).map(str)
SMALL = st.sampled_from(["0", "1", "3", "400", "401", "-1", "x", ""])
FROM = "select * from sources * where "
VALUES = {
    "query": WORDS,
    "hits": SMALL,
    "count": SMALL,
    "offset": SMALL,
    "timeout": st.sampled_from(["1s", "20ms", "-1", "5"]),
    "word": LITERALS,
    "years": st.sampled_from(["1,2", "'a'", "5", ""]),
    "user": WORDS,
    "ranking": st.sampled_from(["typed", "timely", "nobody", ""]),
    "input.query(number)": st.sampled_from(["1.5", "x", "7"]),
    "input.query(vector)": st.sampled_from(["[1,2]", "[1]", "{}"]),
    "pos.ll": st.sampled_from(["N63.4;E10.4", "S1;W1", "1"]),
    "pos.radius": st.sampled_from(["1km", "5m", "x"]),
    "ranking.location": st.sampled_from(["", "(2,1,2,3,0,1,0)", "place:[2,1,1,2,2]", "1"]),
    "streaming.groupname": WORDS,
    "searchAfter": st.sampled_from(["", "x"]),
    "nocache": st.sampled_from(["true", "false"]),
    "collapsefield": st.sampled_from(["year", "none"]),
    "sorting": st.sampled_from(["-year", "+artist", "none"]),
    "sources": st.sampled_from(["media", "music", "other", "none"]),
    "format": st.sampled_from(["json", "xml", "cbor"]),
    "tracelevel": st.sampled_from(["0", "1"]),
    "hitcountestimate": st.sampled_from(["true", "false"]),
    "recall": st.sampled_from(["+title:a", "b"]),
    "model.type": st.sampled_from(["all", "any", "phrase", "yql"]),
    "default-index": st.sampled_from(["title", "tags"]),
    "rankproperty.vespa.term.1.significance": st.sampled_from(["0.5", "x"]),
}


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """A condition with literals and parameters in it."""
    literal, number = draw(LITERALS).replace("%", ""), draw(NUMBERS)
    return draw(
        st.sampled_from(
            [
                "userQuery()",
                f"title contains '{literal}'",
                f'title contains "{literal}" and year > {number}',
                f"userQuery() and !(title contains '{literal}')",
                f"userInput('{literal}') and year = {number}",
                f"title contains '{literal}' and userInput(@word)",
                f"title contains '{literal}' and {{allowEmpty:true}}userInput(@user)",
                f"title contains phrase('{literal}', @word) limit 3",
                f"year in (@years) and title contains '{literal}'",
                f"{{label: '{literal}'}}title contains @word",
                f"title contains '{literal}' and nothing contains 'x'",
                f"title contains '{literal}' and nonEmpty(title contains @word)",
                f"true and weakAnd(title contains '{literal}', body contains 'b')",
                f"title contains fuzzy('{literal}') order by year desc",
                f"title contains '{literal}' and",
            ]
        )
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4))
    pairs = [(name, draw(VALUES[name])) for name in names]
    if draw(st.booleans()):
        pairs.insert(0, ("yql", FROM + draw(conditions())))
    else:
        pairs.append(("query", draw(WORDS)))
    return Request("GET", "/search/", urlencode(pairs))


PROFILES, FINDINGS = parse_query_profiles(
    {
        f"search/query-profiles/{name}.xml": content.encode()
        for name, content in {
            "default": """<query-profile id="default">
                <field name="hits">3</field>
                <field name="offset">1</field>
                <field name="ranking.profile">typed</field>
                <field name="word">blue</field>
                <field name="ranking.features.query(number)">4</field>
                <field name="pos.ll">N1;E1</field>
                <field name="model.sources">media</field>
            </query-profile>""",
            "own": """<query-profile id="own" inherits="default">
                <field name="model.queryString">own</field></query-profile>""",
            "spoken": """<query-profile id="spoken"><field name="yql">select * from sources * where
                title contains 'a' and year > 7 and body contains @word and userInput(@user)</field>
                <field name="word">it</field></query-profile>""",
            "fixed": """<query-profile id="fixed"><field name="hits" overridable="false">2</field></query-profile>""",
            "filled": """<query-profile id="filled">
                <field name="model.queryString">a %{user} b</field></query-profile>""",
            "varied": """<query-profile id="varied"><dimensions>user</dimensions><field name="hits">7</field>
                <query-profile for="two"><field name="hits">1</field></query-profile></query-profile>""",
        }.items()
    }
)
UNDER_PROFILES = config(PROFILES)


def test_which_profiles_only_fill_in_what_a_request_leaves_out() -> None:
    assert not FINDINGS
    names = ("", "default", "own", "spoken", "fixed", "filled", "varied", "none")
    assert [name for name in names if PROFILES.plain(name) is not None] == ["", "default", "own", "spoken"]


KEPT = PreparedCache()
UNDER = handler_of(UNDER_PROFILES)
UNDER[0].cache = AnswerCache(0)
WARM = warm_handler(KEPT)
"""One handler for all examples: what it has kept is of any requests that were asked before."""


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(requests())
def test_no_value_of_one_request_is_in_the_answer_to_another(request: Request) -> None:
    expected = answer_of(request, *handler_of(CONFIG, PreparedCache(0)))
    assert answer_of(request, *WARM) == expected
    assert answer_of(request, *WARM) == expected


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(requests(), st.sampled_from(["", "own", "spoken", "fixed", "filled", "varied", "ref:own", "none"]))
def test_nor_under_query_profiles(request: Request, profile: str) -> None:
    if profile:
        request = replace(request, query=f"{request.query}&queryProfile={profile}")
    expected = answer_of(request, *handler_of(UNDER_PROFILES, PreparedCache(0)))
    assert answer_of(request, *UNDER) == expected
    assert answer_of(request, *UNDER) == expected


@pytest.mark.parametrize("given", ["hits=", "count=", "hits=3&count=", "count=&hits=2", "offset=&user="])
def test_an_empty_value_takes_back_what_a_profile_says(given: str) -> None:
    request = Request("GET", "/search/", f"query=two&{given}")
    expected = answer_of(request, *handler_of(UNDER_PROFILES, PreparedCache(0)))
    handler, clusters = handler_of(UNDER_PROFILES)
    handler.cache = AnswerCache(0)
    assert [answer_of(request, handler, clusters) for _ in range(3)] == [expected] * 3


def test_requests_under_a_plain_profile_share_a_query() -> None:
    for profile, sizes in (("default", [1, 1, 1]), ("spoken", [1, 1, 1]), ("fixed", [1, 2, 3])):
        prepared = PreparedCache()
        handler, clusters = handler_of(UNDER_PROFILES, prepared)
        handler.cache = AnswerCache(0)
        for word, size in zip(("two", "many", "blue"), sizes, strict=True):
            request = Request("GET", "/search/", f"query={word}&queryProfile={profile}&user={word}")
            answer_of(request, handler, clusters)
            assert len(prepared) == size


def queried(statement: str, **more: str) -> Request:
    return Request("GET", "/search/", urlencode({"yql": FROM + statement, **more}))


def test_positions_of_errors_are_those_of_each_text() -> None:
    """The text of a user that is not given is missed where the statement asks for it, behind literals of any length."""
    prepared = PreparedCache()
    handler, clusters = warm_handler(prepared)
    for literal in ("a", "a much longer literal", "b"):
        statement = f"title contains '{literal}' and userInput(@text)"
        assert '"root"' in answer_of(queried(statement, text="two"), handler, clusters)
        column = len(FROM) + statement.index("@") + 1
        found = answer_of(queried(statement, text=""), handler, clusters)
        assert f"line 1, column {column}: Parsing '' only resulted in NullItem." in found
    assert len(prepared) == 1


def shape(request: Request) -> Shape:
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in request.query.split("&"))]
    return shape_of(pairs, form_of([name for name, _ in pairs]), "json")


def test_requests_that_differ_in_values_share_a_query() -> None:
    prepared = PreparedCache()
    handler, clusters = warm_handler(prepared)
    for number, word in enumerate(("two", "many", "blue")):
        statement = f"title contains '{word}' and year > {number} and body contains @word"
        more = {"word": word, "hits": str(number), "input.query(a)": word, "anything": word}
        answer_of(queried(statement, **more), handler, clusters)
    assert len(prepared) == 1


def test_what_decides_how_a_statement_reads_is_part_of_its_key() -> None:
    prepared = PreparedCache()
    handler, clusters = warm_handler(prepared)
    for years, sizes in (("1,2", 2), ("1,2", 2), ("3", 3)):
        answer_of(queried("year in (@years) and title contains 'two'", years=years), handler, clusters)
        assert len(prepared) == sizes


def kept(queries: PreparedCache, name: str) -> bool:
    pairs = [("query", "a"), ("sorting", "year"), ("other", "x"), ("default-index", name)]
    form = forms.of(pairs)
    asked = shape_of(pairs, form, "json")
    if queries.get(asked, CONFIG) is not None:
        return True
    parameters = read_parameters(pairs)
    queries.put(asked, prepare_query(CONFIG, parameters), parameters.values, CONFIG)
    return False


forms = Forms()


def test_the_least_recently_used_make_room() -> None:
    queries = PreparedCache(3)
    assert [kept(queries, name) for name in ("a", "b", "c", "a", "d", "b", "a")] == [
        False, False, False, True, False, False, True,
    ]  # fmt: skip
    assert len(queries) == 3
    assert queries.get(shape(Request("GET", "/search/", "query=a")), config()) is None
    assert (len(queries), queries.size_bytes) == (0, 0)


def test_memory_is_bounded_whatever_is_asked() -> None:
    queries = PreparedCache(100, 200_000)
    for number in range(300):
        kept(queries, f"{'x' * number}{number}")
        assert len(queries) <= 100 and queries.size_bytes <= 200_000
    assert kept(queries, f"{'x' * 299}299")
    assert not any(kept(queries, "x" * (limits.PREPARED_QUERY_CHARACTERS + 1)) for _ in range(2))


def test_forms_are_bounded() -> None:
    few = Forms(2, 1000)
    first = few.of([("a", "1")])
    assert few.of([("a", "2")]) is first
    for name in ("b", "c", "x" * 1000):
        few.of([(name, "1")])
    assert len(few) == 2
    assert few.of([("a", "1")]) is not first
