"""`weightedSet`, `dotProduct` and `wand`: a set of weighted values."""

from __future__ import annotations

from typing import Any

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import DotProductItem, Item, WandItem, WeightedSetItem
from paperwasp.operators.registry import condition
from paperwasp.query.parameter_lists import Tokens, highest, weighted_tokens
from paperwasp.query.scope import Scope


@condition("weightedSet")
def weighted_set(parser: ArgumentReader, scope: Scope) -> Item:
    """`weightedSet(field, {"a": 1, "b": 2})`: any of the values."""
    return WeightedSetItem(parser.field_or_quoted(), _tokens(parser), annotations=scope.of_term())


@condition("dotProduct")
def dot_product(parser: ArgumentReader, scope: Scope) -> Item:
    """`dotProduct(field, {"a": 1, "b": 2})`: any of the values; the raw score is the dot product."""
    return DotProductItem(parser.field_or_quoted(), _tokens(parser), annotations=scope.of_term())


@condition("wand")
def wand(parser: ArgumentReader, scope: Scope) -> Item:
    """`wand(field, {"a": 1, "b": 2})`: the best by their dot product."""
    boost = scope.get("thresholdBoostFactor", float)
    return WandItem(
        parser.field_or_quoted(),
        _tokens(parser),
        scope.target_hits(),
        float(scope.get("scoreThreshold", float) or 0.0),
        1.0 if boost is None else float(boost),
        annotations=scope.of_term(),
    )


def _tokens(parser: ArgumentReader) -> Tokens:
    """`, {"a": 1}`, `, [[11, 1], [37, 2]]` or `, @parameter`."""
    tokens = parser.tokens
    tokens.expect(",")
    start = tokens.current
    try:
        if start.text == "@":
            return weighted_tokens(parser.parameter())
        return highest(_pairs(parser.value()))
    except ValueError as error:
        tokens.fail(str(error), start)


def _pairs(value: Any) -> list[tuple[str | int, int]]:
    if isinstance(value, dict):
        pairs: list[Any] = [*value.items()]
    elif isinstance(value, list):
        pairs = value
        if not all(isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int for pair in pairs):
            raise ValueError("expected a list of [integer, weight] pairs")
    else:
        raise ValueError("expected a map of values and their weights, a list of pairs, or a parameter")
    if not all(type(weight) is int for _, weight in pairs):
        raise ValueError("the weight of a value must be an integer")
    return [(key, weight) for key, weight in pairs]
