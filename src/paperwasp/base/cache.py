"""A cache: what was made of a key is kept, and what was not asked for the longest makes room.

There is one for everything that is made once and asked for again. A cache is bounded by the number of its entries, by
their sizes, or by both. What a size means is said where the cache is made: bytes, or the characters of texts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Values by key, in the order of their last use. Any thread may call its methods."""

    def __init__(
        self,
        *,
        entries: int | None = None,
        size: int | None = None,
        largest: int | None = None,
        forget: Callable[[Key, Value], object] | None = None,
    ) -> None:
        """`entries` and `size` are the most of all entries, `largest` the greatest size of one; None: no bound.
        `forget` is called with each entry that leaves the cache, but for `clear`; it must not use the cache."""
        self._most, self._most_size = entries, size
        self._largest = size if largest is None else largest
        self._forget = forget
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()
        self.size = 0
        """The sum of the sizes of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        """Return whether there is a value, which is not used by this."""
        return key in self._entries

    def values(self) -> list[Value]:
        """All values, the next to make room first."""
        with self._lock:
            return [value for value, _ in self._entries.values()]

    def get(self, key: Key) -> Value | None:
        """The value of a key, which becomes the last to make room."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, size: int = 0) -> None:
        """Keeps a value in place of the one before. One that is too large is not kept, and the one before is gone."""
        with self._lock:
            self._drop(key)
            self._add(key, value, size)

    def put_first(self, key: Key, value: Value, size: int = 0) -> Value:
        """Keeps a value unless another thread came before. Returns what is kept, or would be if it were smaller."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                return found[0]
            self._add(key, value, size)
            return value

    def drop(self, key: Key) -> None:
        """Forgets one entry, if it is there."""
        with self._lock:
            self._drop(key)

    def drop_where(self, is_unwanted: Callable[[Key, Value], bool]) -> None:
        """Forgets all entries that are unwanted."""
        with self._lock:
            for key in [key for key, (value, _) in self._entries.items() if is_unwanted(key, value)]:
                self._drop(key)

    def clear(self) -> None:
        """Forgets all entries."""
        with self._lock:
            self._entries.clear()
            self.size = 0

    def _add(self, key: Key, value: Value, size: int) -> None:
        if self._largest is not None and size > self._largest:
            return
        self._entries[key] = value, size
        self.size += size
        while self._is_full():
            self._drop(next(iter(self._entries)))

    def _is_full(self) -> bool:
        too_large = self._most_size is not None and self.size > self._most_size
        return too_large or (self._most is not None and len(self._entries) > self._most)

    def _drop(self, key: Key) -> None:
        gone = self._entries.pop(key, None)
        if gone is not None:
            self.size -= gone[1]
            if self._forget is not None:
                self._forget(key, gone[0])
