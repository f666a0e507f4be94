"""Random columns, requests over them, and hits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from paperwasp.search.grouping.execution import Hits
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level, OrderKey
from paperwasp.search.grouping.values import Kind
from tests.search.grouping.columns import attribute

TEXTS = ["", "a", "b", "Ab", "ab", "é", "z", "日本", "zz"]
KINDS = {
    "long": Kind.LONG,
    "double": Kind.DOUBLE,
    "text": Kind.STRING,
    "flag": Kind.BOOL,
    "longs": Kind.LONG,
    "texts": Kind.STRING,
    "rare": Kind.LONG,
}


def columns_of(chance: random.Random, count: int) -> dict[str, tuple[Kind, list[Any]]]:
    made: dict[str, list[Any]] = {
        "long": [chance.randrange(-4, 5) for _ in range(count)],
        "double": [chance.choice([-1.5, 0.0, 0.25, 8.0, 1e6]) for _ in range(count)],
        "text": [chance.choice(TEXTS) for _ in range(count)],
        "flag": [chance.random() < 0.5 for _ in range(count)],
        "longs": [[chance.randrange(3) for _ in range(chance.randrange(4))] for _ in range(count)],
        "texts": [[chance.choice(TEXTS) for _ in range(chance.randrange(3))] for _ in range(count)],
        "rare": [chance.choice([-(1 << 63), (1 << 63) - 1, 0, 7]) for _ in range(count)],
    }
    return {name: (KINDS[name], column) for name, column in made.items()}


def aggregates_of(chance: random.Random) -> list[Expression]:
    single = ["long", "double", "text", "flag"]
    makers = [
        lambda: Expression("count"),
        lambda: Expression("sum", (attribute(chance.choice(["long", "double", "flag", "longs", "rare"])),)),
        lambda: Expression("avg", (attribute(chance.choice(["long", "double", "flag", "longs"])),)),
        lambda: Expression("min", (attribute(chance.choice([single[0], "double", "text"])),)),
        lambda: Expression("max", (attribute(chance.choice([single[0], "double", "text"])),)),
        lambda: Expression("summary", ("",)),
        lambda: Expression("stddev", (attribute(chance.choice(["long", "double", "longs"])),)),
        lambda: Expression("xor", (attribute(chance.choice(["long", "flag", "longs", "rare"])),)),
        lambda: Expression("quantiles", (attribute(chance.choice(["long", "double", "longs"])), 0.0, 0.5, 0.75, 1.0)),
        lambda: Expression("count_groups", (attribute(chance.choice([*single, "rare"])),)),
        lambda: Expression("first", (attribute(chance.choice([*single, "longs", "texts"])),)),
        lambda: Expression(
            "argmin", (attribute(chance.choice(["long", "double", "longs"])), attribute(chance.choice(sorted(KINDS))))
        ),
    ]
    return [chance.choice(makers)() for _ in range(chance.randrange(3))]


def aggregations_of(chance: random.Random) -> tuple[Aggregation, ...]:
    return tuple(
        Aggregation(tag, each, chance.choice([None, 1, 3]) if each.function == "summary" else None)
        for tag, each in enumerate(aggregates_of(chance))
    )


def order_of(chance: random.Random) -> tuple[OrderKey, ...]:
    choices = [
        Expression("count"),
        Expression("sum", (attribute("long"),)),
        Expression("max", (attribute("double"),)),
        Expression("avg", (attribute("long"),)),
        Expression("neg", (Expression("count"),)),
        Expression("xor", (attribute("long"),)),
        Expression("count_groups", (attribute("double"),)),
        Expression("first", (attribute("long"),)),
        Expression("argmin", (attribute("double"), attribute("long"))),
        Expression("add", (Expression("count"), Expression("sum", (attribute("long"),)))),
    ]
    return tuple(OrderKey(each, chance.random() < 0.5) for each in chance.sample(choices, chance.randrange(3)))


def request_of(chance: random.Random) -> GroupingRequest:
    levels = tuple(
        Level(
            tag,
            attribute(chance.choice(sorted(KINDS))),
            max_groups=(most := chance.choice([None, 1, 3])),
            precision=None if most is None else chance.choice([None, most, most + 2]),
            order=order_of(chance),
            aggregations=aggregations_of(chance),
        )
        for tag in range(chance.randrange(4))
    )
    return GroupingRequest(0, 0, aggregations_of(chance), levels=levels, top_n=chance.choice([None, None, 0, 4, 50]))


def hits_of(chance: random.Random, count: int) -> tuple[Hits, list[int] | None]:
    lids = sorted(chance.sample(range(count), chance.randrange(count + 1)))
    relevances = [chance.choice([0.0, 0.5, 0.5, 1.0, float("-inf")]) for _ in lids]
    places = None
    if chance.random() < 0.3:
        places = list(range(len(lids)))
        chance.shuffle(places)
    numbers = None if places is None else np.array(places, np.int64)
    return Hits(np.array(lids, np.uint32), np.array(relevances), numbers), places
