"""Compiles the plan of a template, if queries like it run in the core. `search.plan.runs` calls it once a template.

    TextTemplate → its query, planned the general way for one view → CompiledPlan

A template has a plan if the general steps would go one way with every text: words, any, all or the best of which match,
and what is near; ranked as the last part of this file says; and shown as documents are stored, or attributes alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.document.tensor.types import CELL_TYPES
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking import CompiledProfile, RankValue
from paperwasp.ranking.global_phase import Normalizer
from paperwasp.ranking.program import Bm25Field, Program
from paperwasp.schema.model import Schema
from paperwasp.search.bind import indexed_types, streaming_types
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.features.native_query import NativeFeature
from paperwasp.search.grouping.attribute_columns import plain_column
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH, ON_SUMMARY
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import ALL_GRAMS, Item, TermItem, plan
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem, NearestNeighborMatch
from paperwasp.search.operators.operator import NO_TUNING, NearSearch, SearchSpace, Tuning
from paperwasp.search.operators.weak_and import DEFAULT_TARGET_HITS
from paperwasp.search.operators.word import fields_of
from paperwasp.search.phases.scored_blocks import threads_of_plan
from paperwasp.search.query import GlobalPage, Query
from paperwasp.search.query_resources import HARD_FACTOR
from paperwasp.search.search import BoundSearch
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show.hits import PageStep, row_step
from paperwasp.search.text_query import ItemTemplate, TextTemplate
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.string import StringView


class CompiledPlan(NamedTuple):
    """The plan of one template, and what Python needs beside it to fill its slots."""

    template: TextTemplate
    document_type: str
    schema: Schema
    """That of the document type: a view with another is asked the general way until its profiles are compiled."""
    plan: _core.Plan
    indexes: tuple[str, ...]
    """That of all words, or of each."""
    words: tuple[ItemTemplate, ...]
    """The words of the statement, in place of a text."""
    filters: tuple[ItemTemplate, ...]
    ranking: Ranking
    counted: tuple[str, ...]
    """The attributes whose values are counted, and that hits are in the order of."""
    shown: tuple[str, ...]
    """The attributes whose values are shown, if the core reads these from columns."""
    soft_share: float
    """The share of a query's time in which documents are searched."""
    step: PageStep
    """How hits are shown."""
    tuning: Tuning
    """The settings of the rank profile for matching."""


def compiled_plan(view: View, template: TextTemplate, served: ServedSchemas) -> CompiledPlan | None:
    """The plan of a template. Errors: what planning its query fails with."""
    deadline = template.query.deadline
    query = replace(template.query, deadline=replace(deadline, at_ns=0))  # planning is not cut short
    types = indexed_types(view, query)
    if len(types) != 1 or streaming_types(view, query) or not _is_plain(query, template):
        return None
    if not is_planned_soon(query.match.tree.walk()):
        return None
    (bound,) = BoundSearch(view, query, served, small=True).bound
    step = row_step(query, bound, served.pages, served.summaries)
    if step is None or not _is_of_one_phase(bound):
        return None
    near, ranking = near_form(template, bound), ranking_of(template, bound)
    if ranking is None or (template.near is not None and near is None):
        return None
    words, filters = _split(template, bound.setting.space)
    if template.words and not words:
        return None
    indexes = [] if template.composite == "near" else [index for index, _ in words] or [template.index]
    facets = [found.attribute for root in template.facets for found in root.lists]
    counted = tuple(dict.fromkeys((*facets, *ranking.ordering)))
    columns = bound.setting.space.columns
    if not all(name in columns and plain_column(columns[name]) for name in counted):
        return None
    shown = _shown_columns(step, columns)
    return CompiledPlan(
        template=template,
        document_type=types[0],
        schema=view.schemas[types[0]],
        plan=_core.Plan(
            _words(template, indexes),
            near,
            ranking.record,
            _shown(template, step, shown),
            *threads_of_plan(bound),
        ),
        indexes=tuple(indexes),
        words=tuple([word for _, word in words]),
        filters=filters,
        ranking=ranking,
        counted=counted,
        shown=shown,
        soft_share=deadline.soft_share if deadline.is_soft else HARD_FACTOR,
        step=step,
        tuning=bound.setting.space.tuning,
    )


def _split(
    template: TextTemplate, space: SearchSpace
) -> tuple[Sequence[tuple[str, ItemTemplate]], tuple[ItemTemplate, ...]]:
    """The words of a statement that are looked for in texts, and what narrows these: words of attributes too, where all
    must match."""
    if template.composite != "and":
        return template.words, template.filters
    words, others = [], list[ItemTemplate]()
    for index, word in template.words:
        fields = fields_of(index, space)
        if fields and all(map(space.has_index, fields)):
            words.append((index, word))
        else:
            others.append(word)
    return words, (*others, *template.filters)


def is_planned_soon(items: Iterable[Item]) -> bool:
    """Whether planning the items is quick enough to be done on the thread that asks."""
    return sum(item.lookups() for item in items) <= limits.INLINE_QUERY_ITEMS


def _is_plain(query: Query, template: TextTemplate) -> bool:
    rank, order, observe = query.rank, query.order, query.observe
    has_inputs = rank.inputs and template.near is None
    asks_for_more = has_inputs or rank.properties or rank.features or rank.override or rank.expressions
    groups_more = query.groupings and not template.facets
    ranks_elsewhere = rank.global_hits and rank.global_page is None
    shows_more = ranks_elsewhere or groups_more or order.after
    notes_more = observe.trace_level or observe.explain_level or observe.profiling
    matches_more = query.match.streaming or query.match.gram_match != ALL_GRAMS
    return not (asks_for_more or shows_more or notes_more or matches_more)


def _is_of_one_phase(bound: BoundQuery) -> bool:
    profile, space = bound.profile, bound.setting.space
    phases = profile.second_phase or profile.rank_score_drop_limit is not None
    narrows = bound.limiter is not None or bound.diversifier is not None or bound.is_late
    notes = bound.observer.is_tracing or bound.observer.wants(ON_MATCH, ON_FIRST_PHASE, ON_SUMMARY)
    return not (phases or narrows or notes or is_tuned_otherwise(space.tuning))


def _shown_columns(step: PageStep, columns: Mapping[str, ColumnView]) -> tuple[str, ...]:
    """The attributes that are shown, one for each key of the page; none where others than single numbers and strings
    are."""
    names = tuple([attribute.name for attribute in step.attributes or ()])
    return names if all(type(columns.get(name)) in (NumericView, StringView) for name in names) else ()


def _words(template: TextTemplate, indexes: Sequence[str]) -> _core.PlanWords:
    """The words that a plan looks for, as a part of it."""
    return _core.PlanWords(
        indexes=[template.words_name(index) for index in indexes],
        phrase_index=template.words_name(template.index, in_phrase=True),
        composite=template.composite,
        target_hits=template.target_hits or DEFAULT_TARGET_HITS,
        most_words=limits.INLINE_QUERY_ITEMS - 1,
        most_characters=limits.QUERY_TERM_CHARACTERS,
    )


def _shown(template: TextTemplate, step: PageStep, columns: Sequence[str]) -> _core.PlanShown:
    """The part of a plan that writes hits."""
    return _core.PlanShown(
        form=step.form if step.attributes is None or columns else None,
        columns=columns,
        facets=template.facets,
        most_groups=limits.INLINE_GROUPS,
    )


# nearestNeighbor in compiled plans: the part of a plan that says what is near, and how a view is searched for it, for
# `search.plan.snapshots`.
#
#     item + rank profile → _core.NearForm, part of the plan      item + view + filter → NearSearch, kept in the view
#
# Only columns with a graph are searched by plans. The general steps
# (`search.phases.first_phase`, `operators.nearest_neighbor`) are the specification.


def near_form(template: TextTemplate, bound: BoundQuery) -> _core.NearForm | None:
    """The nearestNeighbor of a template for a plan; None: there is none, or plans do not know its metric."""
    item = template.near
    if item is None:
        return None
    match, vector = _match(item, bound.setting.space), template.query.rank.inputs[item.tensor]
    if match is None or not isinstance(vector, Tensor):
        return None
    if match.metric == "geodegrees":  # there are no kernels for what people see of it
        return None
    threshold = math.inf if item.distance_threshold is None else item.distance_threshold
    return _core.NearForm(
        field=match.field,
        cell=CELL_TYPES.index(vector.type.cell_type),
        metric=match.metric,
        threshold=threshold,
        alone_matches=template.join == "rank",
    )


def is_tuned_otherwise(tuning: Tuning) -> bool:
    """Whether settings for matching say more than how to search graphs."""
    return replace(tuning, neighbors=NO_TUNING.neighbors) != NO_TUNING


def near_search(
    template: TextTemplate, space: SearchSpace, tuning: Tuning, snapshot: _core.Snapshot, found: Bitmap
) -> NearSearch | None:
    """How the graph is searched among some live documents of a view, whose vectors the snapshot then knows; None: they
    are compared otherwise. Errors: those of planning the item."""
    item = template.near
    assert item is not None
    match = _match(item, replace(space, tuning=tuning, inputs=template.query.rank.inputs))
    kernel = None if match is None else match.kernel_search(found, is_alone=template.composite == "near")
    if match is None or kernel is None:
        return None
    graph, search, compared = kernel
    snapshot.add_vectors(match.field, *graph)
    return (
        search.limit,
        search.count,
        search.explore,
        search.accept is not None,
        search.filter_first,
        search.exploration,
        search.slack,
        compared,
    )


def _match(item: NearestNeighborItem, space: SearchSpace) -> NearestNeighborMatch | None:
    """The match of the item in its only field; None: it has several."""
    matches = plan(item, space).matches  # type: ignore[attr-defined]
    return matches[0] if len(matches) == 1 and isinstance(matches[0], NearestNeighborMatch) else None


# The part of a plan that says what hits are ranked by: as `search.phases.rank` would rank them.
#
# These are a sum of bm25 features of weight 1, nativeRank or a part of it, how near hits are to the query's vector,
# and expressions of bm25 and closeness (`core/plans/plan_rank.hpp`), for which all matches are scored; a global phase
# may rank the best of these again (`core/plans/plan_global.hpp`). Hits in the order of an attribute of whole numbers
# are not ranked at all (`core/plans/plan_order.hpp`).


_RANKING: Final = ("or", "and")
"""How words belong together that may only rank: what a weakAnd finds depends on what it ranks."""
_PHASES: Final = ("firstPhase", "relevanceScore")
"""The names of a hit's score in the phase after the first."""
_MOST_FIELDS: Final = 2
"""By which a sum of bm25 features is ranked."""


class Ranking(NamedTuple):
    """The ranking of a plan: by features, or by sort keys."""

    record: _core.PlanRanking
    """The same, as a part of the plan."""
    fields: tuple[str, ...] = ()
    """The fields that rank."""
    native: NativeFeature | None = None
    """The feature that ranks in place of BM25."""
    ordering: tuple[str, ...] = ()
    """The attribute whose order hits are in, if they are not ranked."""


def ranking_of(template: TextTemplate, bound: BoundQuery) -> Ranking | None:
    """Return the ranking of a template's hits; None: plans do not know it."""
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
    """The feature of the first phase, if it is nativeRank or a part of it."""
    feature = profile.first_phase.feature
    compute = None if feature is None else feature.compute
    return compute if isinstance(compute, NativeFeature) else None


def _ranks_within(template: TextTemplate) -> bool:
    """Whether words only rank whose matches depend on their ranking."""
    return template.join == "rank" and template.composite not in _RANKING


class _Expressions:
    """Reads what a rank profile computes of the features that plans know."""

    def __init__(self, template: TextTemplate, bound: BoundQuery) -> None:
        self._inputs = bound.setting.inputs
        self._kinds = dict.fromkeys(_PHASES, "relevance")
        self._kinds |= dict.fromkeys(_closeness_names(template), "closeness")
        if label := _label(template):
            self._kinds[f"itemRawScore({label})"] = "rawScore"
        self.fields = list[Bm25Field]()
        """The fields of the features that were read."""

    def of(self, program: RankValue) -> _core.PlanExpression | None:
        """Return the expression of a program; None: it has other features."""
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
