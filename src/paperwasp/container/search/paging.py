"""Pages that follow each other: each begins behind the last hit of the page before, however deep that is.

A page says where it ended as a token, which the next request gives back. A token is of one query: the order of the
hits must be the same. It names the last hit by its relevance or sort keys, its cluster and its global id, so that
nothing is counted off: a node finds the hits behind at the cost of the first page. What is written between two pages
may be missed or seen twice, as with an offset; all else is seen once.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

import orjson
from msgspec import Struct

from paperwasp.errors import IllegalQuery
from paperwasp.search.query import AFTER_ALL, BEFORE_ALL, Hit, SearchAfter
from paperwasp.storage.attributes.sort_order import PortableKey

_TOKEN_CHARACTERS: Final = 64 * 1024
_GID_DIGITS: Final = 24


class After(Struct, frozen=True):
    """Where a page begins. `cluster` is the place of the last hit's cluster among those that are searched; None: the
    page is the first."""

    cluster: int | None = None
    gid: bytes = b""
    relevance: float = 0.0
    sort_keys: tuple[Any, ...] = ()

    def within(self, cluster: int) -> SearchAfter | None:
        """The position for one cluster: of hits equal to the last one, those of earlier clusters have been shown."""
        if self.cluster is None:
            return None
        gid = self.gid if cluster == self.cluster else AFTER_ALL if cluster < self.cluster else BEFORE_ALL
        return SearchAfter(self.relevance, self.sort_keys, gid)


def token_of(cluster: str, hit: Hit) -> str:
    """The token of the page that ends with this hit."""
    relevance = hit.relevance if isfinite(hit.relevance) else str(hit.relevance)
    keys = [[*key[:-1], _as_json(key[-1])] for key in hit.sort_keys or ()]
    return urlsafe_b64encode(orjson.dumps([cluster, hit.gid.hex(), relevance, *keys])).decode().rstrip("=")


def _as_json(value: object) -> object:
    """A value of a sort key in JSON: bytes as the characters of those numbers, what is not finite as a text."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value.decode("latin-1") if isinstance(value, bytes) else value


def read_after(token: str, clusters: Sequence[str], keys: int) -> After:
    """Where the page begins that follows the one of the token. Errors: IllegalQuery."""
    if not token:
        return After()
    try:
        if len(token) > _TOKEN_CHARACTERS:
            raise ValueError("it is too long")
        content = orjson.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        cluster, gid, relevance, *sort_keys = content
        if not isinstance(gid, str) or len(gid) != _GID_DIGITS or len(sort_keys) != keys:
            raise ValueError("it is of another query")
        return After(clusters.index(cluster), bytes.fromhex(gid), float(relevance), tuple(map(_key, sort_keys)))
    except (ValueError, TypeError):
        problem = "must be what the page before ended with"
        raise IllegalQuery(f"Could not set 'searchAfter' to '{token[:100]}': {problem}") from None


def _key(shown: Any) -> PortableKey:
    """One sort key. Errors: ValueError, TypeError."""
    place, kind, value = shown
    if type(place) is not int or type(kind) is not int:
        raise TypeError
    if kind == 1 and isinstance(value, str):
        return place, kind, value.encode("latin-1")
    if kind == 0 and type(value) in (int, float):
        return place, kind, value
    if kind == 0 and value in ("inf", "-inf"):
        return place, kind, float(value)
    raise TypeError
