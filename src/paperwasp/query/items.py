"""Items: the nodes of a query tree.

Items are immutable and say what was asked, in Vespa's words; nothing about how it will be found. `index` is a field,
a fieldset, or a pseudo-field such as `sddocname`. Text in a `WordItem` is as the user wrote it: which tokens and stems
it stands for depends on the field and is decided when the query is planned (`paperwasp.operators`).

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Annotations:
    """What may be said about any term. Names and defaults are Vespa's."""

    weight: int = 100
    ranked: bool = True
    filter: bool = False
    stem: bool = True
    normalize_case: bool = True
    accent_drop: bool = True
    implicit_transforms: bool = True
    use_position_data: bool = True
    significance: float | None = None
    connectivity: tuple[int, float] | None = None
    """Unique id of the next term, and the strength 0..1."""
    id: int | None = None
    label: str | None = None


DEFAULT_ANNOTATIONS = Annotations()


@dataclass(frozen=True, slots=True)
class Item:
    """One node of a query tree."""

    def children_of(self) -> tuple[Item, ...]:
        return ()

    def walk(self) -> Iterator[Item]:
        """This item and all below it, parents first, left to right."""
        yield self
        for child in self.children_of():
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class TrueItem(Item):
    """Matches every document."""


@dataclass(frozen=True, slots=True)
class FalseItem(Item):
    """Matches no document."""


@dataclass(frozen=True, slots=True)
class _Composite(Item):
    children: tuple[Item, ...]

    def children_of(self) -> tuple[Item, ...]:
        return self.children


@dataclass(frozen=True, slots=True)
class AndItem(_Composite):
    """All children match."""


@dataclass(frozen=True, slots=True)
class OrItem(_Composite):
    """At least one child matches."""


@dataclass(frozen=True, slots=True)
class WeakAndItem(_Composite):
    """As OrItem, and only the best `target_hits` need to be found (0: Vespa's default, 100)."""

    target_hits: int = 0


@dataclass(frozen=True, slots=True)
class RankItem(_Composite):
    """The first child matches; the others only add to ranking."""


@dataclass(frozen=True, slots=True)
class NotItem(_Composite):
    """The first child matches and none of the others does."""


@dataclass(frozen=True, slots=True)
class TermItem(Item):
    """A leaf that looks into `index`."""

    index: str
    annotations: Annotations = field(default=DEFAULT_ANNOTATIONS, kw_only=True)


@dataclass(frozen=True, slots=True)
class WordItem(TermItem):
    """A word or text; of several tokens, a phrase. On an attribute, a value."""

    word: str


@dataclass(frozen=True, slots=True)
class PhraseItem(TermItem):
    """Words next to each other, in order."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RangeItem(TermItem):
    """Values between two bounds; None is open. `hit_limit` is Vespa's (positive: lowest first, negative: highest)."""

    low: float | int | None
    high: float | int | None
    low_inclusive: bool = True
    high_inclusive: bool = True
    hit_limit: int = 0
