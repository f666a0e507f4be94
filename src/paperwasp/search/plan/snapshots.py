"""The snapshot of a view that plans run on: its documents, its words, and filters as bitmaps. `search.plan.runs` asks.

    word that a plan asks for → planned by its operator → its terms in each field, kept in the snapshot

A snapshot is made of a view the first time that a plan is run in it, and described bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.document.types import BOOL
from paperwasp.errors import PaperwaspError
from paperwasp.search.features.block import Block
from paperwasp.search.features.bm25 import idf_of
from paperwasp.search.features.setting import QuerySetting, significance_of
from paperwasp.search.operators.boolean import AndOperator, FalseOperator
from paperwasp.search.operators.field_match import Bitmap, FieldMatch
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.operator import Accepted, SearchSpace, TermOperator, ViewCache
from paperwasp.search.operators.term import AttributeMatch, IndexMatch, PhraseMatch
from paperwasp.search.operators.text import token_match, tokens_in
from paperwasp.search.operators.weak_and import score_of
from paperwasp.search.operators.word import IN_PIECES, WordItem, fields_of, is_one_token
from paperwasp.search.plan.compiler import CompiledPlan, is_planned_soon, near_search
from paperwasp.search.text_query import RouteQuery, TextQuery
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.string import StringView


def snapshot_of(view: View, cache: ViewCache) -> _core.Snapshot:
    """The snapshot of a view, which the first query makes."""
    if cache.snapshot is not None:
        return cache.snapshot
    space = cache.space
    cache.snapshot = _core.Snapshot(
        reader=space.index.reader,
        live=space.accept,
        has_dead=space.dead,
        documents=space.documents,
        changed=view.changed,
        gids=view.gids.reshape(-1),
        first_lid=view.conform_below.get(space.schema.document.name, 0),
        most_words=limits.VIEW_WORDS,
    )
    return cache.snapshot


def describe(
    compiled: CompiledPlan, cache: ViewCache, snapshot: _core.Snapshot, words: list[tuple[int, bool, str]]
) -> bool:
    """Says to a snapshot what words are, by which fields hits are ranked, and which columns are read. `words`: the
    number of the index, whether it stands between others, and the word. False: it cannot be said."""
    template = compiled.template
    space = replace(cache.space, language=template.query.match.language, cache=cache)
    try:
        if not _describe_fields(compiled, space, snapshot):
            return False
        _describe_columns(compiled, space, snapshot)
        for number, in_phrase, word in words:
            index = compiled.indexes[number]
            if in_phrase:
                described = _in_phrase(index, word, space)
            else:
                notes = DEFAULT_ANNOTATIONS if template.words or is_one_token(word) else IN_PIECES
                described = _alone(WordItem(index, word, annotations=notes), space)
            snapshot.add_word(template.words_name(index, in_phrase=in_phrase), word, *described)
    except PaperwaspError:  # the general way will say so
        return False
    return True


def _describe_fields(compiled: CompiledPlan, space: SearchSpace, snapshot: _core.Snapshot) -> bool:
    """False: a field that is ranked by is not there."""
    for name in compiled.ranking.fields:
        key = (compiled.document_type, name)
        if not space.index.has(key):
            return False
        number, average_length = space.index.number_of(key), None
        if compiled.ranking.native is None:
            average_length, _ = space.index.live_lengths(number, space.accept, space.dead)
        snapshot.add_field(name, number, average_length)
    return True


def _describe_columns(compiled: CompiledPlan, space: SearchSpace, snapshot: _core.Snapshot) -> None:
    for name in dict.fromkeys((*compiled.counted, *compiled.shown)):
        column = space.columns[name]
        if isinstance(column, StringView):
            snapshot.add_column(name, column.values, column.dictionary.for_plans())
        else:
            assert isinstance(column, NumericView)
            snapshot.add_column(name, column.values, None, column.data_type == BOOL)


_Parts = list[tuple[float, float, int, list[tuple[int, list[int], int]]]]
"""(idf, significance, length in words, [(field, terms, frequency)]) of each token of a word, all of which must match;
none: it matches in another way."""


def _alone(item: WordItem, space: SearchSpace) -> tuple[int, _Parts]:
    """Return the score of a word in a weakAnd, and its terms where it stands alone."""
    operator = plan(item, space)
    parts: _Parts = []
    for term in operator.children if type(operator) is AndOperator else (operator,):
        if type(term) is not TermOperator:
            return 0, []
        found = [_terms_of(match) for match in term.matches]
        matches = [match for match in found if match is not None]
        if len(matches) < len(found):
            return 0, []
        parts.append((idf_of(None, None, term.document_frequency), significance_of(term), term.length, matches))
    return score_of(item, operator, space), parts


def _in_phrase(index: str, word: str, space: SearchSpace) -> tuple[int, _Parts]:
    """The same of a word between others: how rare these are together is not known yet."""
    matches = []
    for field in fields_of(index, space):
        if not space.has_index(field):
            return 0, []
        terms = [
            token_match(token, field, space)
            for token in tokens_in(word, DEFAULT_ANNOTATIONS, field, space, in_phrase=True)
        ]
        found = [term for term in terms if type(term) is IndexMatch]
        if len(found) < len(terms) or not found:
            return 0, []
        matches.append((found[0].number, [term.term for term in found], min(term.frequency() for term in found)))
    return 0, [(0.0, 0.0, 1, matches)] if matches else []


def _terms_of(match: FieldMatch) -> tuple[int, list[int], int] | None:
    if type(match) is IndexMatch:
        return match.number, [match.term], 0
    if type(match) is PhraseMatch:
        return match.number, list(match.terms), 0
    return None


# The filters of plans: the documents among which a plan looks, as a bitmap that the view keeps.
#
#     items of the statement + literals → planned and run the general way → bitmap, kept by the literals
#
# Filters only narrow a plan: all documents that they leave must rank alike by them.


KEPT_CHARACTERS: Final = 256
"""The literals of filters whose bitmap is kept have no more."""
KEY_BYTES: Final = 1024
"""About what such a bitmap takes beside its own bytes."""
_ALL: Final = Accepted()


def accepted_documents(compiled: CompiledPlan, cache: ViewCache, query: TextQuery | RouteQuery) -> Accepted | None:
    """The documents that filters leave; None: they do more than narrow it, or take long, or the query is for what is
    near, and no graph is searched."""
    if not compiled.filters and compiled.template.near is None:
        return _ALL
    return cache.filters.get(_filter_key(compiled, query)) or _filter(compiled, cache, query)


def _filter(compiled: CompiledPlan, cache: ViewCache, query: TextQuery | RouteQuery) -> Accepted | None:
    """The same, where there are filters or a graph: found and kept."""
    space, template = cache.space, compiled.template
    if space.limit * len(compiled.filters) > limits.INLINE_QUERY_NS:  # a row takes about a nanosecond
        return None
    language = template.query.match.language
    found, terms = space.accept, list[TermOperator]()
    items = [item.fill(query.literals) for item in compiled.filters]
    if not is_planned_soon(items):
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
            assert cache.snapshot is not None
            near = near_search(template, space, compiled.tuning, cache.snapshot, found)
    except PaperwaspError:  # the general way will say so
        return None
    if attribute is None or (near is None and template.near is not None):
        return None
    key, accepted = _filter_key(compiled, query), Accepted(found, attribute, near)
    if sum(map(len, key[2])) <= KEPT_CHARACTERS:
        if (len(cache.filters) + 1) * (found.nbytes + KEY_BYTES) > limits.VIEW_FILTER_BYTES:
            cache.filters.clear()
        cache.filters[key] = accepted
    return accepted


def _filter_key(compiled: CompiledPlan, query: TextQuery | RouteQuery) -> tuple[int, str, tuple[str, ...]]:
    """The key of the documents that filters leave: the template's number, its language, and the literals of the
    filters."""
    literals, template = query.literals, compiled.template
    return (
        template.number,
        template.query.match.language,
        tuple([literals[slot] for item in compiled.filters for slot in item.slots]),
    )


def _attribute_match(
    compiled: CompiledPlan, space: SearchSpace, terms: Sequence[TermOperator], found: Bitmap
) -> float | None:
    """The nativeAttributeMatch of all documents that have the terms of filters; None: they score otherwise, or not
    all the same."""
    if any(match.field in compiled.ranking.fields for term in terms for match in term.matches):
        return None
    native = compiled.ranking.native
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
    """Whether all documents that match have the same score."""
    return type(match) is AttributeMatch and not match.column.is_array
