"""Answers a query from one view: plans it for each document type, ranks, merges, writes the hits.

May run in any thread, beside the writer: a view never changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cmp_to_key
from itertools import starmap
from typing import Any, Final, NamedTuple

import numpy as np

from paperwasp.content.layout import INDEX_MODE
from paperwasp.content.match_context import QuerySetting, QueryTerms
from paperwasp.content.messages import Hit, SearchRequest, SearchResponse, SortKey
from paperwasp.content.ranker import RankedHits, Ranker
from paperwasp.content.summary import SummaryWriter, summary_writer
from paperwasp.content.view import View
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import InvalidQuery, Timeout
from paperwasp.features.compile import compile_profile
from paperwasp.operators import SearchSpace, plan
from paperwasp.ranking import CompiledProfile, Unexecuted
from paperwasp.schema.model import Schema
from paperwasp.store.document_store import StoredDocument

UNRANKED: Final = "unranked"


class Profiles:
    """The compiled rank profiles of schemas, each compiled when a query first asks for it."""

    def __init__(self) -> None:
        self._compiled: dict[int, tuple[Schema, dict[str, CompiledProfile | Unexecuted]]] = {}

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

    def keep_only(self, schemas: Mapping[str, Schema]) -> None:
        """Forgets what replaced schemas compiled to."""
        kept = {id(schema) for schema in schemas.values()}
        self._compiled = {key: value for key, value in list(self._compiled.items()) if key in kept}


class _Place(NamedTuple):
    """One hit before it is written: hit number `number` of `ranked`."""

    ranked: RankedHits
    number: int
    keys: tuple[Any, ...]

    @property
    def lid(self) -> int:
        return int(self.ranked.lids[self.number])


def search(view: View, request: SearchRequest, profiles: Profiles, env: Environment = SYSTEM) -> SearchResponse:
    """The hits of `request`; raises InvalidQuery where it cannot be executed."""
    wanted = request.offset + request.hits
    if 0 < request.deadline_ns <= env.monotonic_ns():
        raise Timeout("no time was left to search")
    ranked = [_rank(space, request, profiles, env, wanted) for space in spaces_of(view, request)]
    places = [place for hits in ranked for place in _places(hits, request.order_by)]
    if len(ranked) > 1:
        places.sort(key=_sort_key(request.order_by))
    coverage = _coverage(ranked)
    return SearchResponse(
        total_count=sum(hits.total_count for hits in ranked),
        documents=sum(hits.setting.space.documents for hits in ranked),
        hits=tuple(_write(view, request, places[request.offset : wanted])),
        coverage=coverage,
        degraded=frozenset({"timeout"} if coverage < 1 else ()),
    )


def _coverage(ranked: Sequence[RankedHits]) -> float:
    documents = sum(hits.setting.space.documents for hits in ranked)
    missed = sum((1 - hits.coverage) * hits.setting.space.documents for hits in ranked)
    return 1 - missed / documents if documents else 1.0


def spaces_of(view: View, request: SearchRequest) -> Iterator[SearchSpace]:
    """The documents of each type that the request names."""
    for name in request.document_types or tuple(view.schemas):
        mode = view.modes.get(name, INDEX_MODE)
        if mode == "streaming":
            raise InvalidQuery(f"Document type '{name}' has mode streaming, which is not searched yet")
        if name in view.schemas and mode == INDEX_MODE:
            yield replace(space_of(view, name), language=request.language)


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


def _rank(space: SearchSpace, request: SearchRequest, profiles: Profiles, env: Environment, wanted: int) -> RankedHits:
    operator = plan(request.tree, space)
    profile = profiles.of(space.schema, UNRANKED if _is_unranked(request.order_by) else request.rank_profile)
    setting = QuerySetting(
        space,
        QueryTerms.of(operator, space),
        {**profile.inputs, **_numbers(request.inputs)},
        {**profile.properties, **request.rank_properties},
        env.now_seconds(),
    )
    deadline = request.deadline_ns
    ranker = Ranker(operator, profile, setting, lambda: deadline > 0 and env.monotonic_ns() > deadline)
    return ranker.sorted_by(request.order_by, wanted) if request.order_by else ranker.best(wanted)


def _numbers(inputs: Mapping[str, object]) -> dict[str, float]:
    return {name: float(value) for name, value in inputs.items() if isinstance(value, int | float)}


def _is_unranked(keys: tuple[SortKey, ...]) -> bool:
    return bool(keys) and not any(key.field == "[relevance]" for key in keys)


def _places(hits: RankedHits, keys: tuple[SortKey, ...]) -> Iterator[_Place]:
    columns: list[list[Any]] = []
    for key in keys:
        column = hits.setting.sorting_column(key.field)
        if key.field == "[relevance]":
            columns.append(hits.scores.tolist())
        else:
            columns.append(column.gather(hits.lids) if column is not None else [None] * len(hits.lids))
    rows = list(zip(*columns, strict=True)) if keys else [()] * len(hits.lids)
    return starmap(_Place, ((hits, number, row) for number, row in enumerate(rows)))


def _sort_key(keys: tuple[SortKey, ...]) -> Any:
    """Orders hits of several document types: by the keys, or by falling relevance; ties by lid."""

    def compare(a: _Place, b: _Place) -> int:
        for key, left, right in zip(keys, a.keys, b.keys, strict=True):
            if order := _compare(left, right):
                return -order if key.descending else order
        return a.lid - b.lid

    if keys:
        return cmp_to_key(compare)
    return lambda place: (-float(np.nan_to_num(place.ranked.scores[place.number], nan=-np.inf)), place.lid)


def _compare(left: Any, right: Any) -> int:
    """Unset first, then numbers, then strings without case: two document types may differ in an attribute's type."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, str) != isinstance(right, str):
        return 1 if isinstance(left, str) else -1
    if isinstance(left, str):
        left, right = left.lower(), right.lower()
    return int(left > right) - int(left < right)


def _write(view: View, request: SearchRequest, places: list[_Place]) -> Iterator[Hit]:
    """The hits with their fields and features. A document that went meanwhile keeps its place, without fields."""
    gids = [view.gid(place.lid) for place in places]
    by_type = {id(place.ranked): place.ranked for place in places}
    writers = {key: summary_writer(request, ranked.setting.space, _no_elements) for key, ranked in by_type.items()}
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
            fields=_fields(writer, view, document, place.lid),
            match_features=matched or None,
            summary_features=summarized or None,
            rank_features=listed or None,
            show_document_id=writer.shows_id,
        )


def _documents(view: View, gids: Sequence[bytes], needed: Sequence[bool]) -> list[StoredDocument | None]:
    """The documents that are needed, read together; None where one is not, or went meanwhile."""
    wanted = [gid for gid, is_needed in zip(gids, needed, strict=True) if is_needed]
    found = iter(view.store.multi_get(wanted) if wanted else ())
    return [next(found) if is_needed else None for is_needed in needed]


def _fields(writer: SummaryWriter, view: View, document: StoredDocument | None, lid: int) -> bytes:
    if document is not None:
        return writer.write(view.fields_of(document), document.id, lid)
    return b"{}" if writer.needs_document else writer.write(b"{}", "", lid)


def _no_elements(field: str, lid: int) -> Sequence[int]:
    return ()


_Features = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]


def _features(request: SearchRequest, ranked: RankedHits, places: list[_Place]) -> dict[int, _Features]:
    """By hit number: match-features, summary-features, rank features."""
    numbers = [place.number for place in places if place.ranked is ranked]
    profile = ranked.profile
    listed = profile.rank_features if request.list_features else {}
    columns = (profile.match_features, profile.summary_features, listed)
    rows = zip(*(ranked.features(programs, numbers) for programs in columns), strict=True)
    return dict(zip(numbers, rows, strict=True))
