"""Compiled plans of queries for words, of a user's text or of a statement, or for what is near, and filters
(`search.text_query`).

    first query of a template → planned the general way → _core.Plan, kept
    Plan + Snapshot + values of a request → ReadyRun → (service.plan_runs) → answer

The core runs each in one call. A template has a plan if the general steps would go one way with every text: words, any,
all or the best of which match, ranked by a sum of bm25 features or by nativeRank, or what is near (`compiled_near`);
and shown as documents are stored, or attributes alone.
What a word is in a view is found by the general planning, and kept in the view's snapshot. A text in which another
language is detected has a plan of that language. The general steps are the specification: the answers are the same
bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Final, NamedTuple, TypeVar

import numpy as np

from paperwasp import limits
from paperwasp.content.view import View
from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.features.block import Block
from paperwasp.features.native_query import NativeFeature
from paperwasp.features.setting import QuerySetting
from paperwasp.linguistics.detection import FOREIGN, detect_all
from paperwasp.operators.constants import FalseOperator
from paperwasp.operators.field_match import Bitmap, FieldMatch
from paperwasp.operators.grams import ALL
from paperwasp.operators.item import Item, plan
from paperwasp.operators.operator import KnownWords, NearSearch, SearchSpace, TermOperator
from paperwasp.operators.term import AttributeMatch
from paperwasp.operators.tuning import Tuning
from paperwasp.operators.weak_and import DEFAULT_TARGET_HITS
from paperwasp.operators.word import WordItem, fields_of
from paperwasp.query.annotations import DEFAULT_ANNOTATIONS
from paperwasp.ranking import CompiledProfile
from paperwasp.ranking.program import Bm25Field
from paperwasp.schema.model import Schema
from paperwasp.search.bind import bind_to_write, indexed_types, known_words, space_of, streaming_types
from paperwasp.search.bound import BoundQuery
from paperwasp.search.compiled_near import NearForm, is_tuned_otherwise, near_form, near_search
from paperwasp.search.described_words import described_alone, described_in_phrase
from paperwasp.search.fill import hits_of
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH, ON_SUMMARY
from paperwasp.search.page import PageStep, attribute_hits, row_step
from paperwasp.search.query import Hit, Query
from paperwasp.search.query_clock import HARD_FACTOR
from paperwasp.search.ranked import RankedHits
from paperwasp.search.search import BoundSearch
from paperwasp.search.served import ServedSchemas
from paperwasp.search.text_query import ItemTemplate, RouteQuery, TextAnswer, TextQuery, TextTemplate
from paperwasp.yql.simple_terms import IN_PIECES, is_one_token

_Token = TypeVar("_Token")
_KEPT_CHARACTERS: Final = 256
"""The literals of filters whose bitmap is kept have no more."""
_KEY_BYTES: Final = 1024
"""About what such a bitmap takes beside its own bytes."""
_MOST_LOOKUPS: Final = 2
"""How often words are asked for that a snapshot does not know: describing one may evict another."""


class _Compiled(NamedTuple):
    """The plan of one template."""

    template: TextTemplate
    document_type: str
    schema: Schema
    """That of the document type: a view with another is asked the general way until its profiles are compiled."""
    plan: _core.Plan
    indexes: tuple[str, ...]
    """That of all words, or of each."""
    words: tuple[ItemTemplate, ...]
    """Those of the statement, in place of a text."""
    filters: tuple[ItemTemplate, ...]
    fields: tuple[str, ...]
    """Those that are ranked by."""
    native: NativeFeature | None
    """What ranks in place of BM25."""
    soft_share: float
    """The share of a query's time in which documents are searched."""
    step: PageStep
    """How hits are shown."""
    tuning: Tuning
    """The settings of the rank profile for matching."""


class CompiledQueries:
    """The plans of one content cluster, by template. One thread at a time."""

    def __init__(self, served: ServedSchemas) -> None:
        self._served = served
        self._known: dict[tuple[int, str], _Compiled | None] = {}
        """By the template's number, and the language that was detected in the text."""
        self._pages = served.pages
        """Those of the schemas that the plans were compiled for."""

    def run_of(self, view: View, query: TextQuery, now_ns: int) -> ReadyRun | None:
        """The plan of a query with its slots filled; None: it is to be answered the general way."""
        template, language = query.template, ""
        if template.detects_language and (found := detect_all([query.text])):
            language = found[0]
        compiled = self._compiled(view, template, language)
        if compiled is None or query.deadline_ns <= now_ns:
            return None
        known = known_words(view, compiled.document_type)
        snapshot = _known_snapshot(view, known)
        accepted = _accepted(compiled, known, query)
        if accepted is None:
            return None
        accept, attribute, near = accepted
        end_ns = query.deadline_ns
        match_end_ns = now_ns + int((end_ns - now_ns) * compiled.soft_share)
        plan, rows = compiled.plan, view.rows.rows
        text = _words_of(compiled, query) if compiled.words else query.text
        vector = query.vector
        for _ in range(_MOST_LOOKUPS):
            run = plan.run_of(
                snapshot, rows, text, query.hits, query.offset, match_end_ns, end_ns, accept, attribute, vector, near
            )
            if not isinstance(run, list):
                return None if run is None else ReadyRun(run, view, known.space.documents, compiled, self._served)
            if not _describe(compiled, known, snapshot, run):
                return None
        return None

    def route_of(self, view: View, query: RouteQuery, pool: _core.PlanPool[_Token]) -> PlannedRoute | None:
        """The route of queries that differ in their texts alone; None: these go the general way."""
        compiled = self._compiled(view, query.template, "")
        if compiled is None or compiled.words or compiled.template.near is not None:
            return None
        known = known_words(view, compiled.document_type)
        found = _accepted(compiled, known, query)
        if found is None:
            return None
        route = _core.TextRoute(
            plan=compiled.plan,
            snapshot=_known_snapshot(view, known),
            rows=view.rows.rows,
            hits=query.hits,
            offset=query.offset,
            timeout_ns=query.timeout_ns,
            soft_share=compiled.soft_share,
            accept=found[0],
            attribute=found[1],
            foreign=FOREIGN if query.template.detects_language else None,
            keeps_long=query.keeps_long,
            pool=pool,
            most_waiting=limits.QUERY_QUEUE_LENGTH,
            answers=query.answers,
        )
        return PlannedRoute(route, view, known.space.documents, compiled, self._served)

    def _compiled(self, view: View, template: TextTemplate, language: str) -> _Compiled | None:
        """What the template was compiled to for texts in this language, if that is for the view's schema."""
        if self._served.pages is not self._pages:
            self._known.clear()
            self._pages = self._served.pages
        compiled = self._known.get((template.number, language), ...)
        if compiled is ...:
            compiled = self._compile(view, template, language)
        if compiled is None or view.schemas.get(compiled.document_type) is not compiled.schema:
            return None
        return compiled

    def _compile(self, view: View, template: TextTemplate, language: str) -> _Compiled | None:
        try:
            compiled = _compiled(view, template.in_language(language) if language else template, self._served)
        except PaperwaspError:  # the general way will say so
            return None
        if len(self._known) >= limits.PREPARED_QUERIES:
            self._known.clear()
        self._known[template.number, language] = compiled
        return compiled


class ReadyRun(NamedTuple):
    """A plan with its slots filled, for one view: ready to be run, once."""

    run: _core.PlanRun
    view: View
    documents: int
    compiled: _Compiled
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
        ranked = RankedHits(bound, len(lids), np.array(lids, np.uint32), relevances, relevances)
        return hits_of(view, query, ranked, range(len(lids)), repeat(None), served.summaries)


class PlannedRoute(NamedTuple):
    """The route of queries that differ in their texts, for one view."""

    route: _core.TextRoute
    view: View
    documents: int
    compiled: _Compiled
    served: ServedSchemas

    def ready(self, run: _core.PlanRun) -> ReadyRun:
        """A run of such a query."""
        return ReadyRun(run, self.view, self.documents, self.compiled, self.served)


def _compiled(view: View, template: TextTemplate, served: ServedSchemas) -> _Compiled | None:
    """The plan of a template. Errors: what planning its query fails with."""
    deadline = template.query.deadline
    query = replace(template.query, deadline=replace(deadline, at_ns=0))  # planning is not cut short
    types = indexed_types(view, query)
    if len(types) != 1 or streaming_types(view, query) or not _is_plain(query, template):
        return None
    if not _is_planned_soon(query.match.tree.walk()):
        return None
    (bound,) = BoundSearch(view, query, served, small=True).bound
    profile = bound.profile
    weights = dict(profile.bm25_weights(bound.setting.inputs) or ())
    native = _native_of(profile)
    step = row_step(query, bound, served.pages, served.summaries)
    if step is None or not _is_of_one_phase(bound):
        return None
    near = near_form(template, bound)
    if template.near is not None and near is None:
        return None
    if not (near or native) and (not 1 <= len(weights) <= 2 or set(weights.values()) != {1.0}):
        return None
    fields = [profile.bm25_fields[name] for name in weights]
    words, filters = _split(template, bound.setting.space)
    if template.words and not words:
        return None
    indexes = [] if near else [index for index, _ in words] or [template.index]
    return _Compiled(
        template,
        types[0],
        view.schemas[types[0]],
        _plan(template, indexes, fields, native, near, step),
        tuple(indexes),
        tuple([word for _, word in words]),
        filters,
        tuple(weights) if native is None else tuple(native.native.match),
        native,
        deadline.soft_share if deadline.is_soft else HARD_FACTOR,
        step,
        bound.setting.space.tuning,
    )


def _split(
    template: TextTemplate, space: SearchSpace
) -> tuple[Sequence[tuple[str, ItemTemplate]], tuple[ItemTemplate, ...]]:
    """The words of a statement that are looked for in texts, and what narrows these: words of attributes too, where all
    must match."""
    if template.composite != "and":
        return template.words, template.filters
    words, others = [], list[ItemTemplate]()
    for index, word in template.words:
        fields = fields_of(index, space)
        if fields and all(map(space.has_index, fields)):
            words.append((index, word))
        else:
            others.append(word)
    return words, (*others, *template.filters)


def _words_of(compiled: _Compiled, query: TextQuery) -> list[str]:
    """The words of a statement."""
    return [word.fill(query.literals).word for word in compiled.words]  # type: ignore[attr-defined]


def _native_of(profile: CompiledProfile) -> NativeFeature | None:
    """What the first phase is, if it is nativeRank or a part of it."""
    feature = profile.first_phase.feature
    compute = None if feature is None else feature.compute
    return compute if isinstance(compute, NativeFeature) else None


def _is_planned_soon(items: Iterable[Item]) -> bool:
    """Whether planning the items may hold others up: it is done where they are asked."""
    return sum(item.lookups() for item in items) <= limits.INLINE_QUERY_ITEMS


def _is_plain(query: Query, template: TextTemplate) -> bool:
    rank, order, observe = query.rank, query.order, query.observe
    has_inputs = rank.inputs and template.near is None
    asks_for_more = has_inputs or rank.properties or rank.features or rank.override or rank.expressions
    shows_more = rank.global_hits or rank.global_page or query.groupings or order.keys or order.after
    notes_more = observe.trace_level or observe.explain_level or observe.profiling
    matches_more = query.match.streaming or query.match.gram_match != ALL
    return not (asks_for_more or shows_more or notes_more or matches_more)


def _is_of_one_phase(bound: BoundQuery) -> bool:
    profile, space = bound.profile, bound.setting.space
    phases = profile.second_phase or profile.global_phase or profile.rank_score_drop_limit is not None
    narrows = bound.limiter is not None or bound.diversifier is not None or bound.levels or bound.is_late
    notes = bound.observer.is_tracing or bound.observer.wants(ON_MATCH, ON_FIRST_PHASE, ON_SUMMARY)
    return not (phases or narrows or notes or is_tuned_otherwise(space.tuning))


def _plan(
    template: TextTemplate,
    indexes: Sequence[str],
    fields: list[Bm25Field],
    native: NativeFeature | None,
    near: NearForm | None,
    step: PageStep,
) -> _core.Plan:
    return _core.Plan(
        indexes=[_words_name(template, index) for index in indexes],
        phrase_index=_words_name(template, template.index, in_phrase=True),
        composite=template.composite,
        target_hits=template.target_hits or DEFAULT_TARGET_HITS,
        native=None if native is None else native.native.plan,
        fields=[(field.name, field.k1, field.b, field.average_length or 0.0) for field in fields],
        near=near,
        form=step.form if step.attributes is None else None,
        most_words=limits.INLINE_QUERY_ITEMS - 1,
        most_characters=limits.QUERY_TERM_CHARACTERS,
    )


def _words_name(template: TextTemplate, index: str, *, in_phrase: bool = False) -> str:
    """The name under which a snapshot has the words of an index: what they are depends on where they stand."""
    place = "phrase" if in_phrase else "statement" if template.words else ""
    return f"{index}\0{template.query.match.language}\0{place}"


def _known_snapshot(view: View, known: KnownWords) -> _core.Snapshot:
    """The snapshot of a view, which the first query makes."""
    if known.snapshot is not None:
        return known.snapshot
    space = known.space
    known.snapshot = _core.Snapshot(
        reader=space.index.reader,
        live=space.accept,
        has_dead=space.dead,
        documents=space.documents,
        changed=view.changed,
        gids=view.gids.reshape(-1),
        first_lid=view.conform_below.get(space.schema.document.name, 0),
        most_words=limits.VIEW_WORDS,
    )
    return known.snapshot


def _describe(
    compiled: _Compiled, known: KnownWords, snapshot: _core.Snapshot, words: list[tuple[int, bool, str]]
) -> bool:
    """Says to a snapshot what words are, and which fields are ranked by. `words`: the number of the index, whether it
    stands between others, and the word. False: it cannot be said."""
    template = compiled.template
    space = replace(known.space, language=template.query.match.language, known_words=known)
    try:
        for name in compiled.fields:
            key = (compiled.document_type, name)
            if not space.index.has(key):
                return False
            number = space.index.number_of(key)
            lengths = space.index.live_lengths(number, space.accept, space.dead) if compiled.native is None else (None,)
            snapshot.add_field(name, number, lengths[0])
        for number, in_phrase, word in words:
            index = compiled.indexes[number]
            if in_phrase:
                described = described_in_phrase(index, word, space)
            else:
                notes = DEFAULT_ANNOTATIONS if template.words or is_one_token(word) else IN_PIECES
                described = described_alone(WordItem(index, word, annotations=notes), space)
            snapshot.add_word(_words_name(template, index, in_phrase=in_phrase), word, *described)
    except PaperwaspError:  # the general way will say so
        return False
    return True


def _accepted(
    compiled: _Compiled, known: KnownWords, query: TextQuery | RouteQuery
) -> tuple[Bitmap | None, float, NearSearch | None] | None:
    """The documents that are looked among, what nativeAttributeMatch is of each, and how a graph is searched among
    them; None as of `_filter`."""
    if not compiled.filters and compiled.template.near is None:
        return None, 0.0, None
    return known.filters.get(_filter_key(compiled, query)) or _filter(compiled, known, query)


def _filter(
    compiled: _Compiled, known: KnownWords, query: TextQuery | RouteQuery
) -> tuple[Bitmap, float, NearSearch | None] | None:
    """The live documents that match all filters of a query, what nativeAttributeMatch is of each, and how a graph is
    searched among them; None: the filters do more than narrow it, or take long, or no graph is searched."""
    space, template = known.space, compiled.template
    if space.limit * len(compiled.filters) > limits.INLINE_QUERY_NS:  # a row takes about a nanosecond
        return None
    language = template.query.match.language
    found, terms = space.accept, list[TermOperator]()
    items = [item.fill(query.literals) for item in compiled.filters]
    if not _is_planned_soon(items):
        return None
    try:
        for item in items:
            operator = plan(item, replace(space, language=language) if language else space)
            terms += operator.terms()
            if operator.targets_hits or operator.depends_on_hits:
                return None
            found = found & operator.bitmap(found)
        attribute, near = _attribute_match(compiled, space, terms, found), None
        if template.near is not None:
            assert known.snapshot is not None
            near = near_search(template, space, compiled.tuning, known.snapshot, found)
    except PaperwaspError:  # the general way will say so
        return None
    if attribute is None or (near is None and template.near is not None):
        return None
    key = _filter_key(compiled, query)
    if sum(map(len, key[2])) <= _KEPT_CHARACTERS:
        if (len(known.filters) + 1) * (found.nbytes + _KEY_BYTES) > limits.VIEW_FILTER_BYTES:
            known.filters.clear()
        known.filters[key] = found, attribute, near
    return found, attribute, near


def _filter_key(compiled: _Compiled, query: TextQuery | RouteQuery) -> tuple[int, str, tuple[str, ...]]:
    """What the documents that filters leave are kept by: the template's number, its language, and the literals of the
    filters."""
    literals, template = query.literals, compiled.template
    return (
        template.number,
        template.query.match.language,
        tuple([literals[slot] for item in compiled.filters for slot in item.slots]),
    )


def _attribute_match(
    compiled: _Compiled, space: SearchSpace, terms: Sequence[TermOperator], found: Bitmap
) -> float | None:
    """What nativeAttributeMatch is of all documents that have the terms of filters; None: they score otherwise, or not
    all the same."""
    if any(match.field in compiled.fields for term in terms for match in term.matches):
        return None
    native = compiled.native
    if native is None or native.attributes is None or not terms:
        return 0.0
    if not all(len(term.matches) == 1 and _is_single(term.matches[0]) for term in terms):
        return None
    lids = _core.bitmap_lids(found, space.limit)[:1]
    if not len(lids):
        return 0.0
    setting = QuerySetting(space, FalseOperator(space), tuple(terms), {}, {}, 0.0)
    return float(native.attributes(Block(setting, lids))[0])


def _is_single(match: FieldMatch) -> bool:
    """Whether a match of it is worth the same in all documents."""
    return type(match) is AttributeMatch and not match.column.is_array
