"""How long a query takes, before it runs: short ones run where they are, others on a worker thread.

A hand-off to another thread costs more than most queries do. Which queries are short is estimated from how many
documents their terms match, and from what ranking and writing hits by the same rank profile has taken before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paperwasp import limits
from paperwasp.operators import FieldMatch, IndexMatch, Operator, TermOperator
from paperwasp.operators.and_operator import AndOperator
from paperwasp.operators.constants import FalseOperator, TrueOperator
from paperwasp.operators.not_operator import NotOperator
from paperwasp.operators.rank_operator import RankOperator
from paperwasp.operators.term import PhraseMatch
from paperwasp.query.items import (
    AndItem,
    EquivItem,
    FalseItem,
    Item,
    NotItem,
    OrItem,
    PhraseItem,
    RangeItem,
    RankItem,
    TrueItem,
    WeakAndItem,
    WordAlternativesItem,
    WordItem,
)
from paperwasp.ranking import CompiledProfile

if TYPE_CHECKING:
    from paperwasp.search.bind import BoundQuery

PLAIN_ITEMS: Final = frozenset(
    {
        AndItem,
        EquivItem,
        FalseItem,
        NotItem,
        OrItem,
        PhraseItem,
        RangeItem,
        RankItem,
        TrueItem,
        WeakAndItem,
        WordAlternativesItem,
        WordItem,
    }
)
"""Items whose planning looks words up, and reads nothing."""
FEATURE_NS: Final = 2_000
"""What one rank feature of one hit is taken to cost until it was measured: more than nearly all do."""
HIT_NS: Final = 20_000
"""What writing a hit is taken to cost until it was measured."""
POSTING_NS: Final = 1
"""Of one posting that is read, or one row of a column that is looked at."""
POSITION_NS: Final = 20
"""Of one document of a phrase's rarest word."""
_LEAST_MEASURED: Final = 8
"""So many hits or more say what one costs."""
_DEARER: Final = 0.5
_CHEAPER: Final = 0.1


class RankCost:
    """Nanoseconds of CPU time that ranking one match, reranking one hit, and writing one hit take with a rank profile.

    A dearer measurement counts by half, a cheaper one by a tenth. Threads may update it at the same time: a lost
    update is harmless.
    """

    __slots__ = ("first_ns", "second_ns", "write_ns")

    def __init__(self, first_ns: float = FEATURE_NS, second_ns: float = 0.0) -> None:
        self.first_ns = first_ns
        self.second_ns = second_ns
        self.write_ns: float = HIT_NS

    @classmethod
    def of(cls, profile: CompiledProfile) -> RankCost:
        """Return what a profile is taken to cost before it was run."""
        second = profile.second_phase
        second_ns = 0 if second is None else FEATURE_NS * max(1, len(second.features))
        return cls(FEATURE_NS * max(1, len(profile.first_phase.features)), second_ns)

    def ranked(self, count: int, took_ns: int) -> None:
        """Note what the first phase of so many matches took."""
        self.first_ns = _updated(self.first_ns, count, took_ns)

    def reranked(self, count: int, took_ns: int) -> None:
        """Note what the second phase of so many hits took."""
        self.second_ns = _updated(self.second_ns, count, took_ns)

    def wrote(self, count: int, took_ns: int) -> None:
        """Note what writing so many hits took."""
        self.write_ns = _updated(self.write_ns, count, took_ns)


def _updated(known_ns: float, count: int, took_ns: int) -> float:
    if count < _LEAST_MEASURED:
        return known_ns
    one_ns = took_ns / count
    share = _DEARER if one_ns > known_ns else _CHEAPER
    return (1 - share) * known_ns + share * one_ns


def is_plain(tree: Item, types_count: int) -> bool:
    """Return whether a tree is planned for so many document types in little time, whatever the index holds."""
    waiting = [tree]
    left = limits.INLINE_QUERY_ITEMS // max(1, types_count)
    while waiting:
        item = waiting.pop()
        left -= 1
        if left < 0 or type(item) not in PLAIN_ITEMS:
            return False
        waiting.extend(item.children_of())
    return True


def estimate_ns(bound: BoundQuery, hits: int) -> float:
    """Return about how long a query takes for one document type, rather too long than too short."""
    space, cost, profile = bound.setting.space, bound.plan.cost, bound.profile
    matching_ns, matches = _matching(bound.setting.terms.root, space.limit)
    ranking_ns = 0.0 if bound.is_pruned else matches * cost.first_ns
    if profile.second_phase is not None:
        ranking_ns += min(matches, profile.rerank_count) * cost.second_ns
    return matching_ns + ranking_ns + min(matches, hits) * cost.write_ns


def _matching(operator: Operator, limit: int) -> tuple[float, int]:
    """Return nanoseconds, and at most how many documents match. Looks at no posting and no row."""
    took_ns, matches = 0.0, 0
    kind = type(operator)
    if kind is TermOperator:
        for match in operator.matches:  # type: ignore[attr-defined]
            one_ns, count = _match(match, limit)
            took_ns += one_ns
            matches += count
        return took_ns, min(limit, matches)
    if kind is TrueOperator:
        return 0.0, limit
    counts = []
    for child in operator.children_of():
        one_ns, count = _matching(child, limit)
        took_ns += one_ns
        counts.append(count)
    if not counts:
        return (0.0, 0) if kind is FalseOperator else (limit * POSTING_NS, limit)
    if kind is AndOperator:
        return took_ns, min(counts)
    if kind is NotOperator or kind is RankOperator:
        return took_ns, counts[0]
    return took_ns, min(limit, sum(counts))


def _match(match: FieldMatch, limit: int) -> tuple[float, int]:
    if type(match) is IndexMatch:
        frequency = match.frequency()
        return frequency * POSTING_NS, frequency
    if type(match) is PhraseMatch:
        (frequency,) = match.document_frequencies()
        return frequency * POSITION_NS, frequency
    return limit * POSTING_NS, limit
