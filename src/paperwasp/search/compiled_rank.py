"""What hits are ranked by in compiled plans (`search.compiled`): as the general steps would rank them (`search.rank`).

These are a sum of bm25 features of weight 1, nativeRank or a part of it, how near hits are to the query's vector, and
expressions of bm25 and closeness (`core/plan_rank.hpp`), for which all matches are scored. Hits in the order of an
attribute of whole numbers are not ranked at all (`core/plan_order.hpp`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.features.native_query import NativeFeature
from paperwasp.operators.item import TermItem
from paperwasp.ranking import CompiledProfile
from paperwasp.ranking.program import Bm25Field, Feature
from paperwasp.search.bound import BoundQuery
from paperwasp.search.text_query import TextTemplate

OrderForm = tuple[str, bool]
"""An attribute, and whether its greatest value comes first."""
Expression = tuple[Sequence[tuple[str, int, float]], NDArray[np.int32], NDArray[np.float64], int, int]
"""Kind, field and value of each feature; code, constants, temporaries and result of the program."""
_RANKING: Final = ("or", "and")
"""How words belong together that may only rank: what a weakAnd finds depends on what it ranks."""
_MOST_FIELDS: Final = 2
"""By which a sum of bm25 features is ranked."""


class PlanRanking(NamedTuple):
    """What hits are ranked by: one of the members, or by bm25 where there are fields alone, or by how near they are."""

    fields: tuple[Bm25Field, ...] = ()
    native: NativeFeature | None = None
    expression: Expression | None = None
    order: OrderForm | None = None
    """That of hits which are not ranked."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the fields that are ranked by."""
        return tuple([field.name for field in self.fields] if self.native is None else self.native.native.match)


def ranking_of(template: TextTemplate, bound: BoundQuery) -> PlanRanking | None:
    """What the hits of a template are ranked by; None: plans do not know it."""
    profile, near = bound.profile, template.near
    if bound.levels:
        order = _order_of(bound)
        return None if order is None or near or template.facets else PlanRanking(order=order)
    weights = dict(profile.bm25_weights(bound.setting.inputs) or ())
    native = _native_of(profile)
    if near is None and native is not None:
        return PlanRanking(native=native)
    if near is None and weights:
        is_sum = len(weights) <= _MOST_FIELDS and set(weights.values()) == {1.0}
        return PlanRanking(tuple([profile.bm25_fields[name] for name in weights])) if is_sum else None
    ranks_within = template.join == "rank" and template.composite not in _RANKING
    if weights or native is not None or template.facets or ranks_within:
        return None
    feature = profile.first_phase.feature
    if template.composite == "near" and feature is not None and feature.name in _closeness_names(template):
        return PlanRanking()
    return _expressed(template, bound)


def _order_of(bound: BoundQuery) -> OrderForm | None:
    """The order of hits, if it is that of the whole numbers of one attribute."""
    if len(bound.levels) != 1:
        return None
    (level,) = bound.levels
    numbers = level.numbers
    return None if numbers is None or numbers.values.dtype.kind != "i" else (level.field, level.order.descending)


def _native_of(profile: CompiledProfile) -> NativeFeature | None:
    """What the first phase is, if it is nativeRank or a part of it."""
    feature = profile.first_phase.feature
    compute = None if feature is None else feature.compute
    return compute if isinstance(compute, NativeFeature) else None


def _expressed(template: TextTemplate, bound: BoundQuery) -> PlanRanking | None:
    """Ranking by an expression; None: it is of other features."""
    program, inputs = bound.profile.first_phase, bound.setting.inputs
    fields, features = list[Bm25Field](), list[tuple[str, int, float]]()
    closeness, raw_scores = _closeness_names(template), _raw_score_names(template)
    for feature in program.features:
        known = _known(feature, closeness, raw_scores)
        if feature.query_name is not None and feature.query_name in inputs:
            features.append(("constant", 0, inputs[feature.query_name]))
        elif feature.bm25_field is not None:
            features.append(("bm25", len(fields), 0.0))
            fields.append(feature.bm25_field)
        elif known:
            features.append((known, 0, 0.0))
        else:
            return None
    return PlanRanking(
        tuple(fields), None, (features, program.code, program.constants, program.temporaries, program.result)
    )


def _known(feature: Feature, closeness: Collection[str], raw_scores: Collection[str]) -> str:
    return "closeness" if feature.name in closeness else "rawScore" if feature.name in raw_scores else ""


def _label(template: TextTemplate) -> str:
    """The label of what is near; empty: it has none, or others have the same."""
    label = "" if template.near is None else template.near.annotations.label or ""
    labels = [item.annotations.label for item in template.query.match.tree.walk() if isinstance(item, TermItem)]
    return label if labels.count(label) == 1 else ""


def _closeness_names(template: TextTemplate) -> Collection[str]:
    near, label = template.near, _label(template)
    of_field = () if near is None else (f"closeness(field,{near.index})", f"closeness({near.index})")
    return (*of_field, f"closeness(label,{label})") if label else of_field


def _raw_score_names(template: TextTemplate) -> Collection[str]:
    label = _label(template)
    return (f"itemRawScore({label})",) if label else ()
