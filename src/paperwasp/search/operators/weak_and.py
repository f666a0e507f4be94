"""weakAnd: documents that some part matches, less those that cannot be among the best `targetHits`.

A part scores its weight times its inverse document frequency, the same in every document that it matches. Documents are
looked at in the order of their lids, and each that scores at least as much as the last of the best `targetHits` before
it is a hit: more than `targetHits` are found, all of which are ranked and counted. As in Vespa with one thread
(`tests/oracles/weak_and.py` has it step by step).

Only hits of the query as a whole make the others harder to find, so a weakAnd looks within what the rest of the query
matches. Nothing is left out where documents are not ranked, beneath `!` and in the parts of `rank` that only rank, and
in streaming search. What the rank profile says under `weakand` applies everywhere: parts that are in too many documents
are dropped (`stopword-limit`), and a document must score what a chosen part does (`adjust-target`).

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#weakand, weak_and_search.cpp,
intermediate_blueprints.cpp (`WeakAndBlueprint`), wand_parts.h (`Bm25TermFrequencyScorer`)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from paperwasp.core import _core
from paperwasp.search.operators.boolean import AndOperator, any_of
from paperwasp.search.operators.composed import terms_where_matched, unwrapped
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import GRAM_COMPOSITES, Composite, Item, plan
from paperwasp.search.operators.notation import Argument, ArgumentReader, call, condition
from paperwasp.search.operators.operator import NOT_COUNTED, Operator, SearchSpace, TermOperator, Tuning
from paperwasp.search.operators.term import IndexMatch
from paperwasp.search.yql_syntax import AnnotationScope

DEFAULT_TARGET_HITS: Final = 100
_FIXED_POINT: Final = 1_000_000
_MOST_SCORE: Final = 1 << 46
"""The largest score that the kernel takes."""
_OFF: Final = 1.0
"""A limit that is not below this is none."""
_EVERY_SCORE: Final = 1
"""The least threshold: every document that some part matches reaches it."""


class WeakAndOperator(Operator):
    """The documents that reach the threshold, which rises with every hit."""

    def __init__(
        self, space: SearchSpace, children: tuple[Operator, ...], scores: tuple[int, ...], target_hits: int, least: int
    ) -> None:
        self.space = space
        self.children = children
        self.scores = scores
        self.target_hits = target_hits
        self.least = least
        """The threshold at first."""
        self._selected: Bitmap | None = None

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        """Without `within`, what was found the last time: terms of ranking ask for it again."""
        if within is None and self._selected is not None:
            return self._selected.copy()
        selected = self.space.empty()
        self._run(within, self.target_hits, selected)
        self._selected = selected
        return selected.copy()

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        """The documents that some part matches."""
        return any_of(self.children, self.space).possible(within)

    def count(self, within: Bitmap) -> int:
        """How many documents are found among some."""
        return self._run(within, self.target_hits, None)

    def reaching_least(self, within: Bitmap) -> Bitmap:
        """The documents among some that reach the threshold as it is at first: all that could be found."""
        if self.least <= _EVERY_SCORE:
            return within
        selected = self.space.empty()
        self._run(within, self.space.limit + 1, selected)
        return selected

    def _run(self, within: Bitmap | None, target_hits: int, selected: Bitmap | None) -> int:
        space = self.space
        accept = space.accept if within is None else space.accept & within
        owners, fields, terms, bitmap_owners = (list[int]() for _ in range(4))
        bitmaps: list[Bitmap] = []
        for number, child in enumerate(self.children):
            words = _words_of(child)
            if words is None:
                space.check_time()
                bitmap_owners.append(number)
                bitmaps.append(child.bitmap(within))
                continue
            owners += [number] * len(words)
            fields += [word.number for word in words]
            terms += [word.term for word in words]
        return _core.weak_and(
            space.index.reader,
            np.array(self.scores, np.int64),
            np.array(owners, np.uint32),
            np.array(fields, np.uint32),
            np.array(terms, np.uint32),
            np.array(bitmap_owners, np.uint32),
            bitmaps,
            accept,
            min(target_hits, space.limit + 1),
            self.least,
            selected,
        )

    @property
    def targets_hits(self) -> bool:
        return True

    @property
    def depends_on_hits(self) -> bool:
        return True

    def estimate(self) -> int:
        return min(self.space.documents, sum(child.estimate() for child in self.children))

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        for child in self.children:
            yield from terms_where_matched(child, self.space)


def _words_of(child: Operator) -> list[IndexMatch] | None:
    """The words whose postings are what a child matches; None where there is more to it."""
    if type(child) is not TermOperator:
        return None
    words = []
    for match in child.matches:
        inner = unwrapped(match)
        if not isinstance(inner, IndexMatch):
            return None
        words.append(inner)
    return words


class WeakAndItem(Composite, frozen=True):
    """As OrItem, and only the best `target_hits` need to be found (0: Vespa's default, 100)."""

    is_plain = True
    rule_kind = "weakAnd"
    without_elements = "weakAnd"

    target_hits: int = 0

    def to_yql(self) -> str:
        text = call("weakAnd", [child.to_yql() for child in self.children])
        return f"({{targetHits: {self.target_hits}}}{text})" if self.target_hits else text

    def merges(self, child: Item) -> bool:
        return isinstance(child, WeakAndItem) and child.target_hits == self.target_hits

    def canonical(self) -> Item:
        """Differs: a weakAnd of one item gives way to it, which finds all that it matches, not the best of it."""
        children = self.merged_children()
        return children[0] if len(children) == 1 else self.over(children)

    def plan(self, space: SearchSpace) -> Operator:
        """Vespa: QueryRewrite.optimizeByRestrict takes what asks for the type of documents out of a weakAnd."""
        tuning = space.tuning
        children = tuple(child for child in self.children if not child.is_every_document(space)) or self.children
        planned = [(child, plan(child, space)) for child in children]
        left = _without_stopwords(planned, tuning, space)
        operators = tuple(operator for _, operator in left)
        if len(operators) < 2:
            return any_of(operators, space)
        target_hits = self.target_hits or DEFAULT_TARGET_HITS
        skips = space.weak_and_skips and not space.streamed and target_hits < space.documents
        if not skips and tuning.adjust_target >= _OFF:
            return any_of(operators, space)
        scores = tuple(score_of(child, operator, space) for child, operator in left)
        least = _EVERY_SCORE
        if tuning.adjust_target < _OFF:
            target = _absolute(tuning.adjust_target, space)
            least = scores[min(range(len(left)), key=lambda at: abs(operators[at].estimate() - target))]
        return WeakAndOperator(space, operators, scores, target_hits if skips else space.limit + 1, least)


GRAM_COMPOSITES["weakAnd"] = WeakAndItem


@condition("weakAnd", Argument.CONDITION)
def read_weak_and(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`weakAnd(a, b, …)`: the best `targetHits` of what any of them matches."""
    return WeakAndItem(parser.arguments(scope), scope.target_hits())


def _without_stopwords(
    planned: list[tuple[Item, Operator]], tuning: Tuning, space: SearchSpace
) -> list[tuple[Item, Operator]]:
    if tuning.stopword_limit >= _OFF:
        return planned
    limit = _absolute(tuning.stopword_limit, space)
    left = [each for each in planned if each[1].estimate() <= limit]
    if left or tuning.allow_drop_all:
        return left
    return [min(planned, key=lambda each: each[1].estimate())] if planned else []


def _absolute(share: float, space: SearchSpace) -> int:
    """The number of documents. As in Vespa, there is one number of documents more than there are documents."""
    return int(share * (space.documents + 1))


def _frequency(operator: Operator) -> int:
    if isinstance(operator, TermOperator) and operator.document_frequency != NOT_COUNTED:
        return operator.document_frequency[0]
    return operator.estimate()


def score_of(child: Item, operator: Operator, space: SearchSpace) -> int:
    """Return the score of a part in every document that it matches."""
    total = space.documents + 1
    frequency = max(_frequency(operator), 1)
    idf = math.log1p((total - frequency + 0.5) / (frequency + 0.5))
    weight = 0 if isinstance(operator, AndOperator) else child.weak_weight()  # such an `and` is of the tokens of a word
    return min(max(int(_FIXED_POINT * weight * idf) + 1, 0), _MOST_SCORE)
