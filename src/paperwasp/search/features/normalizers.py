"""normalize_linear, reciprocal_rank, reciprocal_rank_fusion: features of all hits together, in the global phase only.

The compiler puts `ranking.global_phase.Normalizer` in their places; here is what may be said.
Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#cross-hit-normalization-including-reciprocal-rank-fusion
"""

from __future__ import annotations

import math

from paperwasp.errors import LanguageError
from paperwasp.search.features.family import Compute, RankSetup, register


def _check_k(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    """The second argument is a constant."""
    if len(arguments) > 1:
        try:
            is_number = math.isfinite(float(arguments[1]))
        except ValueError:
            is_number = False
        if not is_number:
            raise LanguageError(f"the second argument of reciprocal_rank is a number, not {arguments[1]!r}")
    return ""


def _refused(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    raise LanguageError("this is a feature of all hits together: it is known in the global phase only")


register("normalize_linear", "expression")(_refused)
register("reciprocal_rank", "expression", "name", optional=1, pending=_check_k)(_refused)
register("reciprocal_rank_fusion", "expression", "expression", "expression", repeated=True)(_refused)
