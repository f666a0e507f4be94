"""Items: the nodes of a query tree.

Items are immutable and say what was queried, in Vespa's words; nothing about how it will be found. `index` is a field,
a fieldset, or a pseudo-field such as `sddocname`. Text in a `WordItem` is as the user wrote it: which tokens and stems
it stands for depends on the field and is decided when the query is planned (`paperwasp.operators`).

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from paperwasp.query.annotations import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.records import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """One node of a query tree."""

    def children_of(self) -> tuple[Item, ...]:
        return ()

    def with_children(self, children: tuple[Item, ...]) -> Item:
        """This item over other children; one without children as it is."""
        return replace(self, children=children) if self.children_of() else self  # type: ignore[call-arg]

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
class LabeledItem(_Composite):
    """Its only child; ranking sees `score` as the raw score of `label` for the documents that match."""

    label: str
    score: float


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
    """Words next to each other, in order. A part that is not text is a TermItem or an EquivItem on the same index.

    A part that is text has the annotations of the phrase; what annotates a part alone makes it a WordItem.
    """

    words: tuple[str | Item, ...]


@dataclass(frozen=True, slots=True)
class PrefixItem(TermItem):
    """Words, or values, that begin with the text."""

    word: str


@dataclass(frozen=True, slots=True)
class SuffixItem(TermItem):
    """Words, or values, that end with the text."""

    word: str


@dataclass(frozen=True, slots=True)
class SubstringItem(TermItem):
    """Words, or values, that have the text in them."""

    word: str


@dataclass(frozen=True, slots=True)
class RegexItem(TermItem):
    """Values in which the regular expression (RE2's syntax) is found."""

    expression: str


@dataclass(frozen=True, slots=True)
class FuzzyItem(TermItem):
    """Values at most `max_edits` insertions, deletions and substitutions away; with `prefix`, values that begin
    so. The first `prefix_length` characters must be the same."""

    word: str
    max_edits: int = 2
    prefix_length: int = 0
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class UriItem(TermItem):
    """Tokens of a URI next to each other, in order. An anchor ties them to the start or end of the field."""

    text: str
    start_anchor: bool = False
    end_anchor: bool = False


@dataclass(frozen=True, slots=True)
class WordAlternativesItem(TermItem):
    """Forms of one word, any of which counts: (form, exactness from 0 to 1)."""

    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class EquivItem(Item):
    """Terms on one index that rank as one: words, phrases, alternatives, integers."""

    children: tuple[Item, ...]
    annotations: Annotations = field(default=DEFAULT_ANNOTATIONS, kw_only=True)

    def children_of(self) -> tuple[Item, ...]:
        return self.children


@dataclass(frozen=True, slots=True)
class NearItem(Item):
    """Terms on one index within `distance` positions of each other; `ordered`: in the order of the query.

    None of the `exclusions` may be within `exclusion_distance` of them.
    """

    children: tuple[Item, ...]
    distance: int = 2
    ordered: bool = False
    exclusions: tuple[Item, ...] = ()
    exclusion_distance: int = -1
    """-1: half of the distance, rounded up."""

    def children_of(self) -> tuple[Item, ...]:
        return self.children + self.exclusions

    def with_children(self, children: tuple[Item, ...]) -> Item:
        count = len(self.children)
        return replace(self, children=children[:count], exclusions=children[count:])


@dataclass(frozen=True, slots=True)
class SameElementItem(Item):
    """One element of the field `index` in which all children match.

    The index of a child is below that field (`name` for `persons.name`, `key`, `value`); empty: the element itself.
    """

    index: str
    children: tuple[Item, ...]
    elements: tuple[int, ...] = ()
    """Only in elements with these numbers, from 0; empty: in any."""

    def children_of(self) -> tuple[Item, ...]:
        return self.children


@dataclass(frozen=True, slots=True)
class InItem(TermItem):
    """One of many values: all of them str, or all int. What is to be found in a numeric field may be text."""

    values: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class WeightedSetItem(TermItem):
    """One of many values, each with a weight that ranking sees in place of the field's: (value, weight)."""

    tokens: tuple[tuple[str | int, int], ...]


@dataclass(frozen=True, slots=True)
class DotProductItem(TermItem):
    """As WeightedSetItem; the raw score is the sum of the products of the weights of query and field."""

    tokens: tuple[tuple[str | int, int], ...]


@dataclass(frozen=True, slots=True)
class WandItem(TermItem):
    """The `target_hits` best by that dot product, among those above `score_threshold`."""

    tokens: tuple[tuple[str | int, int], ...]
    target_hits: int = 0
    score_threshold: float = 0.0
    threshold_boost_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class NearestNeighborItem(TermItem):
    """The `target_hits` documents whose tensor is nearest to the query's tensor `query(tensor)`.

    `tuning` holds the annotations for the search of a graph: `hnsw.approximateThreshold` and its kin, name and value.
    An exact search has no use for it, nor for `approximate` and `explore_additional_hits`.
    """

    tensor: str
    target_hits: int = 0
    approximate: bool = True
    explore_additional_hits: int = 0
    distance_threshold: float | None = None
    tuning: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GeoLocationItem(TermItem):
    """Positions within `radius_degrees` of a place; below zero: anywhere, and ranking sees the distance."""

    latitude: float
    longitude: float
    radius_degrees: float = -1.0
    aspect: int | None = None
    """How much a distance along a parallel counts, in parts of 2^32; 0: all of it; None: the cosine of the latitude."""


@dataclass(frozen=True, slots=True)
class GeoBoundingBoxItem(TermItem):
    """Positions in a rectangle of degrees."""

    south: float
    west: float
    north: float
    east: float


@dataclass(frozen=True, slots=True)
class PredicateItem(TermItem):
    """Predicates that the attributes make true: (name, value, subqueries), a bit for each subquery (all: 2**64 - 1)."""

    attributes: tuple[tuple[str, str, int], ...] = ()
    ranges: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RangeItem(TermItem):
    """Values between two bounds; None is open. `hit_limit` is Vespa's (positive: lowest first, negative: highest)."""

    low: float | int | None
    high: float | int | None
    low_inclusive: bool = True
    high_inclusive: bool = True
    hit_limit: int = 0


@dataclass(frozen=True, slots=True)
class TextRangeItem(TermItem):
    """Texts between two bounds in the order of their characters; None is open."""

    low: str | None
    high: str | None
    low_inclusive: bool = True
    high_inclusive: bool = True
