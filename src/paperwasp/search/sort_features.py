"""What hits are sorted by that a rank profile computes: its sort-features.

Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html#sorting-by-rank-feature
"""

from __future__ import annotations

import numpy as np

from paperwasp.core.clock import check_time
from paperwasp.errors import InvalidQuery
from paperwasp.ranking import CompiledProfile
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.order import Scores, ScoresOf
from paperwasp.search.scoring import scores_of

_BLOCK_LIDS = 16_384


def sort_feature(setting: QuerySetting, profile: CompiledProfile, name: str) -> ScoresOf:
    """What answers the values of a feature; -inf where one is no finite number. Errors: InvalidQuery."""
    if setting.space.streamed:
        raise InvalidQuery(f"Could not sort by feature({name}): streaming search does not sort by features")
    program = profile.sort_features.get(name)
    if program is None:
        raise InvalidQuery(
            f"Could not sort by feature({name}): it is not among the sort-features of rank profile '{profile.name}' in"
            f" schema '{setting.space.schema.name}'"
        )

    def values_of(lids: Lids) -> Scores:
        order = np.argsort(lids, kind="stable")
        values = np.empty(len(lids))
        for start in range(0, len(lids), _BLOCK_LIDS):
            check_time()
            block = order[start : start + _BLOCK_LIDS]
            values[block] = scores_of(Block(setting, lids[block]), program)
        return np.where(np.isfinite(values), values, -np.inf)

    return values_of
