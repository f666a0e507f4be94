"""Prepared queries, which the search handler keeps for requests of the same shape under one configuration. The least
recently used make room.

Where a literal or a parameter of YQL may decide how the statement reads, its value is part of the key: the shape alone
leads to which these are (`_Fixed`), and shape and values together to the query. Runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.container.search.binding import PreparedQuery
from paperwasp.container.search.known_requests import TextShape, places_of_vectors, text_shape
from paperwasp.container.search.settings import RequestValues
from paperwasp.container.search.shapes import Shape

ENTRY_BYTES: Final = 8 * 1024
"""About what a prepared query takes whose texts are short."""
BYTES_PER_CHARACTER: Final = 60
"""About what it takes for each character of its texts: an item for a few of them."""


class _Fixed(NamedTuple):
    """The literals and parameters whose values are part of the key, too."""

    literals: tuple[int, ...]
    names: tuple[str, ...]


class CachedQuery(NamedTuple):
    """A query that is kept."""

    query: PreparedQuery
    values: RequestValues | None
    """The values of the requests that it is kept for, if all have the same; None: they have values of their own."""
    texts: TextShape | None
    """The same requests, where they are a user's text alone; None: they are more."""


class PreparedCache:
    """The prepared queries of one container, in the order of their last use."""

    def __init__(self, queries: int = limits.PREPARED_QUERIES, size_bytes: int = limits.PREPARED_QUERIES_BYTES) -> None:
        self._entries: Cache[Hashable, CachedQuery | _Fixed] = Cache(entries=queries, size=size_bytes)
        self._config: object = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """The bytes of all kept queries, about."""
        return self._entries.size

    def get(self, shape: Shape, config: object) -> CachedQuery | None:
        """The query that is kept for requests of the shape."""
        if config is not self._config:
            self._begin(config)
        found = self._entries.get(shape.key)
        if isinstance(found, _Fixed):
            found = self._entries.get((shape.key, shape.fixed(*found)))
        assert not isinstance(found, _Fixed)
        return found

    def put(self, shape: Shape, query: PreparedQuery, values: RequestValues, config: object) -> None:
        """Keeps the query of a request with these values, unless it is of one request alone, or its texts are long."""
        characters = sum([len(value) for _, value in shape.pairs])
        of_vectors = sum([len(shape.pairs[place][1]) for place in places_of_vectors(shape.form)])
        if not query.serves_others or characters - of_vectors > limits.PREPARED_QUERY_CHARACTERS:
            return
        if config is not self._config:
            self._begin(config)
        size_bytes = ENTRY_BYTES + BYTES_PER_CHARACTER * characters + query.compiled_bytes
        key, fixed = shape.key, self._merge_fixed(shape, query)
        if fixed.literals or fixed.names:
            self._entries.put(key, fixed, BYTES_PER_CHARACTER * characters)
            key = key, shape.fixed(*fixed)
        kept = CachedQuery(query, values if shape.is_whole else None, text_shape(query, shape))
        self._entries.put(key, kept, size_bytes)

    def _merge_fixed(self, shape: Shape, query: PreparedQuery) -> _Fixed:
        """The literals and names that are fixed in the statement, and in those of the shape that were read before."""
        statement = query.statement
        if shape.is_whole or statement is None:
            return _Fixed((), ())
        before = self._entries.get(shape.key)
        known = before if isinstance(before, _Fixed) else _Fixed((), ())
        return _Fixed(
            tuple(sorted({*known.literals, *statement.fixed_literals})),
            tuple(sorted({*known.names, *statement.fixed_names})),
        )

    def _begin(self, config: object) -> None:
        """Forgets what was prepared under another configuration, which is released then with its schemas."""
        self._entries.clear()
        self._config = config
