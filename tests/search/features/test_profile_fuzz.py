"""Expressions at random, in rank profiles of a real schema: only clean errors, in bounded time.

PAPERWASP_FUZZ sets how many, PAPERWASP_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from paperwasp.base.records import replace
from paperwasp.errors import PaperwaspError
from paperwasp.ranking import CompiledProfile, ProfileError, Unexecuted, parse_expression
from paperwasp.ranking.declarations import Declarations
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Function, RankProfile, Schema
from paperwasp.search.features import compile_profile
from tests.chance import SEED

INPUTS = int(os.environ.get("PAPERWASP_FUZZ", "1500"))
SLOWEST_SECONDS = 20
SCRIPTS = Path(__file__).parents[2] / "ranking" / "scripts"

SCHEMA = """schema s {
    document s {
        field title type string { indexing: index | summary
            index: enable-bm25 }
        field year type int { indexing: attribute }
        field tags type array<string> { indexing: attribute }
        field weights type weightedset<string> { indexing: attribute }
        field dense type tensor<float>(x[3]) { indexing: attribute }
        field mixed type tensor<int8>(k{},x[8]) { indexing: attribute }
    }
    rank-profile p {
        inputs {
            query(q) tensor<float>(x[3])
            query(n) double: 2
        }
        constants {
            sparse tensor(key{}):{a:1,b:2}
            half: 0.5
        }
        function twice(t) { expression: t * 2 }
        function dot(a, b) { expression: sum(a * b) }
        function score(field) { expression: bm25(field) + half }
        function loop(t) { expression: loop(t) }
        function doubled(a, b) { expression: foreach(a, b) + doubled2(twice(a), dot(a, b)) }
        function doubled2(a, b) { expression: a + b }
    }
}
"""
TEXT = """
attribute(dense) attribute(mixed) attribute(year) attribute(weights) attribute(tags) bm25(title) query(q) query(n)
sparse half twice( dot( score( loop( doubled( reduce( join( map( f(x)( f(x,y)( tensor(x[3])( tensor(x{}):{
tensor<int8>(x[2]):[ { } [ ] ( ) , : . + - * / % ^ == != ~= < <= > >= && || ! in if( switch( case default sum avg max(
min( rename( concat( merge( unpack_bits( top( expand( softmax( matmul( map_subspaces( filter_subspaces( cell_cast(
cell_order( closeness(field, distance( closest(dense) fieldMatch(title) nativeRank firstPhase now elementwise(
tensorFromLabels( foreach(terms,N,term(N).weight,true,sum) onnx(m).out xgboost("f.json") rankingExpression( constant(
normalize_linear( tokenInputIds(8, float int8 x y k a 0 1 2.5 1e9 1e999 999999999999 "a" 'b' true $q range(x[3]) # é ?
~ @x
"""
WORDS = [*TEXT.split(), "\n"]
SEEDS = [
    line
    for script in ("types", "printed", "errors", "values")
    for line in (SCRIPTS / f"{script}.txt").read_text().splitlines()
    if line not in ("", "---", "====")
]


def expression(chance: random.Random) -> str:
    """Words in a row, or a line of a script with some of it changed."""
    if chance.random() < 0.5:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 14)))
    text = chance.choice(SEEDS)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randrange(6))
        between = chance.choice([chance.choice(WORDS), "", text[at:end] * 2, chance.choice(SEEDS)[:20]])
        text = text[:at] + between + text[end:]
    return text


def check(profile: RankProfile, schema: Schema, declarations: Declarations) -> str:
    try:
        compiled = compile_profile(schema, profile, declarations)
    except ProfileError as error:
        assert all(problem.position is not None for problem in error.problems)
        return "wrong"
    if isinstance(compiled, Unexecuted):
        assert compiled.reasons
        return "unexecuted"
    assert isinstance(compiled, CompiledProfile)
    return "compiled"


def test_any_expression_is_compiled_or_refused() -> None:
    chance = random.Random(SEED)
    schema = parse_schemas({"schemas/s.sd": SCHEMA}).schemas["s"]
    profile = schema.rank_profiles["p"]
    functions = {name: f for name, f in profile.functions.items() if name not in ("loop", "doubled")}
    declarations = Declarations({})
    outcomes: dict[str, int] = {}
    for _ in range(INPUTS):
        text = expression(chance)
        started = time.monotonic()
        chosen = (
            {**functions, "g": Function("g", ("x", "y"), expression(chance))} if chance.random() < 0.2 else functions
        )
        outcome = check(replace(profile, first_phase=text, functions=chosen), schema, declarations)
        took = time.monotonic() - started
        assert took < SLOWEST_SECONDS, f"seed {SEED}: {took} s for {text!r}"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        try:
            tree = parse_expression(text)
        except PaperwaspError:
            continue
        assert parse_expression(str(tree)) == tree, f"seed {SEED}: {text!r}"
    assert {"wrong", "compiled"} <= outcomes.keys(), f"seed {SEED}: {outcomes}"
