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
from paperwasp.search.query_resources import Helpers
from paperwasp.search.ready_profile import RankCost, ReadyProfile

_NO_HELPERS: Final = Helpers()


def is_never_over() -> bool:
    """There is always time."""
    return False


class BoundQuery(Struct, frozen=True, eq=False):
    """A query over the documents of one type in one view."""

    query: Query
    ready: ReadyProfile
    profile: CompiledProfile
    """The rank profile with the query's overrides, as the observer has it run."""
    setting: QuerySetting
    cost: RankCost
    """The measured cost of ranking and writing hits, for queries of few words or for others."""
    limiter: Limiter | None = None
    """Limits the match phase, where the profile or the query asks for it."""
    diversifier: Diversifier | None = None
    """Chooses among the hits that the second phase ranks."""
    levels: tuple[SortLevel, ...] = ()
    """The sort keys; empty: hits are sorted by relevance."""
    observer: Observer = NO_OBSERVER
    """Takes note of matching and ranking."""
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
