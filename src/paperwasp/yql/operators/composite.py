"""`rank`, `weakAnd` and `nonEmpty`: operators over conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paperwasp.query.items import Item, PhraseItem, RankItem, WeakAndItem, WordItem
from paperwasp.yql.annotations import Scope
from paperwasp.yql.operators.registry import condition

if TYPE_CHECKING:
    from paperwasp.yql.conditions import ConditionParser


@condition("rank")
def rank(parser: ConditionParser, scope: Scope) -> Item:
    """`rank(a, b, …)`: what `a` matches; the others only add to ranking."""
    return RankItem(parser.arguments(scope))


@condition("weakAnd")
def weak_and(parser: ConditionParser, scope: Scope) -> Item:
    """`weakAnd(a, b, …)`: the best `targetHits` of what any of them matches."""
    return WeakAndItem(parser.arguments(scope), scope.target_hits())


@condition("nonEmpty")
def non_empty(parser: ConditionParser, scope: Scope) -> Item:
    """`nonEmpty(a)`: `a`, and an error if a term in it is empty."""
    start = parser.tokens.current
    item = parser.expression(scope)
    for part in item.walk():
        if (isinstance(part, WordItem) and not part.word) or (isinstance(part, PhraseItem) and not part.words):
            parser.tokens.fail("searching for an empty string inside nonEmpty()", start)
    return item
