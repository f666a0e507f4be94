"""Hits as they are sent: who they are, what they show, what they score. Made for all of a document type together, by
`search.search`, and by `search.page` and `search.plans` where the core has left some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Final

from paperwasp.content.view import View
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking import RankValue
from paperwasp.search.explaining import explanations_of
from paperwasp.search.matched_elements import ElementsOfHits
from paperwasp.search.mutations import ON_SUMMARY
from paperwasp.search.query import Hit, Query
from paperwasp.search.ranked import RankedHits
from paperwasp.search.summary import SummaryForms, SummaryWriter
from paperwasp.storage.documents.document_store import StoredDocument

SortKeys = tuple[object, ...] | None
CACHED: Final = "vespa.summaryFeatures.cached"
"""A member among summary-features: whether they were kept from ranking. Here they never are."""
_Features = Iterable[Mapping[str, float | Tensor] | None]


def hits_of(
    view: View,
    query: Query,
    ranked: RankedHits,
    numbers: Sequence[int],
    keys: Iterable[SortKeys],
    forms: SummaryForms,
) -> list[Hit]:
    """The hits with these numbers of `ranked`, in this order, with their sort keys. A document that went meanwhile
    keeps its place, without fields."""
    if not numbers:
        return []
    space = ranked.bound.setting.space
    lids = ranked.lids[numbers].tolist()
    gids = view.gids_of(lids)
    writer = forms.writer(query, space, ElementsOfHits(ranked, numbers))
    documents = view.documents_of(lids, gids) if writer.form.needs_document else [None] * len(gids)
    matched, summarized, listed = _features(query, ranked, numbers, writer.form.omits_features)
    if ranked.bound.profile.summary_features and not writer.form.omits_features:
        ranked.bound.observer.reach(ON_SUMMARY, [ranked.lids[numbers]])
    return list(
        map(
            Hit,
            gids,
            repeat(space.schema.document.name),
            ["" if document is None else document.id for document in documents],
            ranked.scores[numbers].tolist(),
            _fields(writer, view, documents, lids),
            matched,
            summarized,
            listed,
            repeat(writer.form.shows_id),
            keys,
            _attributes(query, ranked, lids),
            lids,
            _global_inputs(query, ranked, numbers),
            explanations_of(query, ranked, numbers) if query.observe.explains_hits else repeat(None),
        )
    )


def _global_inputs(query: Query, ranked: RankedHits, numbers: Sequence[int]) -> Iterable[tuple[float, ...] | None]:
    """What the global phase needs of each hit. `numbers` rise."""
    phase = ranked.bound.profile.global_phase
    if phase is None or not query.rank.global_hits or ranked.is_final:
        return repeat(None)
    chosen = [number for number in numbers if number < query.rank.global_hits]
    inputs = phase.inputs
    rows = ranked.features(inputs, chosen)
    return chain((tuple(float(row[name]) for name in inputs) for row in rows), repeat(None))  # type: ignore[arg-type]


def _fields(
    writer: SummaryWriter, view: View, documents: Sequence[StoredDocument | None], lids: Sequence[int]
) -> list[bytes]:
    if not writer.form.needs_document:
        return writer.write_attributes(lids)
    there = [(document, lid) for document, lid in zip(documents, lids, strict=True) if document is not None]
    found = [document for document, _ in there]
    shown = writer.write_all(view.fields_of_all(found), [document.id for document in found], [lid for _, lid in there])
    if len(shown) == len(lids):
        return shown
    rest = iter(shown)
    return [b"{}" if document is None else next(rest) for document in documents]


def _attributes(query: Query, ranked: RankedHits, lids: Sequence[int]) -> Iterable[Mapping[str, object] | None]:
    if not query.show.prefetch:
        return repeat(None)
    columns = ranked.bound.setting.space.columns
    return [{name: columns[name].get(lid) if name in columns else None for name in query.show.prefetch} for lid in lids]


def _features(
    query: Query, ranked: RankedHits, numbers: Sequence[int], no_summary_features: bool
) -> tuple[_Features, _Features, _Features]:
    """match-features, summary-features, rank features of each hit."""

    def values(programs: Mapping[str, RankValue], *, while_matching: bool = False) -> _Features:
        return ranked.features(programs, numbers, while_matching=while_matching) if programs else repeat(None)

    profile = ranked.bound.profile
    return (
        values(profile.match_features, while_matching=True),
        _not_cached(values({} if no_summary_features else profile.summary_features)),
        values(profile.rank_features if query.show.list_features else {}),
    )


def _not_cached(features: _Features) -> _Features:
    """Vespa: summaryfeaturesdfw.cpp (`insertField`)."""
    return (None if each is None else {**each, CACHED: 0.0} for each in features)
