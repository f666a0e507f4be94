"""dotProduct: one of many values; the raw score is the sum of the products of weights of query and document.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#dotproduct
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.composed import WithoutPositions
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.registry import Argument, condition
from paperwasp.search.operators.weighted_tokens import TokensItem, TokensOfField, read_tokens, tokens_matches


class DotProductMatch(WithoutPositions):
    """Tokens whose raw score is the sum of products of weights."""

    def __init__(self, tokens: TokensOfField) -> None:
        super().__init__(tokens)
        self._tokens = tokens

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._tokens.products(lids)


@dataclass(frozen=True, slots=True)
class DotProductItem(TokensItem):
    """As WeightedSetItem; the raw score is the sum of the products of the weights of query and field."""

    def to_yql(self) -> str:
        return self.as_call("dotProduct")

    def plan(self, space: SearchSpace) -> Operator:
        matches = [DotProductMatch(tokens) for tokens in tokens_matches(self, space)]
        return TermOperator(space, matches, self.annotations)


@condition("dotProduct", Argument.NAME, Argument.LITERAL)
def read_dot_product(parser: ArgumentReader, scope: Scope) -> Item:
    """`dotProduct(field, {"a": 1, "b": 2})`: any of the values; the raw score is the dot product."""
    return DotProductItem(parser.field_or_quoted(), read_tokens(parser), annotations=scope.of_term())
