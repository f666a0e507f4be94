"""The names that a simple query may put before a colon, and how words of fields that are not text are read.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#match and `query-command` there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct


class Reading(Struct, frozen=True):
    """The reading of the words of an index."""

    is_whole: bool = False
    """True where a value is one word, whatever stands there: `match: word` and `match: exact`."""
    terminator: str = ""
    """The text that ends such a word; empty: white space, or a sign that looks like an end."""
    phrases: bool = False
    """True where words without white space between them are a phrase: `query-command: phrase-segmenting`."""
    literal: str = ""
    """The index of the same words as they are, which queries also rank by; empty: there is none."""


TEXT: Final = Reading()


class Indexes(frozenset[str]):
    """Names, and the readings of those of them that are not read as text."""

    _readings: dict[str, Reading]
    _by_lower_case: dict[str, str]
    _hashed: int

    def __new__(cls, names: Iterable[str] = (), readings: Mapping[str, Reading] | None = None) -> Indexes:
        made = super().__new__(cls, names)
        made._readings = {name: each for name, each in (readings or {}).items() if each != TEXT}
        made._by_lower_case = {name.lower(): name for name in sorted(made, reverse=True)}
        made._hashed = hash((frozenset(made), frozenset(made._readings.items())))
        return made

    @property
    def has_literals(self) -> bool:
        """Tell whether there are indexes with others of the same words as they are."""
        return any(reading.literal for reading in self._readings.values())

    def reading(self, name: str) -> Reading:
        """How words of this index are read."""
        return self._readings.get(name, TEXT)

    def canonical(self, name: str) -> str | None:
        """The name of the index that a query names in any case; None: there is none. Of several the first by name."""
        return name if name in self else self._by_lower_case.get(name.lower())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexes) and frozenset.__eq__(self, other) and self._readings == other._readings

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hashed

    def __reduce__(self) -> tuple[type[Indexes], tuple[list[str], dict[str, Reading]]]:
        return Indexes, (list(self), self._readings)


NO_INDEXES: Final = Indexes()
