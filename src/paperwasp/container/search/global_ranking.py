"""The global phase in the container: the best hits of one document type, merged from all nodes, are ranked again.

Content nodes send beside each of these hits what the expression needs (`Hit.global_inputs`). Hits below them are moved
where they would otherwise be above; what the drop limit leaves out is no hit.
Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#using-a-global-phase-expression
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from paperwasp import limits
from paperwasp.container.search.settings import GlobalParameters
from paperwasp.container.search.sorting import RELEVANCE
from paperwasp.errors import IllegalQuery, LanguageError
from paperwasp.ranking.explanation import Columns, Explained, Json, NodeValue, rendered, shown_number
from paperwasp.ranking.global_phase import GlobalPhase
from paperwasp.ranking.program import Floats
from paperwasp.search.phases.later_phases import relevances
from paperwasp.search.query import GlobalPage, Hit, SortKey


class GlobalRanking(Struct, frozen=True):
    """The global phase of a rank profile, as one query wants it."""

    phase: GlobalPhase
    rerank_count: int
    rank_score_drop_limit: float | None

    @classmethod
    def of(cls, phase: GlobalPhase | None, said: GlobalParameters) -> GlobalRanking | None:
        """The ranking of a global phase with a request's parameters; None: there is no phase. Errors: IllegalQuery."""
        if phase is None:
            return None
        count = phase.rerank_count if said.rerank_count is None else said.rerank_count
        if count > limits.GLOBAL_RERANK_COUNT:
            raise IllegalQuery(
                f"The global phase is to rerank {count} hits; it can rerank {limits.GLOBAL_RERANK_COUNT} at most"
            )
        limit = phase.rank_score_drop_limit if said.rank_score_drop_limit is None else said.rank_score_drop_limit
        return cls(phase, count, limit) if count > 0 else None

    def page(self, hits: int) -> GlobalPage:
        """The message to a content node that may rank the first `hits` itself."""
        return GlobalPage(hits, self.rank_score_drop_limit)

    def ranked(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with their new relevances, best first. `hits`: by falling relevance."""
        chosen = [hit for hit in hits[: self.rerank_count] if hit.global_inputs is not None]
        if not chosen:
            return list(hits)
        rows = np.array([hit.global_inputs for hit in chosen], np.float64).reshape(len(chosen), -1)
        every = (*chosen, *hits[len(chosen) :])
        scores = relevances(self.phase, rows, np.array([hit.relevance for hit in every]))
        pairs = zip(every, scores.tolist(), strict=True)
        found = [hit._replace(relevance=relevance) for hit, relevance in pairs]
        if any(hit.explanation for hit in found):
            found = with_global_phase(self.phase, found, rows)
        if self.rank_score_drop_limit is not None:
            found = [hit for hit in found if hit.relevance > self.rank_score_drop_limit]
        return sorted(found, key=lambda hit: -hit.relevance)


def check_order(order_by: Sequence[SortKey]) -> None:
    """Hits that are ranked in the global phase are in the order of their relevance. Errors: IllegalQuery."""
    if any(key.field != RELEVANCE or key.descending is False for key in order_by):
        raise IllegalQuery("Sorting is not supported with global phase")


# Why hits score what they do in the global phase: the tree of its expression.
#
# Content nodes send the values of its nodes that depend on one hit alone; those that depend on all are computed here.


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
