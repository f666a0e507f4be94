"""The catalog of rank features: every family, and the names that Vespa has beyond them.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Final

from paperwasp.errors import LanguageError
from paperwasp.features.family import Compute, RankSetup, check_arguments, families

NOT_YET: Final = frozenset(
    re.split(
        " ",
        "attributeMatch bm25_for_labels closeness closest customTokenInputIds distance distanceToPath dotProduct"
        " elementCompleteness elementSimilarity elementwise fieldMatch firstPhaseMax firstPhaseRank foreach"
        " globalSequence itemRawScore lightgbm match nativeDotProduct onnx onnxModel randomNormal randomNormalStable"
        " random rawScore tensorFromLabels tensorFromStructs tensorFromWeightedSet textSimilarity tokenAttentionMask"
        " tokenInputIds tokenTypeIds xgboost",
    )
)
"""Rank features of Vespa that this engine does not compute yet."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundFeature:
    """A rank feature of one profile, checked and ready. `name` is canonical."""

    name: str
    compute: Compute
    bm25_field: str | None = None
    query_name: str | None = None


@dataclass
class Catalog:
    """The rank features as one rank profile of one schema may use them: a `paperwasp.ranking.FeatureCatalog`."""

    setup: RankSetup
    _bound: dict[str, BoundFeature] = field(default_factory=dict)

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> BoundFeature:
        """The feature; raises LanguageError for one that is unknown, not supported yet, or has wrong arguments."""
        family = families().get(name)
        if family is None:
            raise LanguageError(_unknown(name, self.setup))
        if output and output not in family.outputs:
            raise LanguageError(
                f"rank feature {name!r} has no output {output!r}; it has {', '.join(sorted(family.outputs))}"
            )
        check_arguments(family, self.setup, arguments)
        canonical = feature_name(name, arguments, output)
        if canonical not in self._bound:
            compute = family.bind(self.setup, arguments, output or family.outputs[0])
            bm25_field = arguments[0] if name == "bm25" and self.setup.has_bm25(arguments[0]) else None
            query_name = arguments[0] if name == "query" else None
            self._bound[canonical] = BoundFeature(canonical, compute, bm25_field, query_name)
        return self._bound[canonical]


def feature_name(name: str, arguments: tuple[str, ...], output: str = "") -> str:
    """`name(arguments).output`, with quotes around an argument that is not a name or number."""
    listed = ",".join(a if re.fullmatch(r"[A-Za-z0-9_@$.(),-]+", a) else f'"{a}"' for a in arguments)
    return f"{name}{f'({listed})' if arguments else ''}{'.' + output if output else ''}"


def default_rank_features(setup: RankSetup) -> tuple[str, ...]:
    """What `ranking.listFeatures` shows: the features that each family lists, in the order of their names."""
    return tuple(name for family in sorted(families()) for name in families()[family].listed(setup))


def _unknown(name: str, setup: RankSetup) -> str:
    if name in NOT_YET:
        return f"rank feature {name!r} is not supported yet"
    known = [*families(), *NOT_YET, *setup.profile.functions, *setup.profile.constants]
    nearest = difflib.get_close_matches(name, known, 1)
    return f"unknown rank feature or function {name!r}{f'; did you mean {nearest[0]!r}?' if nearest else ''}"
