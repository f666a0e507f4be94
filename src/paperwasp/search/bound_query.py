"""A query over the documents of one type in one view: what binding makes of it, for matching and ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from paperwasp.ranking import CompiledProfile
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.observe import NO_OBSERVER, Observer
from paperwasp.search.phases.match_phase import Diversifier, Limiter
from paperwasp.search.phases.order import SortLevel
from paperwasp.search.query import Query
from paperwasp.search.ready_profile import RankCost, ReadyProfile
from paperwasp.search.resources import Helpers

_NO_HELPERS: Final = Helpers()


def is_never_over() -> bool:
    """There is always time."""
    return False


class BoundQuery(Struct, frozen=True, eq=False):
    """A query over the documents of one type in one view."""

    query: Query
    ready: ReadyProfile
    profile: CompiledProfile
    """That with what the query says instead, as the observer has it run."""
    setting: QuerySetting
    cost: RankCost
    """What ranking and writing hits is known to take: of queries of few words, or of others."""
    limiter: Limiter | None = None
    """Of the match-phase, where the profile or the query asks for one."""
    diversifier: Diversifier | None = None
    """Of what the second phase ranks."""
    levels: tuple[SortLevel, ...] = ()
    """What sorts the hits; empty: their relevance."""
    observer: Observer = NO_OBSERVER
    """Of matching and ranking."""
    is_over: Callable[[], bool] = is_never_over
    """Whether the time for matching and ranking is over."""
    helpers: Helpers = _NO_HELPERS
    """The threads that help where there is much to rank."""
    is_late: bool = False
    """Whether the time was over before the query was planned: then nothing is found."""

    @property
    def is_pruned(self) -> bool:
        """Whether the best hits are probably found without scoring all matches."""
        profile = self.profile
        is_sum = bool(profile.bm25_sum) and profile.rank_score_drop_limit is None
        return is_sum and self.limiter is None and not self.levels
