"""Random rank profiles: features of all families over a schema with fields of all kinds, and expressions of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from paperwasp.errors import PaperwaspError
from paperwasp.ranking import CompiledProfile, Program, RankValue
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.features.compile import compile_profile
from paperwasp.search.features.family import Family, families

INDEXES = ("title", "body", "parts", "weighed")
NUMBERS = ("small", "big", "ratio")
TENSORS = ("dense", "mapped", "mixed")
SCHEMA = """schema s {
    document s {
        field title type string { indexing: index | summary
            index: enable-bm25 }
        field body type string { indexing: index
            stemming: none
            rank: normal }
        field parts type array<string> { indexing: index
            index: enable-bm25 }
        field weighed type weightedset<string> { indexing: index }
        field small type int { indexing: attribute }
        field big type long { indexing: attribute
            attribute: fast-search }
        field ratio type double { indexing: attribute }
        field live type bool { indexing: attribute }
        field name type string { indexing: attribute }
        field names type array<string> { indexing: attribute }
        field counts type array<int> { indexing: attribute }
        field tags type weightedset<string> { indexing: attribute }
        field place type position { indexing: attribute }
        field dense type tensor<float>(x[4]) { indexing: attribute
            attribute { distance-metric: euclidean } }
        field mapped type tensor(k{}) { indexing: attribute }
        field mixed type tensor<int8>(k{},x[4]) { indexing: attribute }
    }
    rank-profile base {
        inputs {
            query(q) tensor<float>(x[4])
            query(m) tensor(k{})
            query(n) double: 1.5
        }
        constants {
            c: 0.25
            w tensor(x[4]): [1, 2, 3, 4]
        }
        rank-properties {
            bm25(title).averageFieldLength: 4
            bm25(body).averageFieldLength: 10
            bm25(parts).averageFieldLength: 6
            bm25(weighed).averageFieldLength: 3
        }
        function helper() { expression: attribute(small) * 0.5 + query(n) }
        function dot() { expression: reduce(attribute(dense) * query(q), sum) }
    }
%s}
"""
INPUTS = {"q": "tensor<float>(x[4]):[1,0.5,-1,2]", "m": "tensor(k{}):{a:1,b:2}"}
ARGUMENTS = {
    "index": INDEXES,
    "single-index": ("title", "body"),
    "attribute": (*NUMBERS, *TENSORS, "live", "name", "names", "counts", "tags", "place"),
    "numeric-attribute": NUMBERS,
    "tensor-attribute": TENSORS,
    "position-attribute": ("place",),
    "field": (*INDEXES, *NUMBERS, "name", "names", "tags", "dense"),
    "any-field": (*INDEXES, *NUMBERS, "name", "names", "tags", "dense"),
    "number": ("0", "1", "2"),
    "name": ("label,near", "near", "title", "names", "tags", "n", "q", "place", "dense", "k", "1", "count", "v"),
    "expression": ("attribute(small)", "helper", "2"),
    "attribute-feature": ("attribute(small)", "attribute(names)"),
}
LEFT_OUT = frozenset(
    (
        *("globalSequence", "random", "randomNormal", "randomNormalStable"),  # hang on a document's number, or chance
        "firstPhaseRank",  # equal scores are in the order of these numbers
        *("firstPhaseMax", "averageFieldLength", "num_docs_indexed"),  # not known in streaming search
        *("xgboost", "lightgbm", "debugWait", "debugAttributeWait"),  # have files, or only wait
    )
)
FIXED = (
    *("closeness(field,dense)", "closeness(label,near)", "distance(label,near)", "distance(place)", "rawScore(dense)"),
    *("itemRawScore(near)", "dotProduct(tags,v)", "fieldMatch(title)", "fieldMatch(body).proximity", "nativeRank"),
    *("attribute(tags,a).weight", "attribute(names).count", "tensorFromLabels(attribute(names),k)", "bm25(parts)"),
    *("foreach(terms,N,fieldTermMatch(title,N).occurrences,true,sum)", "foreach(fields,F,matches(F),true,sum)"),
    *(
        "firstPhase",
        "secondPhase",
        "helper",
        "dot",
        "value(3)",
        "now",
        "freshness(big).logscale",
    ),
)
NUMERIC = ("%s + %s", "%s * %s", "max(%s, %s)", "if (%s > %s, 1, 2)", "%s - c * %s", "if (%s in [0, 1, 2], 3, %s)")
TENSOR = (
    "reduce(attribute(mapped) * query(m), sum)",
    "reduce(attribute(mixed) * query(q), max)",
    "reduce(map(attribute(dense), f(v)(v * v)), sum) * constant(w){x:2}",
    "reduce(merge(attribute(mapped), query(m), f(a,b)(a + b)), prod)",
    "reduce(attribute(dense) * attribute(mixed), sum, x){k:a}",
    "sum(concat(attribute(dense), query(q), x))",
    "reduce(tensor(x[4])(x * attribute(small)) + attribute(dense), max)",
    "attribute(dense){x:1} + reduce(l2_normalize(query(q), x), sum)",
    "sum(argmax(attribute(dense), x)) + sum(filter_subspaces(attribute(mapped), f(t)(t > 1)))",
)


def features(draw: random.Random, count: int) -> tuple[list[str], list[str]]:
    """Names of features that the schema allows, of families in turn and some fixed ones: all, and those of numbers."""
    executed = [family for name, family in sorted(families().items()) if name not in LEFT_OUT]
    wanted = [feature_of(draw, draw.choice(executed)) for _ in range(count)] + list(FIXED)
    found = [(name, kind) for name in dict.fromkeys(wanted) if (kind := compiled(name)) is not None]
    return [name for name, _ in found], [name for name, kind in found if isinstance(kind, Program)]


def feature_of(draw: random.Random, family: Family) -> str:
    kinds = list(family.parameters)
    if family.optional:
        kinds = kinds[: len(kinds) - draw.randint(0, family.optional)]
    if family.repeated:
        kinds = kinds[:-1] + kinds[-1:] * draw.randint(0, 2)
    arguments = f"({','.join(draw.choice(ARGUMENTS[kind]) for kind in kinds)})" if kinds else ""
    output = draw.choice(family.outputs)
    return f"{family.name}{arguments}" + (f".{output}" if output and draw.random() < 0.7 else "")


def compiled(name: str) -> RankValue | None:
    """What computes a feature; None where a profile may not ask for it, or it is not executed."""
    try:
        schema = schema_with([f"rank-profile p inherits base {{ match-features {{ {name} }} }}"])
        profile = compile_profile(schema, schema.rank_profiles["p"])
    except (PaperwaspError, KeyError):
        return None
    if not isinstance(profile, CompiledProfile):
        return None
    [value] = profile.match_features.values()
    return value


def schema_with(profiles: Sequence[str]) -> Schema:
    found = parse_schemas({"schemas/s.sd": SCHEMA % "".join(f"    {profile}\n" for profile in profiles)})
    return found.schemas["s"]


def number(draw: random.Random, names: Sequence[str], depth: int = 2) -> str:
    """An expression that is a number. `names`: of features that are numbers."""
    if depth == 0 or draw.random() < 0.3:
        return draw.choice([*names, *TENSOR]) if draw.random() < 0.9 else f"{draw.uniform(-2, 2):.2f}"
    return "(" + draw.choice(NUMERIC) % (number(draw, names, depth - 1), number(draw, names, depth - 1)) + ")"


def profile(draw: random.Random, name: str, names: Sequence[str], numbers: Sequence[str]) -> str:
    """A rank profile with some of the features in each of its places."""
    inner = [each for each in numbers if not each.startswith(("firstPhase", "secondPhase", "relevanceScore"))]
    lines = [f"first-phase {{ expression {{ {number(draw, inner)} }} }}"]
    if draw.random() < 0.5:
        lines.append(f"second-phase {{ rerank-count: 100\nexpression {{ {number(draw, [*inner, 'firstPhase'])} }} }}")
    lines.append(f"match-features {{ {' '.join(draw.sample(names, min(8, len(names))))} }}")
    if draw.random() < 0.3:
        lines.append(f"rank {draw.choice(INDEXES)} {{ filter }}")
    if draw.random() < 0.3:
        lines.append(f"weight {draw.choice(INDEXES)}: {draw.randint(1, 300)}")
    if draw.random() < 0.3:
        lines.append(f"rank-type {draw.choice(INDEXES)}: {draw.choice(('about', 'tags', 'empty', 'identity'))}")
    return f"rank-profile {name} inherits base {{\n" + "\n".join(lines) + "\n}"


WORDS = ("alpha", "beta", "gamma", "delta", "blue", "red")


def text(draw: random.Random, most: int = 8) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def document(draw: random.Random) -> dict[str, object]:
    """The fields of a document; some are left out."""
    fields: dict[str, object] = {
        "title": text(draw),
        "body": text(draw, 30),
        "parts": [text(draw, 5) for _ in range(draw.randint(0, 4))],
        "weighed": {text(draw, 3): draw.randint(-5, 50) for _ in range(draw.randint(0, 3))},
        "small": draw.randint(-3, 10),
        "big": draw.randint(0, 10**10),
        "ratio": draw.uniform(-5, 5),
        "live": draw.random() < 0.5,
        "name": draw.choice(WORDS),
        "names": [draw.choice(WORDS) for _ in range(draw.randint(0, 4))],
        "counts": [draw.randint(0, 9) for _ in range(draw.randint(0, 4))],
        "tags": {draw.choice("abcd"): draw.randint(-5, 50) for _ in range(draw.randint(0, 4))},
        "place": {"lat": draw.uniform(-80, 80), "lng": draw.uniform(-170, 170)},
        "dense": [draw.uniform(-2, 2) for _ in range(4)],
        "mapped": {"cells": {draw.choice("abcd"): draw.uniform(-2, 2) for _ in range(draw.randint(0, 3))}},
        "mixed": {"blocks": {draw.choice("abcd"): [draw.randint(-9, 9) for _ in range(4)] for _ in range(2)}},
    }
    return {name: value for name, value in fields.items() if draw.random() < 0.85}


def query(draw: random.Random) -> str:
    """A YQL condition: parts that match text, attributes, places and vectors, in one of the ways to join them."""
    parts = [_part(draw) for _ in range(draw.randint(1, 4))]
    join = draw.choice((" and ", " or ", "rank", "weakAnd"))
    if join in ("rank", "weakAnd"):
        return parts[0] if len(parts) == 1 else f"{join}({', '.join(parts)})"
    return join.join(parts)


def _part(draw: random.Random) -> str:
    one, other = draw.choice(WORDS), draw.choice(WORDS)
    index = draw.choice(INDEXES)
    weight = draw.choice(("", "", f"{{weight: {draw.randint(1, 200)}}}", "{significance: 0.3}"))
    return draw.choice(
        (
            f"{index} contains ({weight}'{one}')",
            f"title contains '{one}'",
            f"body contains phrase('{one}', '{other}')",
            f"body contains near('{one}', '{other}')",
            f"title contains equiv('{one}', '{other}')",
            f"small < {draw.randint(-2, 9)}",
            f"name contains '{one}'",
            f"names contains ({weight}'{one}')",
            f"tags contains '{draw.choice('abcd')}'",
            "dotProduct(tags, {'a': 2, 'b': 3})",
            "({targetHits: 100}wand(tags, {'a': 2, 'c': 3}))",
            "weightedSet(names, {'alpha': 1, 'red': 5})",
            "({targetHits: 7, label: 'near'}nearestNeighbor(dense, q))",
            f"({{label: 'near'}}geoLocation(place, {draw.uniform(-60, 60):.3f}, 10.5, '5000 km'))",
            f"({{label: 'near'}}title contains '{one}')",
            "true",
        )
    )
