"""Templates of queries for words, a user's text or the words of a statement, and for what is near to a vector: each
with filters beside it, and with groupings that only count values.

    prepared query, bound to a probe → TextTemplate, or None: it asks for more

What a statement asks for is read off its tree; what becomes of it, off the query that it was bound to: only where the
rewrites leave all as it was written does a request need no tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import orjson

from paperwasp.base.records import replace
from paperwasp.container.search.binding import PreparedQuery, ReadyQuery
from paperwasp.container.search.groups_json import list_head, root_head, turn_json
from paperwasp.document.tensor.value import Tensor
from paperwasp.query_languages.yql.lifting import template_of, value_of
from paperwasp.query_languages.yql.user_items import UserQueryItem, UserTextItem
from paperwasp.search.grouping.facets import is_facet
from paperwasp.search.grouping.merging import most_groups
from paperwasp.search.grouping.request import Level, ResultLayout
from paperwasp.search.grouping.shown_groups import turn_of
from paperwasp.search.operators.boolean import AndItem, OrItem, RankItem
from paperwasp.search.operators.in_operator import InItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Query
from paperwasp.search.text_query import FacetList, FacetRoot, ItemTemplate, TextTemplate
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS
from paperwasp.text.linguistics.detection import CJK, language_of

PROBE: Final = ("pwprobea", "pwprobeb")
"""Words that no rewrite of a tree knows."""
USER_TEXTS: Final = (UserQueryItem, UserTextItem)
"""Where the text of a user stands in a statement."""
_FILTERS: Final = (RangeItem, WordItem, InItem)
_NAMES: Final[Mapping[type[Item], str]] = {AndItem: "and", OrItem: "or", WeakAndItem: "weakAnd", WordItem: "or"}
"""How the words of a statement belong together."""


def text_template(prepared: PreparedQuery, ready: ReadyQuery, written: tuple[str, ...]) -> TextTemplate | None:
    """The template of a query whose text is the probe. `written`: the values of its statement. None: its tree is not a
    text with filters."""
    query, tree = ready.queries[0].query, prepared.tree
    parts = None if tree is None else _parts_of(tree.statement, len(prepared.names))
    if query is None or parts is None:
        return None
    main, filters = parts
    beside = next((child for child in main.children_of() if isinstance(child, NearestNeighborItem)), None)
    if not _has_vector(query, beside):
        return None
    found = query.match.tree
    left = list(found.children) if filters and isinstance(found, AndItem) else [found]
    for each in filters:
        item = each.fill(written)
        if item not in left:
            return None
        left.remove(item)
    if len(left) == len(PROBE):  # an and of words has taken in the filters beside it
        left = [AndItem(tuple(left))]
    if len(left) != 1:
        return None
    (text,) = left
    index = _index_of(text)
    target_hits = next((item.target_hits for item in text.walk() if isinstance(item, WeakAndItem)), 0)
    for composite, make in _COMPOSITES.items():
        if text == _joined(main, make(index, target_hits)):
            join = _JOINS.get(type(main), "")
            return TextTemplate(query, index, composite, filters, target_hits, near=beside, join=join)
    return None


_JOINS: Final[Mapping[type[Item], str]] = {OrItem: "or", RankItem: "rank"}
"""How a text and what is near belong together."""


def _has_vector(query: Query, near: NearestNeighborItem | None) -> bool:
    """Whether the only input of a query is the vector of what is near, if there is any."""
    inputs = query.rank.inputs
    if near is None:
        return not inputs
    is_constant = template_of(near).fill is None
    return is_constant and inputs.keys() == {near.tensor} and isinstance(inputs[near.tensor], Tensor)


def _joined(main: Item, text: Item) -> Item:
    """The text in its place beside what is near."""
    if isinstance(main, USER_TEXTS):
        return text
    own = text.children if isinstance(main, OrItem) and isinstance(text, OrItem) else (text,)
    children = [own if isinstance(child, USER_TEXTS) else (child,) for child in main.children_of()]
    return replace(main, children=tuple(chain.from_iterable(children)))  # type: ignore[call-arg]


_COMPOSITES: Final[Mapping[str, Callable[[str, int], Item]]] = {
    "or": lambda index, target_hits: OrItem(_words_of_probe(index)),
    "and": lambda index, target_hits: AndItem(_words_of_probe(index)),
    "weakAnd": lambda index, target_hits: WeakAndItem(_words_of_probe(index), target_hits),
    "phrase": lambda index, target_hits: PhraseItem(index, PROBE),
}
"""How the words of the probe may belong together."""


def words_template(prepared: PreparedQuery, ready: ReadyQuery, written: tuple[str, ...]) -> TextTemplate | None:
    """The template of a query without a user's text. None: its tree is not words with filters."""
    query, tree, names = ready.queries[0].query, prepared.tree, len(prepared.names)
    if query is None or tree is None or query.match.tree != _item_template(tree.statement, names).fill(written):
        return None
    if query.match.language and language_of(query.match.language) in CJK:  # words of several tokens are no phrases
        return None
    whole, others = _whole_of(tree.statement)
    words = [whole] if isinstance(whole, WordItem) else list(whole.children_of())
    if not words or type(whole) not in _NAMES or not all(map(_is_plain_word, words)):
        return None
    if not all(type(item) in _FILTERS for item in others):
        return None
    return TextTemplate(
        query,
        "",
        _NAMES[type(whole)],
        tuple([_item_template(item, names) for item in others]),
        whole.target_hits if isinstance(whole, WeakAndItem) else 0,
        tuple([(word.index, _item_template(word, names)) for word in words if isinstance(word, WordItem)]),
    )


def near_template(prepared: PreparedQuery, ready: ReadyQuery, written: tuple[str, ...]) -> TextTemplate | None:
    """The template of a query for what is near to its only vector. None: its tree is not that with filters."""
    query, tree, names = ready.queries[0].query, prepared.tree, len(prepared.names)
    if query is None or tree is None or query.match.tree != _item_template(tree.statement, names).fill(written):
        return None
    statement = tree.statement
    children = statement.children if isinstance(statement, AndItem) else (statement,)
    nears = [child for child in children if isinstance(child, NearestNeighborItem)]
    others = [child for child in children if not isinstance(child, NearestNeighborItem)]
    if len(nears) != 1 or not all(type(item) in _FILTERS for item in others):
        return None
    (near,) = nears
    if not _has_vector(query, near):
        return None
    return TextTemplate(query, "", "near", tuple([_item_template(item, names) for item in others]), near=near)


def _whole_of(statement: Item) -> tuple[Item, Sequence[Item]]:
    """Return the item that the words of a statement are in, and the items beside it, all of which must match."""
    if not isinstance(statement, AndItem):
        return statement, ()
    children = statement.children
    whole = next((child for child in children if isinstance(child, OrItem | WeakAndItem)), None)
    if whole is not None:
        return whole, [child for child in children if child is not whole]
    words = [child for child in children if isinstance(child, WordItem)]
    return AndItem(tuple(words)), [child for child in children if not isinstance(child, WordItem)]


def _is_plain_word(item: Item) -> bool:
    return type(item) is WordItem and item.annotations == DEFAULT_ANNOTATIONS and isinstance(item.word, str)


def _words_of_probe(index: str) -> tuple[Item, ...]:
    return tuple([WordItem(index, word) for word in PROBE])


def _index_of(item: Item) -> str:
    first = next((each for each in item.walk() if isinstance(each, WordItem | PhraseItem)), None)
    return "" if first is None else first.index


def _parts_of(statement: Item, names_count: int) -> tuple[Item, tuple[ItemTemplate, ...]] | None:
    """Return the item with the user's text, alone or beside what is near, and templates of the items that must match,
    too; None: the statement has more."""
    children = statement.children if isinstance(statement, AndItem) else (statement,)
    mains = [child for child in children if _has_text(child)]
    others = [child for child in children if not _has_text(child)]
    if len(mains) != 1 or not all(type(child) in _FILTERS for child in others):
        return None
    return mains[0], tuple([_item_template(child, names_count) for child in others])


def _has_text(item: Item) -> bool:
    """Whether it is the user's text, or that and what is near: the latter first, where the text only ranks."""
    children = item.children_of()
    texts, nears = [[type(child) in kinds for child in children] for kinds in (USER_TEXTS, (NearestNeighborItem,))]
    if isinstance(item, RankItem):
        return nears == [True, False] and texts == [False, True]
    is_either = isinstance(item, OrItem) and len(children) == 2 and any(texts) and any(nears)
    return isinstance(item, USER_TEXTS) or is_either


def _item_template(item: Item, names_count: int) -> ItemTemplate:
    """Return the template of an item, for literals as they are written, then the values of `names_count` parameters."""
    template = template_of(item)
    fill = template.fill
    if fill is None:
        return ItemTemplate(lambda written: item, ())

    def made(written: tuple[str, ...]) -> Item:
        literals = len(written) - names_count
        return fill([*map(value_of, written[:literals]), *written[literals:]])

    return ItemTemplate(made, template.slots)


_ALL: Final = 2**32
"""More groups than there can be."""


def facets_of(layouts: Iterable[ResultLayout]) -> tuple[FacetRoot, ...] | None:
    """The lists of all statements; None: they do more than count values, or show a later page."""
    roots = [_root_of(layout) for layout in layouts]
    return None if None in roots else tuple([root for root in roots if root is not None])


def _root_of(layout: ResultLayout) -> FacetRoot | None:
    lists: dict[int, FacetList] = {}
    for step, request in enumerate(layout.requests):
        if layout.pages.by_path or not is_facet(request):
            return None
        (level,) = request.levels
        most = most_groups(level)
        if level.tag in lists or (most is not None and most < 1):
            return None
        lists[level.tag] = _list_of(layout, level, _ALL if most is None else most, step)
    return FacetRoot(root_head(layout.number, "").decode(), tuple([found for _, found in sorted(lists.items())]))


def _list_of(layout: ResultLayout, level: Level, most: int, step: int) -> FacetList:
    shown = layout.maxes.get(level.tag, 0)
    tags = dict.fromkeys([each.tag for each in level.aggregations if each.tag in layout.labels])
    labels = [layout.labels[tag] for tag in tags]
    return FacetList(
        str(level.expression.arguments[0]),
        0 if not level.order else 1 if level.order[0].is_ascending else -1,
        most,
        shown or _ALL,
        list_head("grouplist", layout.labels.get(level.tag, "")).decode(),
        turn_json(turn_of(layout, level, step)).decode() if shown else "",
        tuple([orjson.dumps(label).decode() + ":" for label in labels if not label.startswith("$")]),
    )
