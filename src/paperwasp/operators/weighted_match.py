"""Weighted tokens of a query in one field: what weightedSet, dotProduct and wand match, and what they score.

Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute import ColumnView
from paperwasp.errors import InvalidQuery
from paperwasp.operators.base import SearchSpace
from paperwasp.operators.composed import TokensMatch, WithoutPositions, element_keys
from paperwasp.operators.field_match import Lids
from paperwasp.operators.in_operator import token_of
from paperwasp.operators.items import TermItem
from paperwasp.operators.term import AttributeMatch, first_weights
from paperwasp.operators.word import fields_of
from paperwasp.schema.model import Field

TokenWeights = Sequence[tuple[str | int, int]]


class TokensInAttribute(AttributeMatch):
    """Tokens as values of an attribute. A value that is not in a weighted set weighs 1."""

    def __init__(self, space: SearchSpace, field: str, column: ColumnView, tokens: TokenWeights) -> None:
        self.tokens = column.tokens(tokens)
        super().__init__(space, field, column, self.tokens.wanted)

    def products(self, lids: Lids) -> NDArray[np.float64]:
        """For each document the sum of products of weights."""
        return self.column.products(lids, self.tokens)

    def query_weights(self, lids: Lids) -> NDArray[np.int32]:
        """The weight of the token that each of the elements is."""
        return self.tokens.weights_of(self.column.elements(lids, self.wanted).values).astype(np.int32)


class TokensInIndex(TokensMatch):
    """Tokens as words of an indexed field. Without elements, where each token is found counts 1."""

    def __init__(self, space: SearchSpace, field: Field, tokens: TokenWeights) -> None:
        found = [(token_of(value, field, space), weight) for value, weight in tokens]
        super().__init__(space, field.name, [match for match, _ in found if match is not None])
        self._weights = [weight for match, weight in found if match is not None]

    def products(self, lids: Lids) -> NDArray[np.float64]:
        """For each document the sum of products of weights."""
        sums = np.zeros(len(lids))
        for match, weight in zip(self.matches, self._weights, strict=True):
            offsets, _ = match.elements(lids)
            total = np.concatenate([[0], np.cumsum(match.element_weights(lids), dtype=np.int64)])
            sums += weight * (total[offsets[1:]] - total[offsets[:-1]])
        return sums

    def query_weights(self, lids: Lids) -> NDArray[np.int32]:
        """The weight of a token that each of the elements is."""
        offsets, elements = self.elements(lids)
        keys = element_keys(offsets, elements)
        weights = np.zeros(len(elements), np.int32)
        for match, weight in zip(self.matches, self._weights, strict=True):
            weights[np.searchsorted(keys, element_keys(*match.elements(lids)))] = weight
        return weights


TokensOfField = TokensInAttribute | TokensInIndex


def tokens_matches(item: TermItem, tokens: TokenWeights, space: SearchSpace) -> list[TokensOfField]:
    """The tokens in each of the fields that the item searches. Raises InvalidQuery for a field that has no values."""
    matches: list[TokensOfField] = []
    for field in fields_of(item.index, space):
        if space.has_index(field):
            matches.append(TokensInIndex(space, field, tokens))
        elif (column := space.column(field)) is not None:
            matches.append(TokensInAttribute(space, field.name, column, tokens))
        else:
            raise InvalidQuery(f"Field '{field.name}' is neither an attribute nor indexed, and is not searched")
    return matches


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


class DotProductMatch(WithoutPositions):
    """Tokens whose raw score is the sum of products of weights."""

    def __init__(self, tokens: TokensOfField) -> None:
        super().__init__(tokens)
        self._tokens = tokens

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._tokens.products(lids)
