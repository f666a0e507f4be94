"""Why hits score what they do in the global phase: the tree of its expression.

Content nodes send the values of its nodes that depend on one hit alone; those that depend on all are computed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from paperwasp.errors import LanguageError
from paperwasp.ranking.explanation import Columns, Explained, Json, NodeValue, rendered, shown_number
from paperwasp.ranking.global_phase import GlobalPhase
from paperwasp.ranking.program import Floats
from paperwasp.search.query import Hit

_PHASE = "global-phase"


def with_global_phase(phase: GlobalPhase, hits: Sequence[Hit], rows: Floats) -> list[Hit]:
    """The hits with this phase in their explanations. The first `len(rows)` of them were ranked by it, from `rows`."""
    columns = phase.columns(rows)
    try:
        explanation = phase.explained() if phase.explained is not None else None
    except LanguageError as error:
        return [_with(hit, _note(hit, error.message)) for hit in hits]
    if explanation is None:
        return list(hits)
    worked = Columns(explanation.builder, lambda feature: columns.get(feature.name))
    explained = []
    for row, hit in enumerate(hits):
        if row >= len(rows):
            explained.append(_with(hit, _note(hit, "not among the hits that the global phase ranks")))
        elif hit.explanation is None or hit.explanation.global_values is None:
            explained.append(hit)
        else:
            tree = rendered(explanation, _Values(hit.explanation.global_values, worked, row).of)
            explained.append(_with(hit, {"phase": _PHASE, "score": shown_number(hit.relevance), "tree": tree}))
    return explained


class _Values:
    """The values of nodes for one hit: from its content node, or else computed from the columns of all hits."""

    def __init__(self, given: Sequence[NodeValue], worked: Columns, row: int) -> None:
        self._given = given
        self._worked = worked
        self._row = row

    def of(self, node: Explained) -> NodeValue:
        given = self._given[node.number]
        if given.value is None and isinstance(node.value, int):
            given = given._replace(value=self._worked.at(node.value, self._row))
        if given.taken is None and node.choices:
            given = given._replace(taken=self._worked.taken(node, self._row))
        return given


def _note(hit: Hit, note: str) -> Json:
    return {"phase": _PHASE, "score": shown_number(hit.relevance), "note": note}


def _with(hit: Hit, phase: Json) -> Hit:
    found = hit.explanation
    if found is None or found.note:
        return hit
    return hit._replace(explanation=found._replace(phases=(*found.phases, phase), global_values=None))
