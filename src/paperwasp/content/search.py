"""Answers a query from one view: plans it for each document type, ranks, merges, writes the hits.

May run in any thread, beside the writer: a view never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, starmap
from typing import Any, Final, NamedTuple

import numpy as np

from paperwasp.attribute.sort_order import PortableKey
from paperwasp.content.diversity import diversifier_of
from paperwasp.content.layout import INDEX_MODE
from paperwasp.content.match_context import QuerySetting, QueryTerms
from paperwasp.content.match_phase import limiter_of
from paperwasp.content.matched_elements import ElementsOfHits
from paperwasp.content.messages import Hit, RankingOverride, SearchRequest, SearchResponse
from paperwasp.content.query_clock import QueryClock
from paperwasp.content.ranker import RankedHits, Ranker
from paperwasp.content.sorting import levels_of
from paperwasp.content.streaming_search import STREAMING_MODE, StreamedType, batches_of
from paperwasp.content.summary import SummaryWriter, summary_writer
from paperwasp.content.trace import QueryTrace
from paperwasp.content.view import View
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import InvalidQuery, Timeout
from paperwasp.features.compile import compile_profile
from paperwasp.operators import Operator, SearchSpace, plan
from paperwasp.operators.base import OutOfTime
from paperwasp.operators.constants import FalseOperator
from paperwasp.ranking import CompiledProfile, Unexecuted
from paperwasp.schema.model import Schema
from paperwasp.store.document_store import StoredDocument


class Profiles:
    """The compiled rank profiles of schemas, each compiled when a query first asks for it."""

    def __init__(self) -> None:
        self._compiled: dict[int, tuple[Schema, dict[str, CompiledProfile | Unexecuted]]] = {}
        self._streamed: dict[int, tuple[Schema, StreamedType]] = {}

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


def overridden(profile: CompiledProfile, said: RankingOverride) -> CompiledProfile:
    """The profile with what the query says instead."""
    changes = {name: value for name in _OVERRIDES if (value := getattr(said, name)) is not None}
    return replace(profile, **changes) if changes else profile


_OVERRIDES = ("keep_rank_count", "rank_score_drop_limit", "rerank_count", "second_phase_rank_score_drop_limit")


class _Place(NamedTuple):
    """One hit before it is written: hit number `number` of `ranked`."""

    ranked: RankedHits
    number: int
    keys: tuple[PortableKey, ...]

    @property
    def lid(self) -> int:
        return int(self.ranked.lids[self.number])


def search(view: View, request: SearchRequest, profiles: Profiles, env: Environment = SYSTEM) -> SearchResponse:
    """The hits of `request`.

    Errors: InvalidQuery where it cannot be executed; Timeout where there was no time for it, and none for a part.
    """
    trace = QueryTrace(env, request.trace_level, request.explain_level) if request.trace_level > 0 else None
    clock = QueryClock(request, env)
    try:
        found = [_indexed(view, request, profiles, clock, trace)]
        found += [_streamed(view, name, request, profiles, clock, trace) for name in streaming_types(view, request)]
    except OutOfTime:
        raise Timeout("the time was over before the hits were written") from None
    degraded = frozenset[str]().union(*(part.degraded for part in found))
    if "timeout" in degraded and not request.soft_timeout:
        raise Timeout("the time was over before all documents were searched, and there is no soft timeout")
    if trace is not None:
        trace.event("Complete query execution: hits are written")
    documents = sum(part.documents for part in found)
    covered = sum(part.documents * part.coverage for part in found)
    return SearchResponse(
        total_count=sum(part.total_count for part in found),
        documents=documents,
        hits=tuple(_merged(found, request)),
        coverage=covered / documents if documents else min(part.coverage for part in found),
        trace=None if trace is None else trace.finished(),
        degraded=degraded,
        stamp=view.stamp,
    )


class _Found(NamedTuple):
    """What one way of searching has found: at most `offset + hits` hits in their order."""

    hits: list[Hit]
    total_count: int
    documents: int
    coverage: float
    degraded: frozenset[str]


def _merged(found: Sequence[_Found], request: SearchRequest) -> list[Hit]:
    hits = found[0].hits
    if len(found) > 1:
        hits = sorted(chain.from_iterable(part.hits for part in found), key=_order_of(request))
    return hits[request.offset : request.offset + request.hits]


def _order_of(request: SearchRequest) -> Callable[[Hit], Any]:
    """What hits that are written are sorted by."""
    if request.order_by:
        return lambda hit: (hit.sort_keys, hit.lid)
    return lambda hit: (_falling(hit.relevance), hit.lid)


def _falling(relevance: float) -> float:
    """Rises where the relevance falls. NaN is worse than any number."""
    return -float(np.nan_to_num(relevance, nan=-np.inf))


def _indexed(
    view: View, request: SearchRequest, profiles: Profiles, clock: QueryClock, trace: QueryTrace | None
) -> _Found:
    """The hits among documents that are indexed. Those before the offset are only written to be merged with others."""
    wanted = request.offset + request.hits
    ranked = [_rank(space, request, profiles, clock, trace, wanted) for space in spaces_of(view, request)]
    places = [place for hits in ranked for place in _places(hits, request)]
    if len(ranked) > 1:
        places.sort(key=_by_keys if request.order_by else _by_relevance)
    skipped = 0 if any(streaming_types(view, request)) else request.offset
    documents = sum(hits.setting.space.documents for hits in ranked)
    covered = sum(hits.coverage * hits.setting.space.documents for hits in ranked)
    return _Found(
        [_BEFORE] * min(skipped, len(places)) + list(_write(view, request, places[skipped:wanted])),
        sum(hits.total_count for hits in ranked),
        documents,
        covered / documents if documents else 1.0,
        frozenset[str]().union(*(hits.degraded for hits in ranked)),
    )


_BEFORE: Final = Hit(b"", "", "", 0.0, b"{}")
"""Stands for a hit before the offset."""


def _streamed(
    view: View, name: str, request: SearchRequest, profiles: Profiles, clock: QueryClock, trace: QueryTrace | None
) -> _Found:
    """The hits among the documents of a type with mode streaming: the best of each batch, merged with those before."""
    if request.search_after is not None:
        raise InvalidQuery(
            "'searchAfter' is for indexed document types; those with mode streaming have pages by offset"
        )
    wanted = request.offset + request.hits
    hits: list[Hit] = []
    total_count = documents = 0
    progress, degraded = 0.0, frozenset[str]()
    for batch in batches_of(view, profiles.streamed(view.schemas[name]), request.streaming, clock):
        ranked = _rank(replace(space_of(batch.view, name), streamed=True), request, profiles, clock, trace, wanted)
        best = _write(batch.view, request, list(_places(ranked, request)))
        hits = sorted(chain(hits, (hit._replace(lid=documents + hit.lid) for hit in best)), key=_order_of(request))
        del hits[wanted:]
        total_count += ranked.total_count
        documents += batch.view.limit
        degraded |= ranked.degraded
        progress = batch.progress
    if progress < 1:
        degraded |= {"timeout"}
    return _Found(hits, total_count, round(documents / progress) if progress > 0 else documents, progress, degraded)


def streaming_types(view: View, request: SearchRequest) -> list[str]:
    """Those of the request's document types that are read, not indexed."""
    names = request.document_types or tuple(view.schemas)
    return [name for name in names if name in view.schemas and view.modes.get(name) == STREAMING_MODE]


def spaces_of(view: View, request: SearchRequest) -> Iterator[SearchSpace]:
    """The documents of each type that the request names."""
    for name in request.document_types or tuple(view.schemas):
        if name in view.schemas and view.modes.get(name, INDEX_MODE) == INDEX_MODE:
            yield space_of(view, name)


def space_of(view: View, name: str) -> SearchSpace:
    """The documents of one type."""
    documents = view.live_counts.get(name, 0)
    accept = view.live[: (view.limit + 63) // 64]
    if documents != view.live_count:
        of_type = np.packbits(view.document_types[: view.limit] == view.type_numbers[name], bitorder="little")
        padded = np.zeros(len(accept) * 8, np.uint8)
        padded[: len(of_type)] = of_type
        accept = accept & padded.view(np.uint64)
    columns = {field: column for (kind, field), column in view.columns.items() if kind == name}
    dead = view.live_count < view.limit
    return SearchSpace(view.schemas[name], view.limit, accept, documents, dead, view.index, columns)


def _rank(
    space: SearchSpace,
    request: SearchRequest,
    profiles: Profiles,
    clock: QueryClock,
    trace: QueryTrace | None,
    wanted: int,
) -> RankedHits:
    now = clock.now_seconds if request.now_seconds is None else request.now_seconds
    space = replace(
        space,
        inputs=request.inputs,
        now_seconds=now,
        language=request.language,
        element_gaps=_element_gaps(space.schema, request.rank_profile),
        check_time=space.check_time if space.streamed else clock.check,  # a batch that was read is small, and searched
    )
    profile = overridden(profiles.of(space.schema, request.rank_profile), request.ranking)
    try:
        return _ranked(
            _setting(plan(request.tree, space), profile, request, space), profile, request, clock, trace, wanted
        )
    except OutOfTime:
        setting = _setting(FalseOperator(space), profile, request, space)
        nothing = np.zeros(0, np.uint32), np.zeros(0), np.zeros(0)
        return RankedHits(setting, profile, 0, *nothing, coverage=0.0, degraded=frozenset({"timeout"}))


def _setting(operator: Operator, profile: CompiledProfile, request: SearchRequest, space: SearchSpace) -> QuerySetting:
    return QuerySetting(
        space,
        QueryTerms.of(operator, space),
        {**profile.inputs, **_numbers(request.inputs)},
        {**profile.properties, **request.rank_properties},
        space.now_seconds,
    )


def _ranked(
    setting: QuerySetting,
    profile: CompiledProfile,
    request: SearchRequest,
    clock: QueryClock,
    trace: QueryTrace | None,
    wanted: int,
) -> RankedHits:
    """Raises OutOfTime where there was no time for any hit."""
    space, operator = setting.space, setting.terms.root
    declared = space.schema.rank_profiles[profile.name]
    ranker = Ranker(
        operator,
        profile,
        setting,
        clock.is_over,
        limiter_of(declared, request.match_phase, request.tree, space),
        diversifier_of(declared.diversity, request.match_phase.diversity, space) if profile.second_phase else None,
        trace,
        request.search_after,
    )
    if trace is not None:
        document_type = space.schema.document.name
        trace.tag("query_setup", document_type=document_type, documents=space.documents, profile=profile.name)
        if trace.tells_plan:
            trace.tag("query_execution_plan", optimized=trace.explain(operator, space))
    levels = levels_of(request.order_by, space, request.language)
    return ranker.sorted_by(levels, wanted) if levels else ranker.best(wanted)


def _element_gaps(schema: Schema, profile: str) -> dict[str, float]:
    declared = schema.rank_profiles.get(profile)
    ranks = declared.field_ranks.items() if declared is not None else ()
    return {name: rank.element_gap for name, rank in ranks if rank.element_gap is not None}


def _numbers(inputs: Mapping[str, object]) -> dict[str, float]:
    return {name: float(value) for name, value in inputs.items() if isinstance(value, int | float)}


def _places(hits: RankedHits, request: SearchRequest) -> Iterator[_Place]:
    """The hits of one type; with what sorts them among others, if the query sorts."""
    levels = levels_of(request.order_by, hits.setting.space, request.language)
    columns = [level.portable_keys(hits.lids, hits.scores) for level in levels]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(hits.lids)
    return starmap(_Place, ((hits, number, row) for number, row in enumerate(rows)))


def _by_keys(place: _Place) -> tuple[object, int]:
    return place.keys, place.lid


def _by_relevance(place: _Place) -> tuple[float, int]:
    return _falling(place.ranked.scores[place.number]), place.lid


def _write(view: View, request: SearchRequest, places: list[_Place]) -> Iterator[Hit]:
    """The hits with their fields and features. A document that went meanwhile keeps its place, without fields."""
    gids = [view.gid(place.lid) for place in places]
    by_type = {id(place.ranked): place.ranked for place in places}
    writers = {key: _writer(request, ranked, places) for key, ranked in by_type.items()}
    documents = _documents(view, gids, [writers[id(place.ranked)].needs_document for place in places])
    features = {key: _features(request, ranked, places) for key, ranked in by_type.items()}
    for place, gid, document in zip(places, gids, documents, strict=True):
        matched, summarized, listed = features[id(place.ranked)][place.number]
        writer = writers[id(place.ranked)]
        yield Hit(
            gid=gid,
            document_type=place.ranked.setting.space.schema.document.name,
            document_id=document.id if document else "",
            relevance=float(place.ranked.scores[place.number]),
            sort_keys=place.keys or None,
            attributes=_attributes(request, place) if request.prefetch else None,
            lid=place.lid,
            fields=_fields(writer, view, document, place.lid),
            match_features=matched or None,
            summary_features=None if writer.omits_features else summarized or None,
            rank_features=listed or None,
            show_document_id=writer.shows_id,
        )


def _writer(request: SearchRequest, ranked: RankedHits, places: Sequence[_Place]) -> SummaryWriter:
    lids = (place.lid for place in places if place.ranked is ranked)
    return summary_writer(request, ranked.setting.space, ElementsOfHits(ranked.setting.terms.root, lids))


def _documents(view: View, gids: Sequence[bytes], needed: Sequence[bool]) -> list[StoredDocument | None]:
    """The documents that are needed, read together; None where one is not, or went meanwhile."""
    wanted = [gid for gid, is_needed in zip(gids, needed, strict=True) if is_needed]
    found = iter(view.store.multi_get(wanted) if wanted else ())
    return [next(found) if is_needed else None for is_needed in needed]


def _fields(writer: SummaryWriter, view: View, document: StoredDocument | None, lid: int) -> bytes:
    if document is not None:
        return writer.write(view.fields_of(document), document.id, lid)
    return b"{}" if writer.needs_document else writer.write(b"{}", "", lid)


def _attributes(request: SearchRequest, place: _Place) -> dict[str, object]:
    columns = place.ranked.setting.space.columns
    return {name: columns[name].get(place.lid) if name in columns else None for name in request.prefetch}


_Features = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]


def _features(request: SearchRequest, ranked: RankedHits, places: list[_Place]) -> dict[int, _Features]:
    """By hit number: match-features, summary-features, rank features."""
    numbers = [place.number for place in places if place.ranked is ranked]
    profile = ranked.profile
    listed = profile.rank_features if request.list_features else {}
    columns = (profile.match_features, profile.summary_features, listed)
    rows = zip(*(ranked.features(programs, numbers) for programs in columns), strict=True)
    return dict(zip(numbers, rows, strict=True))
