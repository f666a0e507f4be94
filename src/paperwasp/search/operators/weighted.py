"""weightedSet, dotProduct and wand: one of many values, of whose weights ranking sees those of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.best import BestMatch, BestOperator
from paperwasp.search.operators.boolean import FalseItem
from paperwasp.search.operators.composed import TokensMatch, WithoutPositions, element_keys
from paperwasp.search.operators.field_match import Bitmap, Lids, Occurrences
from paperwasp.search.operators.in_operator import token_of
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, call, condition, keys
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import AttributeMatch, counts_of, first_weights
from paperwasp.search.operators.word import fields_of
from paperwasp.search.yql_syntax import AnnotationScope, Tokens, highest, weighted_tokens
from paperwasp.storage.attributes import ColumnView

# The base of weightedSet, dotProduct and wand: weighted tokens of a query, and what they match and score in a field.
#
# Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html


TokenWeights = Sequence[tuple[str | int, int]]


class TokensItem(TermItem, frozen=True):
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


# weightedSet: one of many values, of whose weights ranking sees those of the query.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#weightedset


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


class WeightedSetItem(TokensItem, frozen=True):
    """One of many values, each with a weight that ranking sees in place of the field's."""

    def to_yql(self) -> str:
        return self.as_call("weightedSet")

    def plan(self, space: SearchSpace) -> Operator:
        matches = [WeightedSetMatch(tokens) for tokens in tokens_matches(self, space)]
        return TermOperator(space, matches, self.annotations)


@condition("weightedSet", Argument.NAME, Argument.LITERAL)
def read_weighted_set(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`weightedSet(field, {"a": 1, "b": 2})`: any of the values."""
    return WeightedSetItem(parser.field_or_quoted(), read_tokens(parser), annotations=scope.of_term())


# dotProduct: one of many values; the raw score is the sum of the products of weights of query and document.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#dotproduct


class DotProductMatch(WithoutPositions):
    """Tokens whose raw score is the sum of products of weights."""

    def __init__(self, tokens: TokensOfField) -> None:
        super().__init__(tokens)
        self._tokens = tokens

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._tokens.products(lids)


class DotProductItem(TokensItem, frozen=True):
    """As WeightedSetItem; the raw score is the sum of the products of the weights of query and field."""

    def to_yql(self) -> str:
        return self.as_call("dotProduct")

    def plan(self, space: SearchSpace) -> Operator:
        matches = [DotProductMatch(tokens) for tokens in tokens_matches(self, space)]
        return TermOperator(space, matches, self.annotations)


@condition("dotProduct", Argument.NAME, Argument.LITERAL)
def read_dot_product(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`dotProduct(field, {"a": 1, "b": 2})`: any of the values; the raw score is the dot product."""
    return DotProductItem(parser.field_or_quoted(), read_tokens(parser), annotations=scope.of_term())


# wand: the documents with the greatest sums of products of weights of query and document.
#
# Vespa: https://docs.vespa.ai/en/ranking/wand.html
# Differs: finds just the best `targetHits`, in Vespa at least those; so `thresholdBoostFactor`, by which Vespa gives up
# some of them for speed, has no effect.


DEFAULT_TARGET_HITS = 10
_BLOCK_LIDS: Final = 65_536
"""Documents that are scored together."""


class WandMatch(BestMatch):
    """The best by products of weights, above `threshold`."""

    def __init__(self, space: SearchSpace, tokens: TokensOfField, target_hits: int, threshold: float) -> None:
        super().__init__(space, tokens.field, target_hits)
        self._tokens = tokens
        self._threshold = threshold

    def candidates(self) -> Bitmap:
        """The documents that have one of the tokens."""
        bitmap = self._space.empty()
        self._tokens.add_to(bitmap)
        return bitmap

    def find(self, allowed: Bitmap) -> Lids:
        space = self._space
        lids = _core.bitmap_lids(self.candidates() & allowed, space.limit)
        best, values = np.zeros(0, np.uint32), np.zeros(0)
        for start in range(0, len(lids), _BLOCK_LIDS):
            space.check_time()
            block = lids[start : start + _BLOCK_LIDS]
            products = self._tokens.products(block)
            reached = np.where(products > self._threshold, products, -np.inf)
            best, values = _first(np.concatenate([best, block]), np.concatenate([values, reached]), self._target_hits)
        return best

    def scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._tokens.products(lids)

    def document_frequencies(self) -> tuple[int, ...]:
        return self._tokens.document_frequencies()

    def estimate(self) -> int:
        return min(super().estimate(), self._tokens.estimate())

    def elements(self, lids: Lids) -> Occurrences:
        offsets, elements = self._tokens.elements(lids)
        counts = counts_of((offsets, elements))
        found = self.occurrences(lids) > 0
        kept = np.repeat(found, counts)
        return np.concatenate([[0], np.cumsum(np.where(found, counts, 0))]).astype(np.uint32), elements[kept]

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        counts = counts_of(self._tokens.elements(lids))
        return self._tokens.element_weights(lids)[np.repeat(self.occurrences(lids) > 0, counts)]


def _first(lids: Lids, values: NDArray[np.float64], count: int) -> tuple[Lids, NDArray[np.float64]]:
    """The `count` with the greatest values, of equal ones those with lower lids; rising. `lids` rise."""
    there = values > -np.inf
    lids, values = lids[there], values[there]
    if len(lids) <= count:
        return lids, values
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = values > least
    equal = np.flatnonzero(values == least)[: count - int(np.count_nonzero(above))]
    above[equal] = True
    return lids[above], values[above]


class WandItem(TokensItem, frozen=True):
    """The `target_hits` best by that dot product, among those above `score_threshold`."""

    without_elements = "wand"

    target_hits: int = 0
    score_threshold: float = 0.0
    threshold_boost_factor: float = 1.0

    def to_yql(self) -> str:
        extra: dict[str, Any] = {}
        if self.target_hits:
            extra["targetHits"] = self.target_hits
        if self.score_threshold:
            extra["scoreThreshold"] = self.score_threshold
        if self.threshold_boost_factor != 1.0:
            extra["thresholdBoostFactor"] = self.threshold_boost_factor
        return self.as_call("wand", extra)

    def plan(self, space: SearchSpace) -> Operator:
        hits = self.target_hits or DEFAULT_TARGET_HITS
        if hits < 0:
            raise InvalidQuery(f"wand in '{self.index}': targetHits must be above 0, not {hits}")
        found = tokens_matches(self, space)
        matches = [WandMatch(space, tokens, hits, self.score_threshold) for tokens in found]
        return BestOperator(space, matches, self.annotations)


@condition("wand", Argument.NAME, Argument.LITERAL)
def read_wand(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`wand(field, {"a": 1, "b": 2})`: the best by their dot product."""
    boost = scope.get("thresholdBoostFactor", float)
    return WandItem(
        parser.field_or_quoted(),
        read_tokens(parser),
        scope.target_hits(),
        float(scope.get("scoreThreshold", float) or 0.0),
        1.0 if boost is None else float(boost),
        annotations=scope.of_term(),
    )
