"""`rank`, `weakAnd`, `labeled` and `nonEmpty`: operators over conditions."""

from __future__ import annotations

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item, LabeledItem, RankItem, WeakAndItem
from paperwasp.operators.registry import condition
from paperwasp.query.scope import Scope
from paperwasp.yql.user_items import NonEmptyItem


@condition("rank")
def rank(parser: ArgumentReader, scope: Scope) -> Item:
    """`rank(a, b, …)`: what `a` matches; the others only add to ranking."""
    return RankItem(parser.arguments(scope))


@condition("weakAnd")
def weak_and(parser: ArgumentReader, scope: Scope) -> Item:
    """`weakAnd(a, b, …)`: the best `targetHits` of what any of them matches."""
    return WeakAndItem(parser.arguments(scope), scope.target_hits())


@condition("labeled")
def labeled(parser: ArgumentReader, scope: Scope) -> Item:
    """`labeled(a, "label", 0.5)`: what `a` matches; ranking sees the number as the raw score of the label."""
    tokens = parser.tokens
    item = parser.expression(scope.below())
    tokens.expect(",")
    label = parser.text("a label")
    tokens.expect(",")
    start = tokens.current
    score = parser.value()
    if isinstance(score, bool) or not isinstance(score, int | float):
        tokens.fail(f"expected a number as the score of the label, found {score!r}", start)
    return LabeledItem((item,), label, float(score))


@condition("nonEmpty")
def non_empty(parser: ArgumentReader, scope: Scope) -> Item:
    """`nonEmpty(a)`: `a`, and an error if a term in it is empty."""
    start = parser.tokens.current
    return NonEmptyItem((parser.expression(scope),), parser.tokens.position(start))
