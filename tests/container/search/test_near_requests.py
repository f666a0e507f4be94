"""Compiled plans find what is near as the general steps do, byte for byte: random vectors, filters and pages.

The peer asks the same content node, which has no plans for it: it answers all vectors the general way.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import orjson
import pytest

from paperwasp import limits
from paperwasp.document.numbers import half, single
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.http.messages import Request
from paperwasp.search.plan import runs
from tests.container.search.search_nodes import put, remove
from tests.container.search.text_peers import Peers, peers, text, with_input

QUERIES = int(os.environ.get("PAPERWASP_COMPILED_QUERIES", "600"))
FIELDS: Final = {
    "plain": ("tensor<float>(x[4])", "euclidean", "index"),
    "angles": ("tensor<float>(x[4])", "angular", "index"),
    "normal": ("tensor<float>(x[4])", "prenormalized-angular", "index"),
    "dots": ("tensor<bfloat16>(x[4])", "dotproduct", "index"),
    "doubles": ("tensor<double>(x[4])", "euclidean", "index"),
    "bits": ("tensor<int8>(x[4])", "hamming", "index"),
    "bytes": ("tensor<int8>(x[4])", "euclidean", "index"),
    "exact": ("tensor<float>(x[4])", "euclidean", ""),
    "several": ("tensor<float>(p{},x[4])", "euclidean", "index"),
    "place": ("tensor<float>(x[2])", "geodegrees", "index"),
}
"""Name → type, distance metric, and whether there is a graph."""
WORDS: Final = ("the", "of", "in", "cats", "blue", "running", "w1", "w2", "w3", "UTF-8", "nothing", "caf\u00e9")
INDEXED: Final = [name for name in FIELDS if name not in ("exact", "several", "place")]
GLOBAL: Final = ("fused", "fusion", "linear", "crossed", "years")
"""Profiles with a global phase."""
INPUTS: Final = {"float": "q", "double": "d", "int8": "i", "bfloat16": "b"}


NUMBERS: Final = ("byte", "int", "long", "float16", "float", "double", "bool")
"""The types of attributes that are shown, each under its name."""

GLOBAL_PROFILES: Final = """  rank-profile fused inherits hybrid { global-phase { rerank-count: 20
    expression: reciprocal_rank(bm25(body)) + reciprocal_rank(closeness(field, plain), 10) }
  }
  rank-profile fusion inherits plain { global-phase { rerank-count: 7
    expression: reciprocal_rank_fusion(bm25(body), closeness(field, plain)) }  }
  rank-profile linear inherits both { global-phase { rerank-count: 15
    rank-score-drop-limit: 0.4
    expression: normalize_linear(bm25(body)) + 0.5 * normalize_linear(firstPhase) - 0.1 * itemRawScore(here) }  }
  rank-profile crossed inherits both { global-phase { rerank-count: 30
    expression: relevanceScore - 900 * reciprocal_rank(2 * bm25(body) + itemRawScore(here), 1) }  }
  rank-profile years inherits both { global-phase { expression: bm25(body) + attribute(year) } }
"""


def schema() -> str:
    fields = "".join(
        f"""
    field {name} type {kind} {{ indexing: attribute{" | index" if index else ""}
      attribute {{ distance-metric: {metric} }} {"index { hnsw { max-links-per-node: 4 } }" if index else ""} }}"""
        for name, (kind, metric, index) in FIELDS.items()
    )
    fields += "".join(f"field a_{kind} type {kind} {{ indexing: attribute }}\n" for kind in NUMBERS)
    inputs = "".join(f"query({name}) tensor<{cell}>(x[4])\n" for cell, name in INPUTS.items())
    profiles = "".join(
        f"""
  rank-profile {name} inherits near {{ first-phase {{ expression: closeness(field, {name}) }} }}"""
        for name in FIELDS
    )
    return f"""
schema music {{
  document music {{
    field year type int {{ indexing: attribute | summary }}
    field name type string {{ indexing: attribute | summary }}
    field title type string {{ indexing: index | summary }}
    field body type string {{ indexing: index | summary
      index: enable-bm25 }}{fields}
  }}
  rank-profile near {{ inputs {{ {inputs}
      query(p) tensor<float>(x[2])
      query(n) double
  }} }}{profiles}
  rank-profile labelled inherits near {{ first-phase {{ expression: closeness(label, here) }} }}
  rank-profile raw inherits near {{ first-phase {{ expression: itemRawScore(here) }} }}
  rank-profile twice inherits near {{ first-phase {{ expression: 2 * closeness(field, plain) }} }}
  rank-profile hybrid inherits near {{ first-phase {{ expression: bm25(body) + 2 * closeness(field, plain) }} }}
  rank-profile both inherits near {{ first-phase {{ expression: bm25(body) + 1000 * itemRawScore(here) }} }}
  rank-profile dotted inherits near {{ first-phase {{ expression: max(bm25(body), closeness(field, dots)) }} }}
{GLOBAL_PROFILES}  rank-profile again inherits plain {{ second-phase {{ expression: attribute(year) }} }}
  rank-profile tuned inherits plain {{ approximate-threshold: 0.3
    post-filter-threshold: 0.6 }}
  rank-profile dropping inherits plain {{ first-phase {{ rank-score-drop-limit: 0.1 }} }}
  document-summary short {{ summary year {{}}
    summary name {{}} }}
  document-summary vectors {{ summary plain {{}} }}
  document-summary numbers {{ {" ".join(f"summary a_{kind} {{}}" for kind in NUMBERS)} }}
}}
"""


def random_vector(choice: random.Random, size: int = 4) -> list[float]:
    return [choice.choice((choice.randint(-3, 3), round(choice.gauss(0, 2), 3))) for _ in range(size)]


def vector_of(field: str, cells: object) -> Tensor:
    return parse_tensor(json.dumps(cells), TensorType.parse(FIELDS[field][0]))


def _number(choice: random.Random, kind: str) -> object:
    if kind == "bool":
        return choice.random() < 0.5
    if "o" not in kind or kind == "long":
        bits = {"byte": 8, "int": 32, "long": 64}[kind] - 1
        return choice.choice((0, -1, 2**bits - 1, -(2**bits), choice.randrange(-(2**bits), 2**bits)))
    number = choice.choice((0.0, -0.0, 0.1, -2.5, 1e-5, 65504.0, math.inf, -math.inf, math.nan, choice.gauss(0, 100)))
    return number if kind == "double" else half(number) if kind == "float16" else single(number)


def document(choice: random.Random, number: int) -> Any:
    values: dict[str, object] = {"year": choice.randrange(40), "name": f"n{choice.randrange(9)}", "title": "one two"}
    values["body"] = text(choice, 12)
    values |= {f"a_{kind}": _number(choice, kind) for kind in NUMBERS if choice.random() < 0.8}
    for name, (kind, _, _) in FIELDS.items():
        if choice.random() < 0.1:
            continue
        cells = random_vector(choice, 2 if "x[2]" in kind else 4)
        if "int8" in kind:
            cells = [round(cell) for cell in cells]
        values[name] = vector_of(name, {"a": cells, "b": random_vector(choice)} if "{}" in kind else cells)
    return put(number, **values)


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    """A node with random documents, some of them removed, replaced or changed in place, and some not in the rows."""
    with peers(schema()) as found:
        found.feed(document)
        yield found


def _asked(choice: random.Random) -> tuple[dict[str, str], str, str]:
    """Parameters but for the vector, the name of that, and its text."""
    field = choice.choice(INDEXED) if choice.random() < 0.85 else choice.choice([*FIELDS])
    kind = FIELDS[field][0]
    name = INPUTS[choice.choice([*INPUTS]) if choice.random() < 0.3 else kind[kind.index("<") + 1 : kind.index(">")]]
    notes = {"targetHits": choice.choice((1, 10, 50, 500))}
    more: dict[str, tuple[object, ...]] = {
        "approximate": (False, True),
        "hnsw.exploreAdditionalHits": (50,),
        "distanceThreshold": (2.0, 0.5, 100.0, -1.0),
        "label": ('"here"',),
        "hnsw.postFilterThreshold": (0.5,),
        "hnsw.approximateThreshold": (0.6,),
    }
    notes |= {key: choice.choice(said) for key, said in more.items() if choice.random() < 0.12}  # type: ignore[misc]
    written = ", ".join(f"{key}: {str(said).lower()}" for key, said in notes.items())
    near = f"({{{written}}}nearestNeighbor({field}, {name}))"
    filters = ("year < {}", "year >= {}", "name contains 'n{}'", "year in ({}, 3, 7)", "title contains 'one'")
    where = [choice.choice(filters).format(choice.choice((1, 5, 30))) for _ in range(choice.choice((0, 0, 0, 1, 1, 2)))]
    profiles = (field, "labelled", "raw", "twice", "again", "tuned", "dropping", "near", *GLOBAL)
    parameters = {
        "yql": f"select {choice.choice(('*', 'name', 'year, name'))} from music where {' and '.join([near, *where])}",
        "ranking": field if choice.random() < 0.7 else choice.choice(profiles),
        "timeout": "60s",
    }
    others: dict[str, tuple[object, ...]] = {
        "hits": (0, 1, 30, 399),
        "offset": (1, 7, 60),
        "presentation.summary": ("short", "vectors", "numbers", "numbers", "numbers"),
    }
    others |= {"ranking.globalPhase.rerankCount": (0, 1, 4), "ranking.globalPhase.rankScoreDropLimit": (0.0, 0.02)}
    others |= {"input.query(n)": (3,), "nocache": ("true",)}
    parameters |= {key: str(choice.choice(said)) for key, said in others.items() if choice.random() < 0.1}
    size = 2 if field == "place" else 4
    cells = random_vector(choice, size if choice.random() < 0.97 else 3)
    if name == "i":
        cells = [round(cell) for cell in cells]
    text = json.dumps(cells, separators=choice.choice(((", ", ": "), (",", ":"))))
    return (
        parameters,
        f"input.query({name})",
        text if choice.random() < 0.98 else choice.choice(("[", "[1,2,x,4]", "x")),
    )


def _request(choice: random.Random, parameters: dict[str, str], name: str, vector: str, form: str) -> Request:
    if form == "url":
        return Request("GET", "/search/", urlencode(parameters | {name: vector}))
    text = json.dumps(parameters)[:-1] + f', "{name}": {vector if form == "array" else json.dumps(vector)}}}'
    return Request("POST", "/search/", "", {"content-type": "application/json"}, text.encode())


@pytest.mark.parametrize("seed", range(4))
def test_random_vectors_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        parameters, name, vector = _asked(choice)
        form = choice.choice(("url", "array", "text"))
        warm = json.dumps(random_vector(choice, 2 if "(place," in parameters["yql"] else 4))
        shared.compare_requests(
            _request(choice, parameters, name, warm, form), _request(choice, parameters, name, vector, form)
        )
    assert shared.answered - before > QUERIES // 20, "plans have answered too few queries to say anything"


@pytest.mark.parametrize("seed", range(4))
def test_random_vectors_beside_texts_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(100 + seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        parameters, name, vector = _asked(choice)
        near, *where = parameters["yql"].split(" where ")[1].split(" and ")
        near, name = near if "label" in near else near.replace("{", "{label: 'here', ", 1), "input.query(q)"
        field = choice.choice(("plain", "plain", "angles", "dots"))
        near = f"{near[: near.index('nearest')]}nearestNeighbor({field}, q))"
        main = choice.choice(("userQuery() or {0}", "{0} or userQuery()", "rank({0}, userQuery())", "{0}"))
        main = choice.choice((*[main] * 8, "rank(userQuery(), {0})", "{0} and userQuery()")).format(near)
        whole = " and ".join([f"({main})" if where else main, *where])
        of_field = {"plain": "hybrid", "dots": "dotted", "angles": "angles"}[field]
        parameters |= {
            "yql": f"{parameters['yql'].split(' where ')[0]} where {whole}",
            "query": " ".join(choice.choices(WORDS, k=choice.randint(1, 4))),
            "type": choice.choice(("any", "any", "all", "weakAnd", "weakAnd", "phrase")),
            "default-index": choice.choice(("body", "body", "title")),
            "ranking": choice.choice((of_field, "both", "both", "hybrid", "twice", *GLOBAL)),
        }
        if choice.random() < 0.3:
            parameters = {key: str(value) for key, value in with_input(choice, {**parameters}).items()}
        form = choice.choice(("url", "array", "text"))
        warm = json.dumps(random_vector(choice, 2 if "(place," in parameters["yql"] else 4))
        shared.compare_requests(
            _request(
                choice, {**parameters, "query" if "query" in parameters else "words": "warm up"}, name, warm, form
            ),
            _request(choice, parameters, name, vector, form),
        )
    assert shared.answered - before > QUERIES // 40, "plans have answered too few queries to say anything"


def _near(field: str, vector: str, **others: str) -> Request:
    yql = f"select * from music where {{targetHits: 5}}nearestNeighbor({field}, q)"
    return Request("GET", "/search/", urlencode({"yql": yql, "ranking": field, "input.query(q)": vector} | others))


@pytest.mark.parametrize("field", INDEXED)
def test_exact_searches_are_run_by_plans(shared: Peers, field: str) -> None:
    """Where it is said, and where a filter leaves few documents."""
    kind = FIELDS[field][0]
    name = INPUTS[kind[kind.index("<") + 1 : kind.index(">")]]
    for notes, filters in (
        ("approximate: false", ""),
        ("approximate: false, distanceThreshold: 2.5", ""),
        ("approximate: false", " and year < 9"),
        ("hnsw.approximateThreshold: 0.9", " and year < 9"),
        ("hnsw.approximateThreshold: 0.9", " and year < 0"),
    ):
        near = f"{{targetHits: 5, {notes}}}nearestNeighbor({field}, {name})"
        asked = {"yql": f"select * from music where ({near}){filters}", "ranking": field, "timeout": "60s"}
        before = shared.answered
        for vector in ("[1,2,3,4]", "[4,3,2,1]", "[0,0,0,0]"):
            parameters = {**asked, "hits": "60", f"input.query({name})": vector}
            warm = Request("GET", "/search/", urlencode({**parameters, f"input.query({name})": "[1,1,1,1]"}))
            shared.compare_requests(warm, Request("GET", "/search/", urlencode(parameters)))
        assert shared.answered >= before + 3, notes


def test_strings_of_attributes_are_shown_by_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "attribute_hits", None)  # Python writes none of them
    names = ["", 'a"b\\', "\x00\x1f\x7f\n", "caf\u00e9", "\u65e5\u672c", "\U0001f41d", "a" * 3000, "\u00ff\uffff"]
    with peers(schema()) as found:
        choice = random.Random(3)
        for copy in range(3):  # with strings that are new in each view
            apply = found.compiled.apply
            apply(
                *(
                    put(f"{copy} {name}", name=name + name * copy, plain=vector_of("plain", random_vector(choice)))
                    for name in names
                )
            )
            asked = {"presentation.summary": "short", "hits": "400", "timeout": "60s"}
            before = found.answered
            body = found.compare_requests(_near("plain", "[1,1,1,1]", **asked), _near("plain", "[9,8,7,6]", **asked))
            assert found.answered == before + (2 if copy else 1), "all but the first"
            shown = {hit.get("fields", {}).get("name") for hit in orjson.loads(body)["root"]["children"]}
            assert shown <= {None, *[name + name * times for name in names for times in range(copy + 1)]}


def test_numbers_of_attributes_are_shown_by_plans(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"yql": "select * from music where {targetHits: 400}nearestNeighbor(plain, q)", "ranking": "plain"}
    asked |= {"presentation.summary": "numbers", "hits": "400", "timeout": "60s"}
    requests = [
        Request("GET", "/search/", urlencode(asked | {"input.query(q)": vector}))
        for vector in ("[1,1,1,1]", "[9,8,7,6]")
    ]
    shared.compare_requests(*requests)
    monkeypatch.setattr(runs, "attribute_hits", None)  # Python writes none of them
    before = shared.answered
    body = shared.compare_requests(*requests)
    assert shared.answered == before + 2
    for shown in (b'"a_float":"-Infinity"', b'"a_double":"Infinity"', b'"a_bool":false', b'"a_float16":65504.0'):
        assert shown in body


def test_vectors_that_are_fed_later_are_found() -> None:
    with peers(schema()) as found:
        found.compiled.apply(*(put(number, plain=vector_of("plain", [number, 0, 0, 0])) for number in range(20)))
        found.fill_rows()

        def first() -> str:
            body = found.compare_requests(_near("plain", "[9,9,9,9]"), _near("plain", "[7.2,0,0,0]"))
            return str(orjson.loads(body)["root"]["children"][0]["id"])

        assert first().endswith("::7")
        found.compiled.apply(put(30, plain=vector_of("plain", [7.2, 0, 0, 0])), remove(7))
        assert first().endswith("::30")
        found.compiled.apply(put(30, plain=vector_of("plain", [50, 0, 0, 0])))
        assert first().endswith("::8")
        assert found.answered >= 3


def test_all_graphs_are_searched_by_plans(shared: Peers) -> None:
    """But for those of places, and of several vectors a document."""
    for field in INDEXED:
        kind = FIELDS[field][0]
        name = INPUTS[kind[kind.index("<") + 1 : kind.index(">")]]
        yql = f"select * from music where {{targetHits: 5}}nearestNeighbor({field}, {name})"
        asked = {"yql": yql, "ranking": field, "timeout": "60s"}
        before = shared.answered
        for vector in ("[1, 2, 3, 4]", "[4,3,2,1]"):
            shared.compare_requests(
                Request("GET", "/search/", urlencode(asked | {f"input.query({name})": "[1,1,1,1]"})),
                Request("GET", "/search/", urlencode(asked | {f"input.query({name})": vector})),
            )
        assert shared.answered >= before + 2, field


@pytest.mark.parametrize("vector", ["[1e39, 0, 0, 0]", "[1e18, 1e18, 1, 1]", "[1, 2, 3]", "[1, 2, 3, 4, 5]", "[]"])
def test_vectors_that_cannot_be_near_have_the_general_answer(shared: Peers, vector: str) -> None:
    shared.compare_requests(_near("plain", "[1,1,1,1]"), _near("plain", vector, timeout="60s"))


def test_a_vector_whose_time_is_over_has_the_general_answer(shared: Peers) -> None:
    shared.compare_requests(_near("plain", "[1,1,1,1]", timeout="0s"), _near("plain", "[1,2,1,1]", timeout="0s"))


def test_long_vectors_are_cut_out_of_requests_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 3000
    schema = f"""
schema music {{
  document music {{
    field year type int {{ indexing: attribute }}
    field long type tensor<float>(x[{size}]) {{ indexing: attribute | index }}
  }}
  rank-profile long {{ inputs {{ query(q) tensor<float>(x[{size}]) }}
    first-phase {{ expression: closeness(field, long) }} }}
}}"""
    choice = random.Random(3)

    def vector() -> str:
        return json.dumps([choice.uniform(-1, 1) for _ in range(size)])

    with peers(schema) as found:
        type_ = TensorType.parse(f"tensor<float>(x[{size}])")
        found.compiled.apply(*(put(number, year=number, long=parse_tensor(vector(), type_)) for number in range(20)))
        yql = "select year from music where {targetHits: 5}nearestNeighbor(long, q)"
        asked = {"yql": yql, "ranking": "long", "timeout": "60s"}
        requests = [_request(choice, asked, "input.query(q)", vector(), "array") for _ in range(4)]
        assert all(limits.QUERY_INLINE_BYTES < len(request.body) < limits.QUERY_VECTOR_BYTES for request in requests)
        found.compare_requests(*requests[:2])
        before = found.answered
        found.compare_requests(*requests[2:])
        assert found.answered == before + 2
        monkeypatch.setattr(limits, "QUERY_VECTOR_BYTES", limits.QUERY_INLINE_BYTES)
        found.compare_requests(*requests[:2])
        assert found.answered == before + 2


@pytest.mark.parametrize("profile", GLOBAL)
def test_global_phases_of_bm25_and_closeness_are_run_by_plans(shared: Peers, profile: str) -> None:
    """Rows that are changed in place are written elsewhere, with the relevances of the global phase."""
    yql = "select * from music where ({label: 'here', targetHits: 30}nearestNeighbor(plain, q)) or userInput(@words)"
    asked = {"yql": yql, "ranking": profile, "hits": "40", "offset": "2", "timeout": "60s"}
    requests = [
        Request("GET", "/search/", urlencode({**asked, "words": words, "input.query(q)": vector}))
        for words, vector in (("cats", "[1,1,1,1]"), ("the of in", "[1,2,0,1]"), ("nothing", "[3,2,0,1]"))
    ]
    before = shared.answered
    for request in requests:
        shared.compare_requests(requests[0], request)
    assert (shared.answered > before + 2) == (profile != "years")


def test_the_language_of_a_text_beside_a_vector_is_detected(shared: Peers) -> None:
    asked = {"yql": "select * from music where userQuery() or ({targetHits: 3}nearestNeighbor(plain, q))"}
    asked |= {"ranking": "hybrid", "default-index": "body", "timeout": "60s", "input.query(q)": "[1,1,1,1]"}
    requests = [
        Request("GET", "/search/", urlencode({**asked, "query": words}))
        for words in ("cats", "der Hund und die cats laufen nicht", "les cats dans la running avec une blue")
    ]
    before = shared.answered
    for request in requests:
        shared.compare_requests(requests[0], request)
    assert shared.answered > before + 2
