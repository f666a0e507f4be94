"""The best by dot products as their kernel finds them, by one thread and by several: the hits and scores of scoring
all, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from unittest.mock import patch

import pytest

from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put, Remove
from paperwasp.document.tensor import products
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.phases import scored_blocks
from paperwasp.search.query import Query
from paperwasp.search.query_resources import Helpers
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.phases.test_scored_blocks import Pool, shown
from tests.search.queries import query_of

INPUTS = "inputs { query(q) tensor<float>(x[5]) query(d) tensor<double>(x[2],y[3]) query(n) double }"
SCHEMA = f"""
schema s {{
  document s {{
    field number type int {{ indexing: attribute }}
    field v type tensor<float>(x[5]) {{ indexing: attribute }}
    field w type tensor<double>(x[2],y[3]) {{ indexing: attribute }}
    field b type tensor<bfloat16>(x[5]) {{ indexing: attribute }}
  }}
  rank-profile floats {{ {INPUTS} first-phase {{ expression: sum(query(q) * attribute(v)) }}
    match-features: firstPhase attribute(number) }}
  rank-profile doubles {{ {INPUTS} first-phase {{ expression: reduce(attribute(w) * query(d), sum, x, y) }} }}
  rank-profile scaled {{ {INPUTS} first-phase {{ expression: sum((query(q) / (query(n) + 1)) * attribute(v)) }} }}
  rank-profile second inherits floats {{ second-phase {{
    expression: firstPhase + attribute(number)
    rerank-count: 30 }} }}
  rank-profile dropping {{ {INPUTS} first-phase {{ expression: sum(query(q) * attribute(v))
    rank-score-drop-limit: 0.5 }} }}
  rank-profile halves {{ {INPUTS} first-phase {{ expression: sum(query(q) * attribute(b)) }} }}
}}
"""
KERNEL, GENERAL = ("floats", "doubles", "scaled", "second"), ("dropping", "halves")
DOCUMENTS = 1500


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    chance = random.Random(SEED)
    schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
    with closing(start(tmp_path_factory.mktemp("node"), None)) as node:
        node.node.configure(1, schemas, {}, 0)
        puts = []
        for number in range(DOCUMENTS):
            # Many have the same score, and some have none that is a number.
            sizes = {"v": 5, "w": 6, "b": 5}
            cells = {name: {"values": _cells(chance, size)} for name, size in sizes.items() if chance.random() < 0.9}
            name = DocumentId.parse(f"id:n:s::{number}")
            puts.append(Put(name, read_fields(schemas["s"].document, {"number": number % 40, **cells})))
        node.apply(*puts[:900])
        node.apply(*puts[900:])
        node.apply(*(Remove(put.id) for put in chance.sample(puts, 100)))
        node.apply(*(Put(put.id, put.fields) for put in chance.sample(puts, 100)))
        yield node


def _cells(chance: random.Random, size: int) -> list[float]:
    if chance.random() < 0.02:
        return [3e38] * size
    return [chance.choice((-1.0, 0.0, 0.1, 0.5, chance.gauss(0, 1))) for _ in range(size)]


def asked(chance: random.Random, profile: str, hits: int) -> Query:
    where = chance.choice(("true", f"number < {chance.randrange(45)}", "number > 3 and number < 30", "number = 7"))
    inputs: dict[str, Any] = {
        "q": parse_tensor(f"tensor<float>(x[5]):{_cells(chance, 5)}"),
        "d": parse_tensor(f"tensor<double>(x[2],y[3]):{[_cells(chance, 3) for _ in range(2)]}"),
        "n": 0.5,
    }
    if chance.random() < 0.1:
        del inputs[chance.choice("qdn")]
    tree = parse_yql(f"select * from s where {where}").tree
    return query_of(tree, ("s",), profile, hits=hits, inputs=inputs)


@pytest.mark.parametrize("profile", KERNEL + GENERAL)
def test_hits_are_those_of_scoring_all_whoever_helps(
    node: TestNode, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_blocks, "THREAD_NS", 1)
    chance, pool = random.Random(f"{SEED} {profile}"), Pool()
    for _ in range(30):
        request = asked(chance, profile, chance.choice((1, 7, 40, DOCUMENTS)))
        view = node.node.reader.view()
        one = shown(search(view, request, ServedSchemas()))
        several = shown(search(view, request, ServedSchemas(Helpers(pool))))
        with patch.object(products, "best_dots", return_value=None):
            whole = shown(search(view, request, ServedSchemas()))
        assert one == whole == several, f"PAPERWASP_SEED={SEED}, {request}"
    assert pool.offered > 20


@pytest.mark.parametrize("profile", KERNEL)
def test_the_best_are_found_by_the_kernel(node: TestNode, profile: str) -> None:
    """So that the test above compares two things."""
    request = asked(random.Random(SEED), profile, 3)
    with (
        patch.object(_core, "best_dots", wraps=_core.best_dots) as best,
        patch.object(_core, "dots_at", wraps=_core.dots_at) as scores,
    ):
        search(node.node.reader.view(), request, ServedSchemas())
    assert best.call_count == 1
    assert sum(len(call.args[2]) for call in scores.call_args_list) < DOCUMENTS / 2


@pytest.mark.parametrize("profile", GENERAL)
def test_others_are_scored(node: TestNode, profile: str) -> None:
    with patch.object(_core, "best_dots") as best:
        search(node.node.reader.view(), asked(random.Random(SEED), profile, 3), ServedSchemas())
    assert not best.called


def test_what_parts_had_no_time_for_is_not_searched(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_blocks, "THREAD_NS", 1)
    tree = parse_yql("select * from s where true").tree
    request = query_of(tree, ("s",), "floats", hits=3)
    best, late = _core.best_dots, list[int]()

    def second_is_late(*given: Any) -> Any:
        late.append(given[-1])
        if len(late) == 2:
            raise OutOfTime
        return best(*given)

    with patch.object(_core, "best_dots", second_is_late):
        found = search(node.node.reader.view(), request, ServedSchemas(Helpers(Pool())))
    assert len(late) > 2
    assert found.degraded == {"timeout"}
    assert 0 < found.coverage < 1
    with patch.object(_core, "best_dots", side_effect=OutOfTime):
        none = search(node.node.reader.view(), request, ServedSchemas(Helpers(Pool())))
    assert (none.coverage, none.hits) == (0, ())
