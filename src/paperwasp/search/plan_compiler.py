"""Compiles the plan of a template, if queries like it can be run in the core. `search.plans` calls it once a template.

    TextTemplate → its query, planned the general way for one view → CompiledPlan

A template has a plan if the general steps would go one way with every text: words, any, all or the best of which match,
and what is near (`plan_near`); ranked as `plan_rank` says; and shown as documents are stored, or attributes
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from paperwasp import limits
from paperwasp.content.view import View
from paperwasp.core import _core
from paperwasp.schema.model import Schema
from paperwasp.search.bind import indexed_types, streaming_types
from paperwasp.search.bound import BoundQuery
from paperwasp.search.grouping.columns import plain_column
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH, ON_SUMMARY
from paperwasp.search.operators.item import ALL_GRAMS, Item
from paperwasp.search.operators.operator import SearchSpace, Tuning
from paperwasp.search.operators.weak_and import DEFAULT_TARGET_HITS
from paperwasp.search.operators.word import fields_of
from paperwasp.search.page import PageStep, row_step
from paperwasp.search.plan_near import is_tuned_otherwise, near_form
from paperwasp.search.plan_rank import Ranking, ranking_of
from paperwasp.search.query import Query
from paperwasp.search.query_clock import HARD_FACTOR
from paperwasp.search.scored_blocks import threads_of_plan
from paperwasp.search.search import BoundSearch
from paperwasp.search.served import ServedSchemas
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
    """Those of the statement, in place of a text."""
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
    """Whether planning the items may hold others up: it is done where they are asked."""
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
    """What a plan shows, as a part of it."""
    return _core.PlanShown(
        form=step.form if step.attributes is None or columns else None,
        columns=columns,
        facets=template.facets,
        most_groups=limits.INLINE_GROUPS,
    )
