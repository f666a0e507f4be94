"""Requests that came before but for the text that a user has typed, and a vector: the search handler looks them up
here, and nothing else is read of them.

    request → (the rest, the text, the vector) → KnownRequest, kept
    KnownRequest + text + vector → TextQuery

They are cut out by a kernel (`core/http/request_text.cpp`), and what is left is looked up as it came: with the order of
its parameters, its escapes and the header fields that an answer depends on. A request whose rest is not known goes by
`container.search.shapes`, which says what is kept here.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.application.query_profiles import REFERENCE
from paperwasp.container.search.cache import Key, key_of, sets_aside
from paperwasp.container.search.rendering import is_benchmark
from paperwasp.container.search.request import JSON_TYPES
from paperwasp.container.search.shapes import Pairs, Shape
from paperwasp.container.search.text_requests import TextRequests, Window
from paperwasp.core import _core
from paperwasp.http.messages import Request
from paperwasp.search.text_query import TextQuery

_REFERENCE_LENGTH: Final = len(REFERENCE)
_HEADER_CHARACTERS: Final = 1024
"""The longest value of a header field that is kept."""


class OwnValues(NamedTuple):
    """The values that each request has of its own."""

    text: str
    """What a user has typed; empty: nothing."""
    vector: bytes = b""
    """A JSON array; empty: there is none."""


class CutRequest(NamedTuple):
    """A request without its own values, and these."""

    key: Hashable
    values: OwnValues


class KnownRequest(NamedTuple):
    """All of a request but its own values: what the search handler needs to answer the next one like it."""

    texts: TextRequests
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
    """What is known of the requests that came last, under one configuration. Runs on the event loop."""

    def __init__(self) -> None:
        self._known: dict[Hashable, KnownRequest] = {}
        self._config: object = None

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, config: object) -> KnownRequest | None:
        """What is known of requests with this key."""
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


def known_request(texts: TextRequests, pairs: Pairs, shape: Shape, accepted: str, address: str) -> KnownRequest | None:
    """What is known of a request of these parameters; None: more of it depends on its text."""
    window, name = texts.window_of(pairs, shape), texts.name_of(pairs)
    if window is None or shape.form.repeats or texts.is_in_items(name, shape):
        return None
    others = frozenset([pair for pair in key_of(pairs, shape.form, accepted)[1] if pair[0] != name])
    reads_cache = texts.template.near is None and not sets_aside(pairs, shape.form)
    return KnownRequest(texts, window, texts.literals_of(shape), accepted, address, name, others, reads_cache)
