"""Rank profiles with the expressions of queries, kept by the texts of these. The least recently used make room.

schema, name of the profile, RankExpressions → what was made of them: a compiled profile, or why there is none
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from threading import Lock
from typing import Final, Generic, NamedTuple, TypeVar

from paperwasp.limits import expressions as limits
from paperwasp.ranking import CompiledProfile, Unexecuted
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.model import Schema

Kept = TypeVar("Kept")
_Key = tuple[int, str, RankExpressions]

ENTRY_BYTES: Final = 16 * 1024
"""About what a compiled profile takes beside what is counted: its mappings, and trees to explain it by."""
CHARACTER_BYTES: Final = 100
"""About what the tree of an expression takes for each character of its text."""


class _Entry(NamedTuple, Generic[Kept]):
    schema: Schema
    """Kept, so that no other schema has its identity."""
    kept: Kept
    size_bytes: int


class KeptProfiles(Generic[Kept]):
    """What was made of rank profiles with expressions of queries. Any thread."""

    def __init__(self, profiles: int = limits.KEPT_PROFILES, size_bytes: int = limits.KEPT_BYTES) -> None:
        self._most, self._most_bytes = profiles, size_bytes
        self._entries: OrderedDict[_Key, _Entry[Kept]] = OrderedDict()
        self._lock = Lock()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, schema: Schema, name: str, expressions: RankExpressions) -> Kept | None:
        """What is kept for a profile of this schema with these expressions."""
        key = id(schema), name, expressions
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found.kept

    def add(self, schema: Schema, name: str, expressions: RankExpressions, made: Kept, size_bytes: int) -> Kept:
        """Keeps what was made, unless another thread came before. Returns what is kept."""
        key = id(schema), name, expressions
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                return found.kept
            self._entries[key] = _Entry(schema, made, size_bytes)
            self.size_bytes += size_bytes
            while len(self._entries) > self._most or (self.size_bytes > self._most_bytes and len(self._entries) > 1):
                self.size_bytes -= self._entries.popitem(last=False)[1].size_bytes
        return made

    def keep_only(self, schemas: Collection[int]) -> None:
        """Forgets what is of other schemas than those of these identities."""
        with self._lock:
            for key in [key for key in self._entries if key[0] not in schemas]:
                self.size_bytes -= self._entries.pop(key).size_bytes


def compiled_bytes(expressions: RankExpressions, profile: CompiledProfile | Unexecuted | None = None) -> int:
    """About how much memory a profile takes that was compiled with these expressions; None: it has none."""
    texts = CHARACTER_BYTES * sum(len(text) for text in expressions if text is not None)
    return ENTRY_BYTES + texts + (profile.size_bytes if isinstance(profile, CompiledProfile) else 0)
