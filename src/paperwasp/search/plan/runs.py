"""Makes of a `TextQuery` what `server.roles.content_service` has run: the compiled plan of its template with its slots
filled.

    first query of a template → planned the general way → _core.Plan, kept
    Plan + Snapshot + values of a request → ReadyRun → (server.roles.plan_runs) → answer

The core runs each in one call. Which templates have a plan, `search.plan.compiler` says. What a word is in a view is
found by the general planning, and so are the documents that filters leave (`search.plan.snapshots`). A text in which
another language is detected has a plan of that language. The general steps are the specification: the answers are the
same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import repeat
from typing import Final, NamedTuple, TypeVar

import numpy as np

from paperwasp import limits
from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.search.bind import bind_to_write, cache_of, space_of
from paperwasp.search.phases.ranked_hits import RankedHits
from paperwasp.search.plan.compiler import CompiledPlan, compiled_plan
from paperwasp.search.plan.snapshots import accepted_documents, describe, snapshot_of
from paperwasp.search.query import Hit
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show.hits import attribute_hits, hits_of
from paperwasp.search.text_query import RouteQuery, TextAnswer, TextQuery, TextTemplate
from paperwasp.text.linguistics.detection import FOREIGN, detect_all

_Token = TypeVar("_Token")
_MOST_LOOKUPS: Final = 2
"""How often words are asked for that a snapshot does not know: describing one may evict another."""


class Plans:
    """The compiled plans of one content cluster, by template. `server.roles.content_service` calls it, one thread at a
    time."""

    def __init__(self, served: ServedSchemas) -> None:
        self._served = served
        self._compiled_plans: dict[tuple[int, str], CompiledPlan | None] = {}
        """By the template's number, and the language that was detected in the text."""
        self._pages = served.pages
        """The pages of the schemas that the plans were compiled for."""

    def run_of(self, view: View, query: TextQuery, now_ns: int) -> ReadyRun | None:
        """The plan of a query with its slots filled; None: it is to be answered the general way."""
        template, language = query.template, ""
        if template.detects_language and (found := detect_all([query.text])):
            language = found[0]
        compiled = self._compiled(view, template, language)
        if compiled is None or query.deadline_ns <= now_ns:
            return None
        cache = cache_of(view, compiled.document_type)
        snapshot = snapshot_of(view, cache)
        accepted = accepted_documents(compiled, cache, query)
        if accepted is None:
            return None
        match_end_ns = now_ns + int((query.deadline_ns - now_ns) * compiled.soft_share)
        text: str | list[str] = query.text
        if compiled.words:
            text = [word.fill(query.literals).word for word in compiled.words]  # type: ignore[attr-defined]
        for _ in range(_MOST_LOOKUPS):
            run = compiled.plan.run_of(
                snapshot,
                view.rows.rows,
                text,
                query.hits,
                query.offset,
                match_end_ns,
                query.deadline_ns,
                accepted.documents,
                accepted.attribute_match,
                query.vector,
                accepted.near,
            )
            if not isinstance(run, list):  # a list: words that the snapshot does not know
                return None if run is None else ReadyRun(run, view, cache.space.documents, compiled, self._served)
            if not describe(compiled, cache, snapshot, run):
                return None
        return None

    def route_of(self, view: View, query: RouteQuery, pool: _core.PlanPool[_Token]) -> PlannedRoute | None:
        """The route of queries that differ in their texts and vectors alone; None: these go the general way."""
        compiled = self._compiled(view, query.template, "")
        if compiled is None or compiled.words:
            return None
        if compiled.step.attributes is not None and not compiled.shown:  # no hit would be written by the core
            return None
        cache = cache_of(view, compiled.document_type)
        snapshot = snapshot_of(view, cache)
        accepted = accepted_documents(compiled, cache, query)
        if accepted is None:
            return None
        route = _core.TextRoute(
            plan=compiled.plan,
            snapshot=snapshot,
            rows=view.rows.rows,
            hits=query.hits,
            offset=query.offset,
            timeout_ns=query.timeout_ns,
            soft_share=compiled.soft_share,
            accept=accepted.documents,
            attribute=accepted.attribute_match,
            near=accepted.near,
            foreign=FOREIGN if query.template.detects_language else None,
            keeps_long=query.keeps_long,
            pool=pool,
            most_waiting=limits.QUERY_QUEUE_LENGTH,
            answers=query.answers,
        )
        return PlannedRoute(route, view, cache.space.documents, compiled, self._served)

    def _compiled(self, view: View, template: TextTemplate, language: str) -> CompiledPlan | None:
        """Return the plan of a template for texts in this language, if it is compiled for the view's schema."""
        if self._served.pages is not self._pages:
            self._compiled_plans.clear()
            self._pages = self._served.pages
        compiled = self._compiled_plans.get((template.number, language), ...)
        if compiled is ...:
            compiled = self._compile(view, template, language)
        if compiled is None or view.schemas.get(compiled.document_type) is not compiled.schema:
            return None
        return compiled

    def _compile(self, view: View, template: TextTemplate, language: str) -> CompiledPlan | None:
        try:
            compiled = compiled_plan(view, template.in_language(language) if language else template, self._served)
        except PaperwaspError:  # the general way will say so
            return None
        if len(self._compiled_plans) >= limits.PREPARED_QUERIES:
            self._compiled_plans.clear()
        self._compiled_plans[template.number, language] = compiled
        return compiled


class ReadyRun(NamedTuple):
    """A run of a plan, for one view: `server.roles.plan_runs` has it run, once, and asks for the answer."""

    run: _core.PlanRun
    view: View
    documents: int
    compiled: CompiledPlan
    served: ServedSchemas

    def answer(self) -> TextAnswer | None:
        """The answer, once it has run; None: it is to be found the general way."""
        run = self.run
        body, left = run.answer, run.left
        if body is None or len(left) > limits.INLINE_QUERY_HITS:
            return None
        about = run.total, run.shown, self.documents, self.view.stamp
        if not left:
            return TextAnswer(body, *about, run.writing_ns)
        begun_ns = time.monotonic_ns()
        try:
            if self.compiled.step.attributes is not None:
                whole = self._with_attributes(body, left)
                return None if whole is None else TextAnswer(whole, *about, time.monotonic_ns() - begun_ns)
            hits = self._written([lid for _, lid, _ in left], [score for _, _, score in left])
        except Exception:  # whatever is wrong, the general way will say so
            return None
        places = zip((place for place, _, _ in left), hits, strict=True)
        return TextAnswer(body, *about, run.writing_ns + time.monotonic_ns() - begun_ns, tuple(places))

    def _with_attributes(self, body: bytes, left: Sequence[tuple[int, int, float]]) -> bytes | None:
        """The JSON with all hits in it, which show attributes alone; None: they cannot be written."""
        places, lids, scores = zip(*left, strict=True)
        columns = space_of(self.view, self.compiled.document_type).columns
        hits = attribute_hits(self.view, columns, np.array(lids, np.uint32), np.array(scores), self.compiled.step)
        if hits is None:
            return None
        parts, start = list[bytes](), 0
        for place, hit in zip(places, hits, strict=True):
            if hit is None:
                return None
            parts += body[start:place], hit
            start = place
        return b"".join((*parts, body[start:]))

    def _written(self, lids: list[int], scores: list[float]) -> list[Hit]:
        """Hits that are not in the row store, as the general steps write them."""
        view, query, served = self.view, self.compiled.template.query, self.served
        bound = bind_to_write(view, self.compiled.document_type, query, served)
        relevances = np.array(scores)
        ranked = RankedHits(bound, len(lids), np.array(lids, np.uint32), relevances, relevances, is_final=True)
        return hits_of(view, query, ranked, range(len(lids)), repeat(None), served.summaries)


class PlannedRoute(NamedTuple):
    """The route of queries that differ in their texts and vectors, for one view, and what answers those that the core
    leaves."""

    route: _core.TextRoute
    view: View
    documents: int
    compiled: CompiledPlan
    served: ServedSchemas

    def ready(self, run: _core.PlanRun) -> ReadyRun:
        """A run of such a query."""
        return ReadyRun(run, self.view, self.documents, self.compiled, self.served)
