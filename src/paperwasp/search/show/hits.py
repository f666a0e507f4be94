"""Hits as they are sent: who they are, what they show, what they score. Made for all of a document type together, by
`search.search`, and by the pages below and `search.plan.runs` where the core has left some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking import RankValue
from paperwasp.schema.model import Schema
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.mutations import ON_SUMMARY
from paperwasp.search.phases.ranked_hits import NO_LIDS, NO_SCORES, RankedHits, Scores
from paperwasp.search.query import Hit, Query, Show
from paperwasp.search.show.columns import ShownAttribute, values_json
from paperwasp.search.show.explaining import explanations_of
from paperwasp.search.show.matched_elements import ElementsOfHits
from paperwasp.search.show.summary import SummaryForm, SummaryForms, SummaryWriter
from paperwasp.storage.attributes import ColumnView
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
    """Yield the inputs of the global phase for each hit. `numbers` rise."""
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
    while_matching = values(profile.match_features, while_matching=True)
    summarized = values({} if no_summary_features else profile.summary_features)
    # Vespa: summaryfeaturesdfw.cpp (`insertField`).
    not_cached = (None if each is None else {**each, CACHED: 0.0} for each in summarized)
    return while_matching, not_cached, values(profile.rank_features if query.show.list_features else {})


# The step that renders hits from the row store, where a query shows documents as they are stored, or from the columns
# of attributes, where it shows these alone.
#
# Whether a query is of this class depends on its `Show`, on its summary class and on its rank profile, none of which
# change from request to request; the kernel `page` then says of each hit whether its row can be shown. Hits that it
# leaves go the general way: new documents that are not in the row store yet, those whose attributes were changed in
# place, and those that an earlier layout wrote. Of hits that show attributes, all with a finite relevance are
# rendered.
#
# A document that was removed since the view was made is shown as the view has it. (Where it is not in the row store,
# it keeps its place, without fields.)
# Vespa: a hit whose document was removed between matching and filling has no summary.


_NO_GIDS: Final = np.zeros(0, np.uint8)
Page = tuple[bytes | None, ...]
"""The JSON of each hit; None for one that is written in the general way."""


class PageStep(NamedTuple):
    """How a kernel renders the hits of a summary class of one document type."""

    form: _core.PageForm
    needs_gids: bool
    omits_features: bool
    """Whether summary-features are left out."""
    attributes: tuple[ShownAttribute, ...] | None
    """All that is shown, where it is read from columns; None: it is in the rows."""


class PageSteps:
    """The steps of the summary classes that queries have asked for, each made once."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Schema, PageStep | None]] = {}

    def of(self, query: Query, ranked: RankedHits, forms: SummaryForms) -> PageStep | None:
        """The step for a query; None where its summary shows more than members of stored documents, and than
        attributes."""
        schema, show = ranked.bound.setting.space.schema, query.show
        values = (show.tensor_form, show.exact_tensors, show.objects)
        key = (id(schema), show.summary, show.fields, values, show.source)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= limits.SUMMARY_FORMS:
                self._known = {}
            form = forms.writer(query, ranked.bound.setting.space, ElementsOfHits(ranked, ())).form
            known = self._known[key] = schema, _step(show, schema.document.name, form)
        return known[1]


def _step(show: Show, document_type: str, form: SummaryForm) -> PageStep | None:
    if form.members is None or (form.needs_document and form.marked):
        return None
    has_all = not show.fields
    shows_id = form.shows_id if has_all else "documentid" in show.fields
    if not form.needs_document and (shows_id or form.attributes is None):
        return None
    prefix = b"" if shows_id else orjson.dumps(f"index:{show.source}/0/")[1:-1]
    names = [orjson.loads(key[:-1]) for key in form.members.keys]
    shown = _core.PageForm(
        keys=form.members.keys,
        as_stored=form.as_stored,
        required=form.members.required,
        shows_empty=sum(1 << place for place, name in enumerate(names) if name in form.shows_empty),
        unset=[form.unset.get(name, b"") for name in names],
        source=b',"source":' + orjson.dumps(show.source),
        type=b'"sddocname":' + orjson.dumps(document_type) if has_all or "sddocname" in show.fields else b"",
        id_prefix=prefix,
    )
    return PageStep(shown, bool(prefix), form.omits_features, None if form.needs_document else form.attributes)


def row_step(query: Query, bound: BoundQuery, steps: PageSteps, forms: SummaryForms) -> PageStep | None:
    """The step for a query whose hits are rendered from their rows, or from columns, whatever they are; None where they
    are not."""
    is_final = query.rank.global_page is not None
    ranked = RankedHits(bound, 0, NO_LIDS, NO_SCORES, NO_SCORES, is_final=is_final)
    if not query.show.source or query.order.after is not None:
        return None
    step = steps.of(query, ranked, forms)
    return None if step is None or _has_features(query, ranked, step) else step


def attribute_hits(
    view: View, columns: Mapping[str, ColumnView], lids: NDArray[np.uint32], scores: Scores, step: PageStep
) -> Sequence[bytes | None] | None:
    """The JSON of hits that show attributes alone; None where one of these has no column."""
    assert step.attributes is not None
    if not all(attribute.name in columns for attribute in step.attributes):
        return None
    relevances = orjson.dumps(scores, option=orjson.OPT_SERIALIZE_NUMPY)
    gids = view.gids[lids].reshape(-1) if step.needs_gids else _NO_GIDS
    return _core.value_page(values_json(step.attributes, columns, lids), relevances, gids, step.form)


def rendered_hits(
    view: View, query: Query, ranked: RankedHits, window: slice, steps: PageSteps, forms: SummaryForms
) -> tuple[Page, list[Hit]] | None:
    """The hits of `ranked` in a window, rendered, and those that cannot be; None where the query is not of the class
    that can be."""
    if not query.show.source or query.order.after is not None or ranked.bound.observer.wants(ON_SUMMARY):
        return None
    step, space = steps.of(query, ranked, forms), ranked.bound.setting.space
    if step is None or _has_features(query, ranked, step) or not (step.attributes or view.rows.limit):
        return None
    lids, scores = ranked.lids[window], ranked.scores[window]
    if step.attributes is None:
        relevances = orjson.dumps(scores, option=orjson.OPT_SERIALIZE_NUMPY)
        gids = view.gids[lids].reshape(-1) if step.needs_gids else _NO_GIDS
        first_lid = view.conform_below.get(space.schema.document.name, 0)
        hits = _core.page(view.rows.rows, lids, relevances, view.changed, first_lid, gids, step.form)
    else:
        written = attribute_hits(view, space.columns, lids, scores, step)
        if written is None:
            return None
        hits = list(written)
    left = [number for number, hit in enumerate(hits, window.start) if hit is None]
    return tuple(hits), hits_of(view, query, ranked, left, repeat(None), forms) if left else []


def _has_features(query: Query, ranked: RankedHits, step: PageStep) -> bool:
    profile = ranked.bound.profile
    return bool(
        profile.match_features
        or (profile.summary_features and not step.omits_features)
        or (query.show.list_features and profile.rank_features)
        or (profile.global_phase is not None and query.rank.global_hits and not ranked.is_final)
    )
