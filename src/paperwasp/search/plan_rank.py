"""What hits are ranked by in compiled plans (`search.plans`): as the general steps would rank them (`search.rank`).

These are a sum of bm25 features of weight 1, nativeRank or a part of it, how near hits are to the query's vector, and
expressions of bm25 and closeness (`core/plan_rank.hpp`), for which all matches are scored; a global phase may rank the
best of these again (`core/plan_global.hpp`). Hits in the order of an attribute of whole numbers are not ranked at all
(`core/plan_order.hpp`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.features.native_query import NativeFeature
from paperwasp.operators.item import TermItem
from paperwasp.ranking import CompiledProfile, RankValue
from paperwasp.ranking.global_phase import Normalizer
from paperwasp.ranking.program import Bm25Field, Program
from paperwasp.search.bound import BoundQuery
from paperwasp.search.query import GlobalPage
from paperwasp.search.text_query import TextTemplate

OrderForm = tuple[str, bool]
"""An attribute, and whether its greatest value comes first."""
Expression = tuple[Sequence[tuple[str, int, float]], NDArray[np.int32], NDArray[np.float64], int, int]
"""Kind, field and value of each feature; code, constants, temporaries and result of the program."""
GlobalFeature = tuple[str, float, Expression]
"""Kind, `k`, and what is computed of each hit."""
GlobalForm = tuple[int, float | None, Sequence[GlobalFeature], NDArray[np.int32], NDArray[np.float64], int, int]
"""How many hits are ranked again, the drop limit, the features, and the program as in an expression."""
_RANKING: Final = ("or", "and")
"""How words belong together that may only rank: what a weakAnd finds depends on what it ranks."""
_PHASES: Final = ("firstPhase", "relevanceScore")
"""What the score of a hit is called in the phase after the first."""
_MOST_FIELDS: Final = 2
"""By which a sum of bm25 features is ranked."""


class PlanRanking(NamedTuple):
    """What hits are ranked by: one of the members, or by bm25 where there are fields alone, or by how near they are."""

    fields: tuple[Bm25Field, ...] = ()
    native: NativeFeature | None = None
    expression: Expression | None = None
    global_phase: GlobalForm | None = None
    """What ranks the best by the expression again."""
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
    if bound.query.rank.global_page is not None:
        return None if template.facets or _ranks_within(template) else _expressed(template, bound)
    if near is None and native is not None:
        return PlanRanking(native=native)
    if near is None and weights:
        is_sum = len(weights) <= _MOST_FIELDS and set(weights.values()) == {1.0}
        return PlanRanking(tuple([profile.bm25_fields[name] for name in weights])) if is_sum else None
    if weights or native is not None or template.facets or _ranks_within(template):
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


def _ranks_within(template: TextTemplate) -> bool:
    """Whether words only rank that find what depends on how they rank."""
    return template.join == "rank" and template.composite not in _RANKING


class _Expressions:
    """Reads what a rank profile computes of the features that plans know."""

    def __init__(self, template: TextTemplate, bound: BoundQuery) -> None:
        self._inputs = bound.setting.inputs
        self._kinds = dict.fromkeys(_PHASES, "relevance")
        self._kinds |= dict.fromkeys(_closeness_names(template), "closeness")
        self._kinds |= dict.fromkeys(_raw_score_names(template), "rawScore")
        self.fields = list[Bm25Field]()
        """Those that it has read of."""

    def of(self, program: RankValue) -> Expression | None:
        """What a program computes; None: it is of other features."""
        if not isinstance(program, Program):
            return None
        features = list[tuple[str, int, float]]()
        for feature in program.features:
            kind, field = self._kinds.get(feature.name, ""), feature.bm25_field
            if feature.query_name is not None and feature.query_name in self._inputs:
                features.append(("constant", 0, self._inputs[feature.query_name]))
            elif field is not None:
                if field not in self.fields:
                    self.fields.append(field)
                features.append(("bm25", self.fields.index(field), 0.0))
            elif kind:
                features.append((kind, 0, 0.0))
            else:
                return None
        return features, program.code, program.constants, program.temporaries, program.result


def _expressed(template: TextTemplate, bound: BoundQuery) -> PlanRanking | None:
    """Ranking by an expression; None: it is of other features."""
    expressions, page = _Expressions(template, bound), bound.query.rank.global_page
    first = expressions.of(bound.profile.first_phase)
    last = None if page is None else _global_form(bound, page, expressions)
    if first is None or (page is not None and last is None):
        return None
    return PlanRanking(tuple(expressions.fields), None, first, last)


def _global_form(bound: BoundQuery, page: GlobalPage, expressions: _Expressions) -> GlobalForm | None:
    """The global phase; None: it is of other features."""
    phase = bound.profile.global_phase
    if phase is None:
        return None
    features = list[GlobalFeature]()
    for feature, input_ in zip(phase.program.features, phase.inputs.values(), strict=True):
        found = expressions.of(input_)
        if found is None:
            return None
        is_plain, k = not isinstance(feature, Normalizer), getattr(feature, "k", None)
        kind = "plain" if is_plain else "linear" if k is None else "reciprocal"
        features.append((kind, k or 0.0, found))
    program, count, limit = phase.program, bound.query.rank.global_hits, page.rank_score_drop_limit
    return count, limit, features, program.code, program.constants, program.temporaries, program.result


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
