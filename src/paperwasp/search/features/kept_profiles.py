"""Rank profiles with the expressions of queries, kept by the texts of these. The least recently used make room.

schema, name of the profile, RankExpressions → what was made of them: a compiled profile, or why there is none
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Generic, TypeVar

from paperwasp.base.cache import Cache
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


class KeptProfiles(Generic[Kept]):
    """A cache of rank profiles with expressions of queries. Any thread."""

    def __init__(self, profiles: int = limits.KEPT_PROFILES, size_bytes: int = limits.KEPT_BYTES) -> None:
        self._entries: Cache[_Key, tuple[Schema, Kept]] = Cache(entries=profiles, size=size_bytes)
        """With the schema, so that no other has its identity."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """The size of all entries in bytes."""
        return self._entries.size

    def get(self, schema: Schema, name: str, expressions: RankExpressions) -> Kept | None:
        """Return the entry of a profile of this schema with these expressions."""
        found = self._entries.get((id(schema), name, expressions))
        return None if found is None else found[1]

    def add(self, schema: Schema, name: str, expressions: RankExpressions, made: Kept, size_bytes: int) -> Kept:
        """Keeps what was made, unless another thread came before. Returns what is kept."""
        return self._entries.put_first((id(schema), name, expressions), (schema, made), size_bytes)[1]

    def keep_only(self, schemas: Collection[int]) -> None:
        """Forgets what is of other schemas than those of these identities."""
        self._entries.drop_where(lambda key, _: key[0] not in schemas)


def compiled_bytes(expressions: RankExpressions, profile: CompiledProfile | Unexecuted | None = None) -> int:
    """About how much memory a profile takes that was compiled with these expressions; None: it has none."""
    texts = CHARACTER_BYTES * sum(len(text) for text in expressions if text is not None)
    return ENTRY_BYTES + texts + (profile.size_bytes if isinstance(profile, CompiledProfile) else 0)
