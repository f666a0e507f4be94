"""nearestNeighbor in compiled plans: the part of a plan that says what is near, for `search.plan_compiler`, and how a
view is searched for it, for `search.plan_filters`.

    item + rank profile → _core.NearForm, part of the plan      item + view + filter → NearSearch, kept in the view

Only columns with a graph are searched by plans. The general steps (`search.nearest`, `operators.nearest_neighbor`) are
the specification.
"""

from __future__ import annotations

import math
from dataclasses import replace

from paperwasp.core import _core
from paperwasp.document.tensor.types import CELL_TYPES
from paperwasp.document.tensor.value import Tensor
from paperwasp.search.bound import BoundQuery
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem, NearestNeighborMatch
from paperwasp.search.operators.operator import NO_TUNING, NearSearch, SearchSpace, Tuning
from paperwasp.search.text_query import TextTemplate


def near_form(template: TextTemplate, bound: BoundQuery) -> _core.NearForm | None:
    """What a plan knows of the nearestNeighbor of a template; None: there is none, or plans do not know its metric."""
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
    """Whether settings for matching say more than how graphs are searched."""
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
    """What the item is in its only field; None: it has several."""
    matches = plan(item, space).matches  # type: ignore[attr-defined]
    return matches[0] if len(matches) == 1 and isinstance(matches[0], NearestNeighborMatch) else None
