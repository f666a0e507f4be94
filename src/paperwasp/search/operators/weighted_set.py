"""weightedSet: one of many values, of whose weights ranking sees those of the query.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#weightedset
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
from paperwasp.search.operators.term import first_weights
from paperwasp.search.operators.weighted_tokens import TokensItem, TokensOfField, read_tokens, tokens_matches


class WeightedSetMatch(WithoutPositions):
    """Tokens of which ranking sees the weights in place of the field's."""

    def __init__(self, tokens: TokensOfField) -> None:
        super().__init__(tokens)
        self._tokens = tokens

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        return self._tokens.query_weights(lids)

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        """The greatest of the query's weights of the tokens that a document has."""
        offsets, _ = self.elements(lids)
        weights = self._tokens.query_weights(lids)
        rows = np.repeat(np.arange(len(lids)), np.diff(offsets))
        return first_weights(offsets, weights[np.lexsort((-weights, rows))])


@dataclass(frozen=True, slots=True)
class WeightedSetItem(TokensItem):
    """One of many values, each with a weight that ranking sees in place of the field's."""

    def to_yql(self) -> str:
        return self.as_call("weightedSet")

    def plan(self, space: SearchSpace) -> Operator:
        matches = [WeightedSetMatch(tokens) for tokens in tokens_matches(self, space)]
        return TermOperator(space, matches, self.annotations)


@condition("weightedSet", Argument.NAME, Argument.LITERAL)
def read_weighted_set(parser: ArgumentReader, scope: Scope) -> Item:
    """`weightedSet(field, {"a": 1, "b": 2})`: any of the values."""
    return WeightedSetItem(parser.field_or_quoted(), read_tokens(parser), annotations=scope.of_term())
