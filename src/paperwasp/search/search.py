"""Answers a query from one view: plans it for each document type, ranks, merges, writes the hits.

May run in any thread, beside the writer: a view never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

import numpy as np

from paperwasp.content.layout import INDEX_MODE
from paperwasp.content.records import Mutate
from paperwasp.content.view import View
from paperwasp.core.clock import OutOfTime
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import InvalidQuery, Timeout
from paperwasp.features.compile import compile_profile
from paperwasp.operators import Operator, SearchSpace, plan
from paperwasp.operators.base import no_clock
from paperwasp.operators.constants import FalseOperator
from paperwasp.query import TrueItem
from paperwasp.ranking import CompiledProfile, Unexecuted
from paperwasp.ranking.text_hash import text_number
from paperwasp.schema.model import Schema
from paperwasp.search.block import QuerySetting, QueryTerms
from paperwasp.search.diversity import diversifier_of
from paperwasp.search.fill import SortKeys, hits_of
from paperwasp.search.match_phase import limiter_of
from paperwasp.search.matching_settings import element_gaps, streamed_tuning, tuning
from paperwasp.search.mutations import Touched
from paperwasp.search.order import Level, levels_of
from paperwasp.search.paging import streamed_lid, within_batch
from paperwasp.search.profiling import Profilers
from paperwasp.search.query import Hit, Match, Query, RankingOverride, SearchResponse
from paperwasp.search.query_clock import QueryClock
from paperwasp.search.query_properties import inputs_by_property, now_by_property
from paperwasp.search.rank import RankedHits, Ranker
from paperwasp.search.sort_features import sort_feature
from paperwasp.search.streaming_search import STREAMING_MODE, StreamedType, batches_of, ranked_in_one_phase
from paperwasp.search.summary import SummaryForms
from paperwasp.search.trace import QueryTrace
from paperwasp.tensor.batch import Labels
from paperwasp.tensor.value import Tensor

_ALL: Final = Query(Match(TrueItem()))


class Profiles:
    """What schemas compile to: rank profiles, and what summaries show; each when a query first asks for it."""

    def __init__(self) -> None:
        self._compiled: dict[int, tuple[Schema, dict[str, CompiledProfile | Unexecuted]]] = {}
        self._streamed: dict[int, tuple[Schema, StreamedType]] = {}
        self.summaries = SummaryForms()

    def of(self, schema: Schema, name: str) -> CompiledProfile:
        """Raises InvalidQuery if the schema has no such profile, or it is not executed yet."""
        declared = schema.rank_profiles.get(name)
        if declared is None:
            raise InvalidQuery(f"schema '{schema.name}' does not contain requested rank profile '{name}'")
        _, compiled = self._compiled.setdefault(id(schema), (schema, {}))
        profile = compiled.get(name)
        if profile is None:
            profile = compiled[name] = compile_profile(schema, declared)
        if isinstance(profile, Unexecuted):
            raise InvalidQuery(f"rank profile '{name}' of schema '{schema.name}': {profile}")
        return profile

    def streamed(self, schema: Schema) -> StreamedType:
        """The type of mode streaming as its documents are searched."""
        found = self._streamed.get(id(schema))
        if found is None:
            found = self._streamed[id(schema)] = (schema, StreamedType.of(schema))
        return found[1]

    def keep_only(self, schemas: Mapping[str, Schema]) -> None:
        """Forgets what replaced schemas compiled to."""
        kept = {id(schema) for schema in schemas.values()}
        self._streamed = {key: value for key, value in list(self._streamed.items()) if key in kept}
        self._compiled = {key: value for key, value in list(self._compiled.items()) if key in kept}
        self.summaries = SummaryForms()


def overridden(profile: CompiledProfile, said: RankingOverride) -> CompiledProfile:
    """The profile with what the query says instead."""
    changes = {name: value for name in _OVERRIDES if (value := getattr(said, name)) is not None}
    return replace(profile, **changes) if changes else profile


_OVERRIDES = ("keep_rank_count", "rank_score_drop_limit", "rerank_count", "second_phase_rank_score_drop_limit")


def search(view: View, query: Query, profiles: Profiles, env: Environment = SYSTEM) -> SearchResponse:
    """The hits of `query`.

    Errors: InvalidQuery where it cannot be executed; Timeout where there was no time for it, and none for a part.
    """
    trace = (
        QueryTrace(env, query.observe.trace_level, query.observe.explain_level)
        if query.observe.trace_level > 0
        else None
    )
    clock = QueryClock(query, env)
    try:
        with clock:
            streamed = streaming_types(view, query)
            found = [_indexed(view, query, profiles, clock, trace, alone=not streamed)]
            found += [_streamed(view, name, query, profiles, clock, trace) for name in streamed]
    except OutOfTime:
        raise Timeout("the time was over before the hits were written") from None
    degraded = frozenset[str]().union(*(part.degraded for part in found))
    if "timeout" in degraded and not query.deadline.is_soft:
        raise Timeout("the time was over before all documents were searched, and there is no soft timeout")
    if trace is not None:
        trace.event("Complete query execution: hits are written")
    documents = sum(part.documents for part in found)
    covered = sum(part.documents * part.coverage for part in found)
    return SearchResponse(
        total_count=sum(part.total_count for part in found),
        documents=documents,
        hits=tuple(_merged(found, query)),
        coverage=covered / documents if documents else min(part.coverage for part in found),
        trace=None if trace is None else trace.finished(),
        degraded=degraded,
        stamp=view.stamp,
        summary_ns=sum(part.summary_ns for part in found),
        mutations=found[0].mutations,
    )


class _Found(NamedTuple):
    """What one way of searching has found: hits in their order, from the offset on, or from the first on where they
    are merged with others."""

    hits: list[Hit]
    total_count: int
    documents: int
    coverage: float
    degraded: frozenset[str]
    summary_ns: int
    """What writing the hits took."""
    mutations: tuple[Mutate, ...] = ()


def _merged(found: Sequence[_Found], query: Query) -> list[Hit]:
    if len(found) == 1:
        return found[0].hits
    hits = sorted(chain.from_iterable(part.hits for part in found), key=_order_of(query))
    return hits[query.order.offset : query.order.offset + query.order.hits]


def _order_of(query: Query) -> Callable[[Hit], Any]:
    """What hits that are written are sorted by."""
    if query.order.keys:
        return lambda hit: (hit.sort_keys, hit.lid)
    return lambda hit: (_falling(hit.relevance), hit.lid)


def _falling(relevance: float) -> float:
    """Rises where the relevance falls. NaN is worse than any number."""
    return -float(np.nan_to_num(relevance, nan=-np.inf))


def _indexed(
    view: View, query: Query, profiles: Profiles, clock: QueryClock, trace: QueryTrace | None, alone: bool
) -> _Found:
    """The hits among documents that are indexed. Unless they are `alone`, those before the offset are written too, to
    be merged with others."""
    wanted = query.order.offset + query.order.hits
    spaces = [space_of(view, name, query, clock) for name in indexed_types(view, query)]
    ranked = [_rank(space, query, profiles, clock, trace, wanted) for space in spaces]
    clock.begin_writing()
    begun_ns = clock.now_ns()
    skipped = query.order.offset if alone else 0
    documents = sum(kind.setting.space.documents for kind in ranked)
    covered = sum(kind.coverage * kind.setting.space.documents for kind in ranked)
    hits = _page(view, query, ranked, (skipped, wanted), profiles.summaries)
    return _Found(
        hits,
        sum(kind.total_count for kind in ranked),
        documents,
        covered / documents if documents else 1.0,
        frozenset[str]().union(*(kind.degraded for kind in ranked)),
        clock.now_ns() - begun_ns,
        tuple(chain.from_iterable(_mutations(view, kind) for kind in ranked if kind.touched is not None)),
    )


def _mutations(view: View, ranked: RankedHits) -> Iterator[Mutate]:
    assert ranked.touched is not None
    return ranked.touched.operations(ranked.setting.space.schema.document.name, view.gids)


def _page(
    view: View, query: Query, ranked: Sequence[RankedHits], page: tuple[int, int], forms: SummaryForms
) -> list[Hit]:
    """The hits from one number to another of all types together."""
    start, end = page
    if len(ranked) == 1:
        numbers = range(start, min(end, len(ranked[0].lids)))
        return hits_of(view, query, ranked[0], numbers, _keys(ranked[0], query, numbers), forms)
    places = sorted(chain.from_iterable(_places(kind, hits, query) for kind, hits in enumerate(ranked)))[start:end]
    written = []
    for kind, hits in enumerate(ranked):
        own = [place for place in places if place.kind == kind]
        keys = [place.keys for place in own]
        written.append(iter(hits_of(view, query, hits, [place.number for place in own], keys, forms)))
    return [next(written[place.kind]) for place in places]


def _streamed(
    view: View, name: str, query: Query, profiles: Profiles, clock: QueryClock, trace: QueryTrace | None
) -> _Found:
    """The hits among the documents of a type with mode streaming: the best of each batch, merged with those before."""
    wanted = query.order.offset + query.order.hits
    after = query.order.after
    hits: list[Hit] = []
    total_count = documents = summary_ns = 0
    progress, degraded = 0.0, frozenset[str]()
    clock.begin_writing()  # a batch that was read is small: it is searched, and its hits are written
    for batch in batches_of(view, profiles.streamed(view.schemas[name]), query.match.streaming, clock):
        if after is not None:
            query = replace(query, order=replace(query.order, after=within_batch(after, batch.gids)))
        space = space_of(batch.view, name, query, clock, streamed=True)
        ranked = _rank(space, query, profiles, clock, trace, wanted)
        numbers = range(len(ranked.lids))
        begun_ns = clock.now_ns()
        best = hits_of(batch.view, query, ranked, numbers, _keys(ranked, query, numbers), profiles.summaries)
        hits = sorted(chain(hits, (hit._replace(lid=streamed_lid(hit.gid)) for hit in best)), key=_order_of(query))
        del hits[wanted:]
        summary_ns += clock.now_ns() - begun_ns
        total_count += ranked.total_count
        documents += batch.view.limit
        degraded |= ranked.degraded
        progress = batch.progress
    if progress < 1:
        degraded |= {"timeout"}
    seen = round(documents / progress) if progress > 0 else documents
    return _Found(hits, total_count, seen, progress, degraded, summary_ns)


def streaming_types(view: View, query: Query) -> list[str]:
    """Those of the query's document types that are read, not indexed."""
    names = query.match.document_types or tuple(view.schemas)
    return [name for name in names if name in view.schemas and view.modes.get(name) == STREAMING_MODE]


def indexed_types(view: View, query: Query) -> list[str]:
    """Those of the query's document types that are indexed."""
    names = query.match.document_types or tuple(view.schemas)
    return [name for name in names if name in view.schemas and view.modes.get(name, INDEX_MODE) == INDEX_MODE]


def space_of(
    view: View, name: str, query: Query = _ALL, clock: QueryClock | None = None, streamed: bool = False
) -> SearchSpace:
    """The documents of one type, as a query searches them. A batch that is read is small: it has no clock."""
    schema = view.schemas[name]
    documents = view.live_counts.get(name, 0)
    accept = view.live[: (view.limit + 63) // 64]
    if documents != view.live_count:
        of_type = np.packbits(view.document_types[: view.limit] == view.type_numbers[name], bitorder="little")
        padded = np.zeros(len(accept) * 8, np.uint8)
        padded[: len(of_type)] = of_type
        accept = accept & padded.view(np.uint64)
    now = query.rank.now_seconds
    return SearchSpace(
        schema,
        view.limit,
        accept,
        documents,
        view.live_count < view.limit,
        view.index,
        {field: column for (kind, field), column in view.columns.items() if kind == name},
        query.rank.inputs,
        (0.0 if clock is None else clock.now_seconds) if now is None else now,
        query.match.language,
        element_gaps(schema, query),
        (streamed_tuning if streamed else tuning)(schema, query),
        streamed,
        no_clock if streamed or clock is None else clock.check,
        query.match.gram_match,
        view.distribution_key,
        view.own_lids,
    )


def _rank(
    space: SearchSpace,
    query: Query,
    profiles: Profiles,
    clock: QueryClock,
    trace: QueryTrace | None,
    wanted: int,
) -> RankedHits:
    profile = overridden(profiles.of(space.schema, query.rank.profile), query.rank.override)
    if space.streamed:
        profile = ranked_in_one_phase(profile)
    if not space.streamed:
        clock.begin_matching()
    try:
        return _ranked(
            _setting(plan(query.match.tree, space), profile, query, space), profile, query, clock, trace, wanted
        )
    except OutOfTime:
        clock.begin_writing()
        setting = _setting(FalseOperator(space), profile, query, space)
        nothing = np.zeros(0, np.uint32), np.zeros(0), np.zeros(0)
        return RankedHits(setting, profile, 0, *nothing, coverage=0.0, degraded=frozenset({"timeout"}))


def _setting(operator: Operator, profile: CompiledProfile, query: Query, space: SearchSpace) -> QuerySetting:
    numbers, texts, tensors = _sorted_inputs(query.rank.inputs)
    return QuerySetting(
        space,
        QueryTerms.of(operator),
        {**profile.inputs, **inputs_by_property(query.rank.properties), **numbers},
        {**profile.properties, **query.rank.properties},
        now_by_property(query.rank.properties, space.now_seconds),
        labels=Labels(profile.labels),
        texts=texts,
        tensors={**profile.tensor_inputs, **tensors},
        features={name: np.array([value]) for name, value in query.rank.features.items()},
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


def _ranked(
    setting: QuerySetting,
    profile: CompiledProfile,
    query: Query,
    clock: QueryClock,
    trace: QueryTrace | None,
    wanted: int,
) -> RankedHits:
    """Raises OutOfTime where there was no time for any hit."""
    space, operator = setting.space, setting.terms.root
    declared = space.schema.rank_profiles[profile.name]
    profilers = None if trace is None or not query.observe.profiling else Profilers(trace.env, query.observe.profiling)
    ranker = Ranker(
        operator,
        profile if profilers is None else profilers.profile(profile),
        setting,
        clock.is_over,
        limiter_of(declared, query.match.match_phase, query.match.tree, space),
        diversifier_of(declared.diversity, query.match.match_phase.diversity, space) if profile.second_phase else None,
        trace,
        query.order.after,
        Touched(declared.mutations) if declared.mutations and not space.streamed else None,
        profilers,
    )
    if trace is not None:
        document_type = space.schema.document.name
        trace.begin(document_type)
        trace.tag("query_setup", document_type=document_type, documents=space.documents, profile=profile.name)
        if trace.tells_plan:
            trace.tag("query_execution_plan", optimized=trace.explain(operator, space))
    levels = _levels(setting, profile, query)
    ranked = ranker.sorted_by(levels, wanted) if levels else ranker.best(wanted)
    if trace is not None and profilers is not None:
        profilers.matching(operator, space)
        trace.tag("query_execution", threads=[{"traces": profilers.report()}])
    return ranked


def _levels(setting: QuerySetting, profile: CompiledProfile, query: Query) -> tuple[Level, ...]:
    return levels_of(query.order.keys, setting.space, query.match.language, partial(sort_feature, setting, profile))


def _keys(hits: RankedHits, query: Query, numbers: Sequence[int]) -> Iterable[SortKeys]:
    """What sorts the hits with these numbers among others; None where the query does not sort."""
    if not query.order.keys:
        return repeat(None, len(numbers))
    lids, scores = hits.lids[numbers], hits.scores[numbers]
    levels = _levels(hits.setting, hits.profile, query)
    return zip(*(level.portable_keys(lids, scores) for level in levels), strict=True)


class _Place(NamedTuple):
    """One hit before it is written, in the order of hits."""

    order: Any
    lid: int
    kind: int
    """The number of its document type."""
    number: int
    """Among the hits of its type."""
    keys: SortKeys


def _places(kind: int, hits: RankedHits, query: Query) -> Iterator[_Place]:
    numbers = range(len(hits.lids))
    for number, keys in zip(numbers, _keys(hits, query, numbers), strict=True):
        order = _falling(hits.scores[number]) if keys is None else keys
        yield _Place(order, int(hits.lids[number]), kind, number, keys)
