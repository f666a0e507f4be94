"""Requests that came before but for the text that a user has typed, and a vector: the search handler looks them up
here, and nothing else is read of them.

    prepared query + shape → TextShape, kept with the query       TextShape + parameters → KnownRequest, kept
    request → (the rest, the text, the vector)                    KnownRequest + text + vector → TextQuery

They are cut out by a kernel (`core/http/request_text.cpp`), and what is left is looked up as it came: with the order of
its parameters, its escapes and the header fields that an answer depends on. Of a request whose rest is not known the
shape is looked up (`container.search.shapes`), and the prepared query of that says whether it is a TextShape.

To see whether it is one, the prepared query is bound to a text of two made-up words: its tree must be these two words
and the filters of the statement, and nothing else (`container.search.text_templates`). Where words stand in the
statement (`contains`), its literals take the place of the text; where it asks for what is near, a vector does. A
request whose values say more than these, its page and its time goes the general way, as does every text that is not
plain; the answer is the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.admin.monitoring.requests import SearchFacts
from paperwasp.application.query_profiles import REFERENCE
from paperwasp.base.records import replace
from paperwasp.container.search.answer_cache import Key, key_of, sets_aside
from paperwasp.container.search.benchmark import is_benchmark
from paperwasp.container.search.binding import PreparedQuery
from paperwasp.container.search.config import NO_QUERY_LIMITS
from paperwasp.container.search.parameters import check_window
from paperwasp.container.search.rendering import JSON_TYPE, Coverage, hits_json
from paperwasp.container.search.request import JSON_TYPES
from paperwasp.container.search.settings import RequestValues
from paperwasp.container.search.shapes import Form, Pairs, Shape
from paperwasp.container.search.text_templates import (
    PROBE,
    USER_TEXTS,
    facets_of,
    near_template,
    text_template,
    words_template,
)
from paperwasp.container.search.tree import terms_say_language
from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.query_languages.yql.indexes import TEXT
from paperwasp.query_languages.yql.query_type import type_of
from paperwasp.query_languages.yql.simple_terms import DEFAULT_INDEX
from paperwasp.query_languages.yql.user_items import NOT_PARSED, UserQueryItem, UserTextItem
from paperwasp.query_languages.yql.user_text import UserText, type_of_text
from paperwasp.search.text_query import TextAnswer, TextQuery, TextTemplate

_QUERY: Final = "model.queryString"
_INPUT: Final = "ranking.features.query("
_JSON_FORMATS: Final = ("", "json")
_WINDOWS, _WINDOW_CHARACTERS = 32, 256
"""How many pages and times of the requests of one shape are kept, and of how long a text."""
_REFERENCE_LENGTH: Final = len(REFERENCE)
_HEADER_CHARACTERS: Final = 1024
"""The longest value of a header field that is kept."""


class Window(NamedTuple):
    """The page that a request asks for, and its time."""

    hits: int
    offset: int
    timeout_ns: int


class TextShape:
    """The requests of one shape: their template, and where their own values stand."""

    def __init__(self, prepared: PreparedQuery, template: TextTemplate, place: int, others: Sequence[int]) -> None:
        self._prepared = prepared
        self.template: Final = template
        self._place = place
        """Of the text among the parameters, of the statement that has the words, or of the vector."""
        self._others = others
        """Those of the other parameters that have a value of their own."""
        self.names: Final = prepared.names
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
        """The facts of an answer for monitoring, after all documents were searched."""
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


def text_shape(prepared: PreparedQuery, shape: Shape) -> TextShape | None:
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
        values = shape.values(prepared.names, prepared.defaults)
        ready = prepared.bind(_with_probe(values, prepared), 0)
    except (PaperwaspError, ValueError):
        return None
    made = text_template if has_text else near_template if vectors else words_template
    written = shape.written(prepared.names)
    template = made(prepared, ready, written) if _says_a_text_alone(values, bool(vectors)) else None
    grouping = prepared.grouping
    facets = () if grouping is None else None if grouping.has_parameters else facets_of(grouping.layouts)
    if template is None or facets is None or (facets and vectors):
        return None
    if facets:
        template = replace(template, facets=facets)
    own = {place, *places}
    return TextShape(prepared, template, place, [other for other, _ in form.setters if other not in own])


def _says_a_text_alone(values: RequestValues, has_vector: bool) -> bool:
    """Whether what a request says beside its shape is its text, its page, its time, and literals; or a vector, too."""
    plain = RequestValues(values.query, values.hits, values.offset, None, values.timeout_ms, given=values.given)
    return values == replace(plain, slots=values.slots, inputs=values.inputs if has_vector else {})


def _with_probe(values: RequestValues, prepared: PreparedQuery) -> RequestValues:
    """The values of a request, but with the probe for its text, if it has one."""
    probe = " ".join(PROBE)
    items = [item for item in _user_texts(prepared) if isinstance(item, UserTextItem)]
    named = {item.parameter: probe for item in items if item.parameter is not None}
    return replace(values, query=None if values.query is None else probe, given={**values.given, **named})


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


class OwnValues(NamedTuple):
    """The values that each request has of its own."""

    text: str
    """As a user has typed it; empty: nothing."""
    vector: bytes = b""
    """A JSON array; empty: there is none."""


class CutRequest(NamedTuple):
    """A request without its own values, and these."""

    key: Hashable
    values: OwnValues


class KnownRequest(NamedTuple):
    """All of a request but its own values: what the search handler needs to answer the next one like it."""

    texts: TextShape
    window: Window
    literals: tuple[str, ...]
    accepted: str
    """The format of the answer."""
    address: str
    """Where the content cluster is served."""
    name: str
    """That of the parameter whose value the text is."""
    others: frozenset[tuple[str, str]]
    """The parameters beside the text that the key of an answer is made of."""
    reads_cache: bool
    """Whether an answer that is kept may be given."""

    def values_of(self, pairs: Pairs, cut: CutRequest | None) -> OwnValues | None:
        """The own values of a request of these parameters; None: its vector is not written as kernels read it."""
        template = self.texts.template
        text = "" if template.composite == "near" else self.texts.text_of(pairs)
        if template.near is None:
            return OwnValues(text)
        return None if cut is None or not cut.values.vector or cut.values.text != text else cut.values

    def query(self, values: OwnValues, started_ns: int) -> TextQuery:
        """The query of a request with these that began at this moment of the monotonic clock."""
        text, vector = values
        hits, offset, timeout_ns = self.window
        return TextQuery(self.texts.template, text, hits, offset, started_ns + timeout_ns, self.literals, vector)

    def key(self, values: OwnValues) -> Key:
        """The key of its answer, as `cache.key_of` makes it."""
        return self.accepted, self.others | {(self.name, values.text)}


class KnownRequests:
    """The known requests that came last, under one configuration. Runs on the event loop."""

    def __init__(self) -> None:
        self._known: dict[Hashable, KnownRequest] = {}
        self._config: object = None

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, config: object) -> KnownRequest | None:
        """Return the known request with this key."""
        if config is not self._config:
            self._known.clear()
            self._config = config
        return self._known.get(key)

    def put(self, cut: CutRequest, known: KnownRequest) -> None:
        """Keeps it for other requests with the same key, under the configuration that was asked for last."""
        if len(self._known) >= limits.REQUEST_FORMS:
            self._known.clear()
        self._known[cut.key] = known


def cut_request(request: Request) -> CutRequest | None:
    """The request without its text and its vector; None: it has neither, its text is not plain, or what is left is too
    large to be kept."""
    query, body, headers = request.query, request.body, request.headers
    if len(query) + len(body) > limits.QUERY_VECTOR_BYTES or is_benchmark(request):
        return None
    is_post = bool(body) and request.method == "POST"
    if is_post and request.content_type not in JSON_TYPES:
        return None
    found = _core.cut_json(body) if is_post else _core.cut_query_string(query)
    if found is None:
        return None
    rest, text, vector = found
    if len(query) + len(body) - len(vector) > limits.REQUEST_FORM_BYTES:
        return None
    if text[:_REFERENCE_LENGTH] == REFERENCE:  # a query profile takes it for the name of another parameter
        return None
    accept, content_type = headers.get("accept"), headers.get("content-type")
    if max(len(accept or ""), len(content_type or "")) > _HEADER_CHARACTERS:
        return None
    return CutRequest((rest, query, accept, content_type) if is_post else (rest, accept), OwnValues(text, vector))


def known_request(texts: TextShape, pairs: Pairs, shape: Shape, accepted: str, address: str) -> KnownRequest | None:
    """Make a known request of one with these parameters; None: more of it depends on its text."""
    window, name = texts.window_of(pairs, shape), texts.name_of(pairs)
    if window is None or shape.form.repeats or texts.is_in_items(name, shape):
        return None
    others = frozenset([pair for pair in key_of(pairs, shape.form, accepted)[1] if pair[0] != name])
    reads_cache = texts.template.near is None and not sets_aside(pairs, shape.form)
    return KnownRequest(texts, window, texts.literals_of(shape), accepted, address, name, others, reads_cache)
