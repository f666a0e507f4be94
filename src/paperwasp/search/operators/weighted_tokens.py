"""The base of weightedSet, dotProduct and wand: weighted tokens of a query, and what they match and score in a field.

Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.language.parameter_lists import Tokens, highest, weighted_tokens
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.composed import TokensMatch, element_keys
from paperwasp.search.operators.constants import FalseItem
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.operators.in_operator import token_of
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.printing import annotated, call, keys
from paperwasp.search.operators.term import AttributeMatch
from paperwasp.search.operators.word import fields_of
from paperwasp.storage.attributes import ColumnView

TokenWeights = Sequence[tuple[str | int, int]]


@dataclass(frozen=True, slots=True)
class TokensItem(TermItem):
    """One of many values, each with a weight: (value, weight)."""

    is_canonical = False
    is_seen_by_rules = False

    tokens: tuple[tuple[str | int, int], ...]

    def canonical(self) -> Item:
        return self if self.tokens else FalseItem()

    def as_call(self, name: str, extra: Mapping[str, Any] | None = None) -> str:
        """The condition as YQL."""
        if self.tokens and all(isinstance(key, int) for key, _ in self.tokens):
            tokens = f"[{', '.join(f'[{key}, {weight}]' for key, weight in self.tokens)}]"
        else:
            tokens = keys(self.tokens)
        return annotated(call(name, (self.index, tokens)), self.annotations, extra)


def read_tokens(parser: ArgumentReader) -> Tokens:
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


def tokens_matches(item: TokensItem, space: SearchSpace) -> list[TokensOfField]:
    """The tokens in each of the fields that the item searches. Raises InvalidQuery for a field that has no values."""
    matches: list[TokensOfField] = []
    for field in fields_of(item.index, space):
        if space.has_index(field):
            matches.append(TokensInIndex(space, field, item.tokens))
        elif (column := space.column(field)) is not None:
            matches.append(TokensInAttribute(space, field.name, column, item.tokens))
        else:
            raise InvalidQuery(f"Field '{field.name}' is neither an attribute nor indexed, and is not searched")
    return matches
