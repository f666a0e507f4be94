"""Requests for words and filters: what is the same for all of one shape. `container.search.kept_queries` has it made
once for a shape, `container.search.known_requests` uses it.

    prepared query + shape → TextRequests, kept beside it      TextRequests + parameters → KnownRequest → TextQuery

To see whether a prepared query is of this kind, it is bound to a text of two made-up words: its tree must be these two
words and the filters of the statement, and nothing else. Where words stand in the statement (`contains`), its literals
take the place of the text (`container.search.text_requests`); where it asks for what is near, a vector does. A request
whose values say more than these, its page and its time goes the general way, as does every text that is not plain; the
answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import orjson

from paperwasp import limits
from paperwasp.admin.monitoring.requests import SearchFacts
from paperwasp.base.records import replace
from paperwasp.container.search.binding import PreparedQuery, ReadyQuery
from paperwasp.container.search.config import NO_QUERY_LIMITS
from paperwasp.container.search.groups_json import list_head, root_head, turn_json
from paperwasp.container.search.parameters import check_window
from paperwasp.container.search.rendering import JSON_TYPE, Coverage, hits_json
from paperwasp.container.search.settings import RequestValues
from paperwasp.container.search.shapes import Form, Pairs, Shape
from paperwasp.container.search.tree import terms_say_language
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Response
from paperwasp.query_languages.yql.indexes import TEXT
from paperwasp.query_languages.yql.lifting import template_of, value_of
from paperwasp.query_languages.yql.query_type import type_of
from paperwasp.query_languages.yql.simple_terms import DEFAULT_INDEX
from paperwasp.query_languages.yql.user_items import NOT_PARSED, UserQueryItem, UserTextItem
from paperwasp.query_languages.yql.user_text import UserText, type_of_text
from paperwasp.search.grouping.facets import is_facet
from paperwasp.search.grouping.merging import most_groups
from paperwasp.search.grouping.request import Layout, Level
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
from paperwasp.search.query_language import DEFAULT_ANNOTATIONS
from paperwasp.search.text_query import FacetList, FacetRoot, ItemTemplate, TextAnswer, TextTemplate
from paperwasp.text.linguistics.detection import CJK, language_of

_QUERY: Final = "model.queryString"
_INPUT: Final = "ranking.features.query("
_JSON_FORMATS: Final = ("", "json")
_WINDOWS, _WINDOW_CHARACTERS = 32, 256
"""How many pages and times of the requests of one shape are kept, and of how long a text."""


class Window(NamedTuple):
    """The page that a request asks for, and its time."""

    hits: int
    offset: int
    timeout_ns: int


class TextRequests:
    """The requests of one shape: their template, and where their own values stand."""

    def __init__(self, prepared: PreparedQuery, template: TextTemplate, place: int, others: Sequence[int]) -> None:
        self._prepared = prepared
        self.template: Final = template
        self._place = place
        """Of the text among the parameters, of the statement that has the words, or of the vector."""
        self._others = others
        """Those of the other parameters that have a value of their own."""
        self.names: Final = _names_of(prepared)
        """The parameters whose values are in the statement, the text among them where it is one of these."""
        self._windows: dict[tuple[str, ...], Window | None] = {}
        self.cluster: Final = prepared.clusters[0].cluster
        parameters = prepared.parameters
        self.may_be_kept: Final = (
            template.near is None
            and prepared.answering.is_repeatable
            and not (parameters.no_cache or parameters.no_cache_write)
        )
        """Whether the answer is kept: to the same request, until something is written. Vectors hardly come again, and
        are long."""

    def name_of(self, pairs: Pairs) -> str:
        """The name of the parameter whose value a request has of its own."""
        return pairs[self._place][0]

    def text_of(self, pairs: Pairs) -> str:
        """The text of a request, or its statement."""
        return pairs[self._place][1]

    def literals_of(self, shape: Shape) -> tuple[str, ...]:
        """The values that filters and words are made of."""
        return shape.written(self.names) if self.template.filters or self.template.words else ()

    def is_in_items(self, name: str, shape: Shape) -> bool:
        """Whether filters or words are made of a parameter's value."""
        if name not in self.names:
            return False
        slot, template = len(shape.literals) + self.names.index(name), self.template
        return any(slot in item.slots for item in (*template.filters, *[word for _, word in template.words]))

    def window_of(self, pairs: Pairs, shape: Shape) -> Window | None:
        """The page that a request asks for, and its time; None: it goes the general way."""
        key = tuple([pairs[place][1] for place in self._others])
        window = self._windows.get(key, ...)
        if window is ...:
            window = self._window(shape)
            if sum(map(len, key)) <= _WINDOW_CHARACTERS:
                if len(self._windows) >= _WINDOWS:
                    self._windows.clear()
                self._windows[key] = window
        return window

    def response_of(self, answer: TextAnswer) -> Response:
        """The answer as JSON."""
        about = self.about(answer.total_count, answer.hits, answer.documents, answer.summary_ns)
        body = self._with_left(answer) if answer.left else answer.body
        return Response(200, body, JSON_TYPE, about=about)

    @staticmethod
    def about(total_count: int, hits: int, documents: int, summary_ns: int) -> SearchFacts:
        """What an answer is about, after all documents were searched."""
        return total_count, hits, Coverage(documents, 100, 1, 1), -1, summary_ns

    def _with_left(self, answer: TextAnswer) -> bytes:
        """The JSON with the hits that are left in it."""
        places, hits = zip(*answer.left, strict=True)
        parts: list[bytes] = []
        start = 0
        for place, hit in zip(
            places, hits_json(self.cluster, hits, self._prepared.answering.summary_fields), strict=True
        ):
            parts += (answer.body[start:place], hit)
            start = place
        return b"".join((*parts, answer.body[start:]))

    def _window(self, shape: Shape) -> Window | None:
        prepared = self._prepared
        try:
            values = shape.values(self.names, prepared.defaults)
            check_window(prepared.parameters, values)
            if not _says_a_text_alone(values, self.template.near is not None):
                return None
            ready = prepared.bind(_with_probe(values, prepared), 0)
        except (PaperwaspError, ValueError):
            return None
        query = ready.queries[0].query
        if query is None or ready.timeout_ms <= 0 or query.order.hits > limits.MAX_HITS:
            return None
        if ready.hits <= 0 and not self.template.facets:
            return None
        return Window(ready.hits, ready.offset, query.deadline.at_ns)


def text_requests(prepared: PreparedQuery, shape: Shape) -> TextRequests | None:
    """The requests of the shape of one that was prepared; None: they say more than a text or a vector, a page, a
    timeout and the values of filters."""
    if not prepared.serves_others or shape.is_whole or not _is_plain(prepared):
        return None
    form, has_text = shape.form, prepared.tree is not None and prepared.tree.text is not None
    texts, vectors, statement = _places_of_text(prepared, shape), places_of_vectors(form), form.statement
    if len(texts) != has_text or len(vectors) > 1 or (not has_text and statement is None):
        return None
    places = [*texts, *vectors]
    place = places[0] if places or statement is None else statement
    try:
        values = shape.values(_names_of(prepared), prepared.defaults)
        ready = prepared.bind(_with_probe(values, prepared), 0)
    except (PaperwaspError, ValueError):
        return None
    made = text_template if has_text else near_template if vectors else words_template
    written = shape.written(_names_of(prepared))
    template = made(prepared, ready, written) if _says_a_text_alone(values, bool(vectors)) else None
    facets = _facets_of(prepared)
    if template is None or facets is None or (facets and vectors):
        return None
    if facets:
        template = replace(template, facets=facets)
    own = {place, *places}
    return TextRequests(prepared, template, place, [other for other, _ in form.setters if other not in own])


def _facets_of(prepared: PreparedQuery) -> tuple[FacetRoot, ...] | None:
    """What its groupings show; None: they do more than count values, or depend on a request's values."""
    grouping = prepared.grouping
    if grouping is None:
        return ()
    return None if grouping.has_parameters else facets_of(grouping.layouts)


def _names_of(prepared: PreparedQuery) -> tuple[str, ...]:
    return prepared.statement.names if prepared.statement else ()


def _says_a_text_alone(values: RequestValues, has_vector: bool) -> bool:
    """Whether what a request says beside its shape is its text, its page, its time, and literals; or a vector, too."""
    plain = RequestValues(values.query, values.hits, values.offset, None, values.timeout_ms, given=values.given)
    return values == replace(plain, slots=values.slots, inputs=values.inputs if has_vector else {})


def _user_texts(prepared: PreparedQuery) -> list[UserQueryItem | UserTextItem]:
    """Where users' texts stand in the statement."""
    tree = prepared.tree
    return [] if tree is None else [item for item in tree.statement.walk() if isinstance(item, USER_TEXTS)]


def _places_of_text(prepared: PreparedQuery, shape: Shape) -> list[int]:
    """The places among the parameters of the only text, and of `query`, whether it is that or not."""
    names = [None if isinstance(item, UserQueryItem) else item.parameter for item in _user_texts(prepared)]
    return [
        place
        for place, name in enumerate(shape.form.full_names)
        if name == _QUERY or (len(names) == 1 and shape.pairs[place][0] == names[0])
    ]


def _with_probe(values: RequestValues, prepared: PreparedQuery) -> RequestValues:
    """The values of a request, but with the probe for its text, if it has one."""
    probe = " ".join(PROBE)
    items = [item for item in _user_texts(prepared) if isinstance(item, UserTextItem)]
    named = {item.parameter: probe for item in items if item.parameter is not None}
    return replace(values, query=None if values.query is None else probe, given={**values.given, **named})


def places_of_vectors(form: Form) -> list[int]:
    """The places of inputs among the parameters, which may be vectors."""
    return [place for place, name in enumerate(form.full_names) if name.startswith(_INPUT)]


def _is_plain(prepared: PreparedQuery) -> bool:
    """Whether nothing but the values of its text, its page and its time is different between its requests."""
    parameters, answering = prepared.parameters, prepared.answering
    presentation = parameters.presentation
    shows_more = presentation.format not in _JSON_FORMATS or presentation.callback or presentation.timing
    notes_more = parameters.trace.level or parameters.list_features
    asks_more = parameters.collapse.fields or prepared.failure
    merges = answering.rules or answering.without_summary or len(prepared.clusters) != 1
    if shows_more or notes_more or asks_more or merges or not _has_plain_texts(prepared):
        return False
    cluster = prepared.clusters[0]
    has_own_steps = len(prepared.rewrites) > 1 or len(prepared.checks) > 1
    is_merged = answering.is_merged and not (cluster.ranking is not None and prepared.ranks_on_node)
    return not (has_own_steps or cluster.errors or is_merged or cluster.limits != NO_QUERY_LIMITS)


def _has_plain_texts(prepared: PreparedQuery) -> bool:
    """Whether the core may read the text of the statement, if it has one, and may detect its language."""
    tree = prepared.tree
    if tree is None or terms_say_language(tree.statement):
        return False
    return tree.text is None or all(_is_plain_text(item, tree.text) for item in _user_texts(prepared))


def _is_plain_text(item: UserQueryItem | UserTextItem, text: UserText) -> bool:
    """Whether words of a text are read one by one, each for itself: only then may the core split it."""
    default_index, kind = text.default_index, type_of(text.type)
    if isinstance(item, UserTextItem):
        if item.parameter is None or item.nfkc or not item.fields_allowed or item.grammar.name in NOT_PARSED:
            return False
        default_index, kind = item.default_index, type_of_text(item, text)
    reading = text.indexes.reading(DEFAULT_INDEX if default_index is None else default_index)
    is_read_so = kind.syntax == "simple" or kind.composite == "phrase"
    return is_read_so and kind.tokenization == "internal" and not kind.profile and reading == TEXT and not text.filter


# Templates of queries for words, a user's text or the words of a statement, and for what is near to a vector: each
# with filters beside it. `container.search.text_requests` makes one of the first request of a shape.
#
# What a statement asks for is read off its tree; what becomes of it, off the query that it was bound to: only where the
# rewrites leave all as it was written does a request need no tree of its own.


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
    parts = None if tree is None else _parts_of(tree.statement, _names_count(prepared))
    if query is None or parts is None:
        return None
    main, filters = parts
    beside = _near_of(main)
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


def _near_of(main: Item) -> NearestNeighborItem | None:
    """What is near beside the text; None: nothing."""
    return next((child for child in main.children_of() if isinstance(child, NearestNeighborItem)), None)


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
    query, tree, names = ready.queries[0].query, prepared.tree, _names_count(prepared)
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
    query, tree, names = ready.queries[0].query, prepared.tree, _names_count(prepared)
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
    """What the words of a statement are in, and the items beside that, all of which must match."""
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


def _names_count(prepared: PreparedQuery) -> int:
    """How many parameters the statement names."""
    return len(prepared.statement.names) if prepared.statement else 0


def _words_of_probe(index: str) -> tuple[Item, ...]:
    return tuple([WordItem(index, word) for word in PROBE])


def _index_of(item: Item) -> str:
    first = next((each for each in item.walk() if isinstance(each, WordItem | PhraseItem)), None)
    return "" if first is None else first.index


def _parts_of(statement: Item, names_count: int) -> tuple[Item, tuple[ItemTemplate, ...]] | None:
    """What the user's text stands in, alone or beside what is near, and what makes the items that must match besides;
    None: the statement has more."""
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
    """What makes the item, given the literals as they are written and then the values of `names_count` parameters."""
    template = template_of(item)
    fill = template.fill
    if fill is None:
        return ItemTemplate(lambda written: item, ())

    def made(written: tuple[str, ...]) -> Item:
        literals = len(written) - names_count
        return fill([*map(value_of, written[:literals]), *written[literals:]])

    return ItemTemplate(made, template.slots)


# Grouping statements that only count values, as compiled plans take them: the JSON of their lists but for the groups.
#
# What a list shows is `search.grouping.shown_groups`, and its JSON `container.search.groups_json`.


_ALL: Final = 2**32
"""More groups than there can be."""


def facets_of(layouts: Iterable[Layout]) -> tuple[FacetRoot, ...] | None:
    """The lists of all statements; None: they do more than count values, or show a later page."""
    roots = [_root_of(layout) for layout in layouts]
    return None if None in roots else tuple([root for root in roots if root is not None])


def _root_of(layout: Layout) -> FacetRoot | None:
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


def _list_of(layout: Layout, level: Level, most: int, step: int) -> FacetList:
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
