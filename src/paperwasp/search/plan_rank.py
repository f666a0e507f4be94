"""The part of a plan that says what hits are ranked by, for `search.plan_compiler`: as `search.rank` would rank them.

These are a sum of bm25 features of weight 1, nativeRank or a part of it, how near hits are to the query's vector, and
expressions of bm25 and closeness (`core/plans/plan_rank.hpp`), for which all matches are scored; a global phase may
rank the best of these again (`core/plans/plan_global.hpp`). Hits in the order of an attribute of whole numbers are not
ranked at all (`core/plans/plan_order.hpp`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.ranking import CompiledProfile, RankValue
from paperwasp.ranking.global_phase import Normalizer
from paperwasp.ranking.program import Bm25Field, Program
from paperwasp.search.bound import BoundQuery
from paperwasp.search.features.native_query import NativeFeature
from paperwasp.search.operators.item import TermItem
from paperwasp.search.query import GlobalPage
from paperwasp.search.text_query import TextTemplate

_RANKING: Final = ("or", "and")
"""How words belong together that may only rank: what a weakAnd finds depends on what it ranks."""
_PHASES: Final = ("firstPhase", "relevanceScore")
"""What the score of a hit is called in the phase after the first."""
_MOST_FIELDS: Final = 2
"""By which a sum of bm25 features is ranked."""


class Ranking(NamedTuple):
    """What hits are ranked by, or in the order of."""

    record: _core.PlanRanking
    """The same, as a part of the plan."""
    fields: tuple[str, ...] = ()
    """Those that are ranked by."""
    native: NativeFeature | None = None
    """What ranks in place of BM25."""
    ordering: tuple[str, ...] = ()
    """The attribute whose order hits are in, if they are not ranked."""


def ranking_of(template: TextTemplate, bound: BoundQuery) -> Ranking | None:
    """What the hits of a template are ranked by; None: plans do not know it."""
    profile, near = bound.profile, template.near
    if bound.levels:
        return None if near or template.facets else _ordered(bound)
    weights = dict(profile.bm25_weights(bound.setting.inputs) or ())
    native = _native_of(profile)
    if bound.query.rank.global_page is not None:
        return None if template.facets or _ranks_within(template) else _expressed(template, bound)
    if near is None and native is not None:
        return Ranking(_core.PlanRanking(native=native.native.plan), tuple(native.native.match), native)
    if near is None and weights:
        is_sum = len(weights) <= _MOST_FIELDS and set(weights.values()) == {1.0}
        return _by_bm25([profile.bm25_fields[name] for name in weights]) if is_sum else None
    if weights or native is not None or template.facets or _ranks_within(template):
        return None
    feature = profile.first_phase.feature
    if template.composite == "near" and feature is not None and feature.name in _closeness_names(template):
        return _by_bm25([])  # closeness alone
    return _expressed(template, bound)


def _ordered(bound: BoundQuery) -> Ranking | None:
    """No ranking, but the order of the whole numbers of one attribute; None: hits are in another."""
    if len(bound.levels) != 1:
        return None
    (level,) = bound.levels
    numbers = level.numbers
    if numbers is None or numbers.values.dtype.kind != "i":
        return None
    return Ranking(_core.PlanRanking(order=(level.field, level.order.descending)), ordering=(level.field,))


def _by_bm25(
    fields: Sequence[Bm25Field],
    expression: _core.PlanExpression | None = None,
    global_phase: _core.GlobalForm | None = None,
) -> Ranking:
    """Ranking by the bm25 of fields, or by an expression of it."""
    of_fields = [(field.name, field.k1, field.b, field.average_length or 0.0) for field in fields]
    record = _core.PlanRanking(fields=of_fields, expression=expression, global_phase=global_phase)
    return Ranking(record, tuple([field.name for field in fields]))


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

    def of(self, program: RankValue) -> _core.PlanExpression | None:
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
        return _core.PlanExpression(features, _written(program))


def _written(program: Program) -> tuple[NDArray[np.int32], NDArray[np.float64], int, int]:
    """A program as the core takes it."""
    return program.code, program.constants, program.temporaries, program.result


def _expressed(template: TextTemplate, bound: BoundQuery) -> Ranking | None:
    """Ranking by an expression; None: it is of other features."""
    expressions, page = _Expressions(template, bound), bound.query.rank.global_page
    first = expressions.of(bound.profile.first_phase)
    last = None if page is None else _global_form(bound, page, expressions)
    if first is None or (page is not None and last is None):
        return None
    return _by_bm25(expressions.fields, first, last)


def _global_form(bound: BoundQuery, page: GlobalPage, expressions: _Expressions) -> _core.GlobalForm | None:
    """The global phase; None: it is of other features."""
    phase = bound.profile.global_phase
    if phase is None:
        return None
    features = list[tuple[str, float, _core.PlanExpression]]()
    for feature, input_ in zip(phase.program.features, phase.inputs.values(), strict=True):
        found = expressions.of(input_)
        if found is None:
            return None
        is_plain, k = not isinstance(feature, Normalizer), getattr(feature, "k", None)
        kind = "plain" if is_plain else "linear" if k is None else "reciprocal"
        features.append((kind, k or 0.0, found))
    count, limit = bound.query.rank.global_hits, page.rank_score_drop_limit
    return _core.GlobalForm(count, limit, features, _written(phase.program))


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
