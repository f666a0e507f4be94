"""Answers kept for the same request, as long as nothing was written that could change them.

An answer is kept with the stamps of the views that it was made from (`coordination.messages.documents.StampRequest`). A
request that finds it asks the clusters for the stamps that are in force now: when they are the same, so is the answer.
An answer from a newer view of a cluster takes the place of all from older ones, which nobody can be given. The least
recently used make room. Runs on the event loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.container.search.shapes import Form
from paperwasp.http.messages import Response

Key = tuple[str, frozenset[tuple[str, str]] | tuple[tuple[str, str], ...]]
ENTRY_BYTES: Final = 600
"""About what keeping an answer takes beside its body and the texts of the request."""


class CachedAnswer(Struct, frozen=True):
    """An answer and what it depends on."""

    response: Response
    stamps: Mapping[str, int]
    """Content cluster → the stamp of its view."""


class AnswerCache:
    """The answers of one container, in the order of their last use."""

    def __init__(self, size_bytes: int = limits.SEARCH_CACHE_BYTES) -> None:
        self._answers: Cache[Key, CachedAnswer] = Cache(size=size_bytes, forget=self._forget)
        self._stamps: dict[str, int] = {}
        """Content cluster → the stamp of the view that all kept answers of it were made from."""
        self._keys: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        """Content cluster → the requests whose answers depend on it."""
        self._config: object = None
        self.lookups = 0
        self.hits = 0
        """Lookups that found an answer, valid or not."""

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def size_bytes(self) -> int:
        """The bytes of all kept answers, about."""
        return self._answers.size

    def get(self, key: Key, config: object) -> CachedAnswer | None:
        """The answer that is kept for a request, or None. The caller checks whether it is still valid."""
        self._keep_only(config)
        self.lookups += 1
        found = self._answers.get(key)
        if found is None:
            return None
        self.hits += 1
        return found

    def may_have(self, key: Key, config: object) -> bool:
        """Whether an answer is kept for a request; counts no look-up."""
        self._keep_only(config)
        return key in self._answers

    def put(self, key: Key, response: Response, config: object, stamps: Mapping[str, int]) -> None:
        """Keeps an answer unless it is too large."""
        if len(response.body) > limits.SEARCH_CACHE_ANSWER_BYTES:
            return
        self._keep_only(config)
        size = len(response.body) + sum([len(name) + len(value) for name, value in key[1]]) + ENTRY_BYTES
        self.drop(key)
        if not stamps.items() <= self._stamps.items():
            self._forget_older(stamps)
        for cluster in stamps:
            self._keys[cluster][key] = None
        self._answers.put(key, CachedAnswer(response, stamps), size)

    def _keep_only(self, config: object) -> None:
        """Forgets what was made under another SearchConfig, which is released then with its schemas and files."""
        if config is not self._config:
            self.clear()
            self._config = config

    def _forget_older(self, stamps: Mapping[str, int]) -> None:
        """Forgets what was made from other views of these clusters."""
        for cluster, stamp in stamps.items():
            if self._stamps.get(cluster) != stamp:
                for key in list(self._keys[cluster]):
                    self.drop(key)
        self._stamps.update(stamps)

    def drop(self, key: Key) -> None:
        """Forgets the answer to a request, if it is kept."""
        self._answers.drop(key)

    def _forget(self, key: Key, gone: CachedAnswer) -> None:
        for cluster in gone.stamps:
            del self._keys[cluster][key]

    def clear(self) -> None:
        self._answers.clear()
        self._stamps.clear()
        self._keys.clear()


def key_of(pairs: Sequence[tuple[str, str]], form: Form, format_: str) -> Key:
    """The key by which requests are the same: parameters, and the format of the answer. The order of parameters counts
    only where one is given several times, maybe by its aliases: the last is in force."""
    if form.caching:
        pairs = [pair for place, pair in enumerate(pairs) if place not in form.caching]
    return format_, tuple(pairs) if form.repeats else frozenset(pairs)


def sets_aside(pairs: Sequence[tuple[str, str]], form: Form) -> bool:
    """Whether a request is not to be given an answer that is kept."""
    given = [pairs[place] for place in form.caching]
    return any(name.lower() == "nocache" and value.lower() != "false" for name, value in given)
