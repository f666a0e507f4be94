"""Binds a query to one view: what it asks for becomes operators, columns and numbers of the documents of each type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from paperwasp.base.patterns import compile_later
from paperwasp.content.layouts.layout import INDEX_MODE
from paperwasp.content.views.view import View
from paperwasp.core.clock import OutOfTime
from paperwasp.document.tensor.batch import Labels
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking import CompiledProfile
from paperwasp.ranking.names import input_name
from paperwasp.ranking.text_hash import text_number
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.matching_settings import element_gaps, tuning
from paperwasp.search.observe import QueryTrace, observer_of
from paperwasp.search.operators import Operator, SearchSpace
from paperwasp.search.operators.boolean import FalseOperator
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.operator import ViewCache, no_clock
from paperwasp.search.phases.match_phase import diversifier_of, limiter_of
from paperwasp.search.phases.order import RELEVANCE, SortLevel, levels_of, sort_feature
from paperwasp.search.query import Query
from paperwasp.search.query_resources import QueryClock
from paperwasp.search.ready_profile import ReadyProfile
from paperwasp.search.served import ServedSchemas
from paperwasp.search.streaming_search import STREAMING_MODE


def bind(
    view: View,
    name: str,
    query: Query,
    served: ServedSchemas,
    clock: QueryClock,
    trace: QueryTrace | None = None,
    *,
    small: bool = True,
    streamed: bool = False,
) -> BoundQuery:
    """Bind a query to the documents of one type. `small`: it is of few words (`is_plain`).

    Errors: InvalidQuery for what these documents cannot be asked.
    """
    ready = served.ready_profile(view.schemas[name], query.rank.profile, query.rank.expressions)
    observer = observer_of(trace, query.observe.profiling, () if streamed else ready.declared.mutations)
    profile = observer.profile(ready.profile_for(query.rank.override, streamed=streamed))
    # In a query that sorts without scores a weakAnd leaves nothing out, since nothing that it finds would make others
    # harder to find. Vespa: matcher.cpp (`willNeedRanking`).
    sorts_by_score = RELEVANCE in (key.field for key in query.order.keys)
    skips = not query.order.keys or sorts_by_score or profile.rank_score_drop_limit is not None
    space = _space(cache_of(view, name), query, ready, clock, streamed=streamed, weak_and_skips=skips)
    try:
        setting = _setting(plan(query.match.tree, space), profile, query, space)
        declared, match = ready.declared, query.match
        diversity = match.match_phase.diversity
        levels: tuple[SortLevel, ...] = ()
        if query.order.keys:
            levels = levels_of(query.order.keys, space, match.language, partial(sort_feature, setting, profile))
        return BoundQuery(
            query,
            ready,
            profile,
            setting,
            ready.cost if small else ready.large_cost,
            limiter_of(declared, match.match_phase, match.tree, space),
            diversifier_of(declared.diversity, diversity, space) if profile.second_phase else None,
            levels,
            observer,
            clock.is_over,
            served.helpers,
        )
    except OutOfTime:
        setting = _setting(FalseOperator(space), profile, query, space)
        return BoundQuery(query, ready, profile, setting, ready.cost, is_late=True)


def bind_to_write(view: View, name: str, query: Query, served: ServedSchemas) -> BoundQuery:
    """The query as far as writing hits needs it that are found already, and show nothing of what was searched for."""
    ready = served.ready_profile(view.schemas[name], query.rank.profile, query.rank.expressions)
    profile, space = ready.profile_for(query.rank.override, streamed=False), space_of(view, name)
    return BoundQuery(query, ready, profile, _setting(FalseOperator(space), profile, query, space), ready.cost)


def space_of(view: View, name: str) -> SearchSpace:
    """Return the documents of one type as a query without settings of its own searches them."""
    return cache_of(view, name).space


def _space(
    cache: ViewCache,
    query: Query,
    ready: ReadyProfile,
    clock: QueryClock,
    *,
    streamed: bool,
    weak_and_skips: bool,
) -> SearchSpace:
    """Return the documents of one type as a query searches them. Errors: InvalidQuery."""
    shared, match, rank = cache.space, query.match, query.rank
    return SearchSpace(
        shared.schema,
        shared.limit,
        shared.accept,
        shared.documents,
        shared.dead,
        shared.index,
        shared.columns,
        rank.inputs,
        clock.now_seconds if rank.now_seconds is None else rank.now_seconds,
        match.language,
        element_gaps(ready.element_gaps, rank.properties) if rank.properties else ready.element_gaps,
        ready.streamed_tuning if streamed else tuning(ready.declared, ready.tuning, rank.properties),
        streamed,
        no_clock if streamed else clock.check,
        match.gram_match,
        shared.distribution_key,
        shared.own_lids,
        cache,
        weak_and_skips,
        shared.average_lengths,
        clock.now_ns,
    )


def cache_of(view: View, name: str) -> ViewCache:
    """Return what a view keeps of a document type; the first query of the view makes it."""
    found = view.derived.get(name)
    if isinstance(found, ViewCache):
        return found
    live = view.live_counts.get(name, 0)
    accept = view.live[: (view.limit + 63) // 64]
    if live != view.live_count:
        of_type = np.packbits(view.document_types[: view.limit] == view.type_numbers[name], bitorder="little")
        padded = np.zeros(len(accept) * 8, np.uint8)
        padded[: len(of_type)] = of_type
        accept = accept & padded.view(np.uint64)
    space = SearchSpace(
        view.schemas[name],
        view.limit,
        accept,
        live,
        dead=view.live_count < view.limit,
        index=view.index,
        columns={field: column for (kind, field), column in view.columns.items() if kind == name},
        distribution_key=view.distribution_key,
        own_lids=view.own_lids,
    )
    view.derived[name] = found = ViewCache(space)
    return found


def streaming_types(view: View, query: Query) -> list[str]:
    """Return the document types of the query that are read, not indexed."""
    names = query.match.document_types or tuple(view.schemas)
    return [name for name in names if name in view.schemas and view.modes.get(name) == STREAMING_MODE]


def indexed_types(view: View, query: Query) -> list[str]:
    """Return the document types of the query that are indexed."""
    names = query.match.document_types or tuple(view.schemas)
    return [name for name in names if name in view.schemas and view.modes.get(name, INDEX_MODE) == INDEX_MODE]


def _setting(operator: Operator, profile: CompiledProfile, query: Query, space: SearchSpace) -> QuerySetting:
    rank, labels = query.rank, Labels(profile.labels)
    terms, properties = tuple(operator.terms()), rank.properties
    if not (rank.inputs or properties or rank.features):
        inputs, tensors = profile.inputs, profile.tensor_inputs
        return QuerySetting(
            space, operator, terms, inputs, profile.properties, space.now_seconds, labels=labels, tensors=tensors
        )
    numbers, texts, given = _sorted_inputs(rank.inputs)
    return QuerySetting(
        space,
        operator,
        terms,
        {**profile.inputs, **inputs_by_property(properties), **numbers},
        {**profile.properties, **properties},
        now_by_property(properties, space.now_seconds),
        labels=labels,
        texts=texts,
        tensors={**profile.tensor_inputs, **given},
        features={name: np.array([value]) for name, value in rank.features.items()},
    )


def _sorted_inputs(inputs: Mapping[str, object]) -> tuple[dict[str, float], dict[str, str], dict[str, Tensor]]:
    """The inputs that expressions see as numbers, where texts are their hashes; the texts; and the tensors."""
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    tensors: dict[str, Tensor] = {}
    for name, value in inputs.items():
        if isinstance(value, str):
            texts[name] = value
            numbers[name] = text_number(value)
        elif isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, int | float):
            numbers[name] = float(value)
    return numbers, texts, tensors


# Inputs and the time, as the rank properties of a query set them.
#
# A property sets query(name) under the names `query(name)`, `name` and `$name`, in this order, as a number, or as the
# hash of a text. What `input.query(name)` gives goes before it; inputs of tensor type cannot be set so.
#
# Vespa: query_value.cpp (`request_lookup`, `as_feature`), nowfeature.cpp. `docs/reference/rank-properties.md` lists all
# names.


NOW: Final = "vespa.now"
_WHOLE: Final = compile_later(r"\s*[+-]?[0-9]{1,18}")


def inputs_by_property(properties: Mapping[str, str]) -> dict[str, float]:
    """query(name) → number, for all names that the properties may be."""
    named = {name: text for name, text in properties.items() if not input_name(name)}
    old = {name[1:]: text for name, text in named.items() if name.startswith("$")}
    new = {name: text for key, text in properties.items() if (name := input_name(key))}
    return {name: text_number(text) for name, text in {**old, **named, **new}.items()}


def now_by_property(properties: Mapping[str, str], default: float) -> float:
    """Seconds since 1970: the whole number that the property begins with, 0 if it begins with none."""
    text = properties.get(NOW)
    if text is None:
        return default
    found = _WHOLE.match(text)
    return float(found[0]) if found else 0.0
