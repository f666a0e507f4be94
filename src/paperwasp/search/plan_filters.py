"""The filters of plans: the documents among which a plan looks, as a bitmap that the view keeps. `search.plans` asks
for it.

    items of the statement + literals → planned and run the general way → bitmap, kept by the literals

What filters do besides, they do not do in plans: all documents that they leave must rank alike by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.operators.boolean import FalseOperator
from paperwasp.search.operators.field_match import Bitmap, FieldMatch
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.operator import Accepted, SearchSpace, TermOperator, ViewCache
from paperwasp.search.operators.term import AttributeMatch
from paperwasp.search.plan_compiler import CompiledPlan, is_planned_soon
from paperwasp.search.plan_near import near_search
from paperwasp.search.text_query import RouteQuery, TextQuery

KEPT_CHARACTERS: Final = 256
"""The literals of filters whose bitmap is kept have no more."""
KEY_BYTES: Final = 1024
"""About what such a bitmap takes beside its own bytes."""
_ALL: Final = Accepted()


def accepted_documents(compiled: CompiledPlan, cache: ViewCache, query: TextQuery | RouteQuery) -> Accepted | None:
    """What the filters of a query leave; None: they do more than narrow it, or take long, or the query is for what is
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
    """What the documents that filters leave are kept by: the template's number, its language, and the literals of the
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
    """What nativeAttributeMatch is of all documents that have the terms of filters; None: they score otherwise, or not
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
    """Whether a match of it is worth the same in all documents."""
    return type(match) is AttributeMatch and not match.column.is_array
