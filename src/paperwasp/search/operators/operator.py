"""The base of operators: what the items of a query tree are planned as (`operators.item`).

An operator is planned for one document type over one view and lives as long as the query does; it gives the documents
it matches as a bitmap, and the terms that ranking looks at.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import ClassVar, Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.document.types import PREDICATE, TensorFieldType
from paperwasp.errors import IllegalQuery, InvalidInput, InvalidQuery
from paperwasp.schema.model import Field, Schema
from paperwasp.search.operators.field_match import POSTING_NS, Bitmap, FieldMatch
from paperwasp.search.yql_syntax import Annotations
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.index import IndexSnapshot

BOTH: Final = 0
EITHER: Final = 1
FIRST_ONLY: Final = 2
"""How two lists of elements are joined: the numbers of core/attributes/elements.cpp."""

# The settings of rank profiles and queries for matching: words that are in many documents, and nearest neighbours.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#filter-threshold, #weakand and #approximate-threshold


class NeighborTuning(Struct, frozen=True):
    """How nearestNeighbor goes about it. Ratios are of the documents that the rest of the query leaves to all."""

    approximate_threshold: float = 0.02
    """Below this ratio all vectors are compared."""
    filter_first_threshold: float = 0.3
    """Below this ratio the graph is searched so that distances are only computed to what the rest leaves."""
    filter_first_exploration: float = 0.3
    """How far such a search looks around a node, from 0 to 1."""
    post_filter_threshold: float = 1.0
    """Above this ratio the graph is searched without the rest, for more hits than are wanted."""
    exploration_slack: float = 0.0
    """How much farther than the last of the nearest, as a share of its distance, a search follows nodes."""
    target_hits_max_adjustment_factor: float = 20.0
    """At most this multiple of the wanted hits is looked for without the rest."""
    time_budget_ms: float = math.inf
    """A whole number: after this time each search of a graph ends with what it has found. Infinite: there is none."""


class Tuning(Struct, frozen=True):
    """Shares of the documents, from 0 to 1. At 1 nothing of the kind is done."""

    filter_threshold: float = 1.0
    """Words of an index that are in a greater share of the documents only filter: ranking sees that they match, and
    neither where nor how often."""
    filter_thresholds: Mapping[str, float] = field(default_factory=dict)
    """The same of single fields, which goes before it."""
    filter_fields: Set[str] = frozenset()
    """Words of these fields only filter, however rare they are."""
    stopword_limit: float = 1.0
    """The share of documents above which a word is left out of a weakAnd."""
    adjust_target: float = 1.0
    """A document must score in a weakAnd what the part whose share is nearest to this does."""
    allow_drop_all: bool = False
    """Whether a weakAnd without anything left matches nothing; else its rarest part stays."""
    neighbors: NeighborTuning = NeighborTuning()
    """For nearestNeighbor."""

    def only_filters(self, name: str, frequency: int, documents: int) -> bool:
        """Whether a word that this number of documents have in a field only filters."""
        if name in self.filter_fields:
            return True
        return frequency > self.filter_thresholds.get(name, self.filter_threshold) * documents


NO_TUNING: Final = Tuning()


NOT_COUNTED: Final = (0, 1)
"""The document frequency of a term whose documents are not counted."""

NearSearch = tuple[int, int, int, bool, bool, float, float, int]
"""How plans search a graph in a view: the limit of lids, how many are wanted and explored, whether with the filter, and
by it first, exploration, slack, and how many documents are compared one by one in place of that, if they are."""


class Accepted(NamedTuple):
    """The documents of a view that the filters of a plan leave."""

    documents: Bitmap | None = None
    """The documents among which the plan looks; None: all."""
    attribute_match: float = 0.0
    """The nativeAttributeMatch of each."""
    near: NearSearch | None = None
    """How a graph is searched among them; None: none is."""


def no_clock() -> None:
    """There is always time."""


class SearchSpace(Struct, frozen=True, eq=False):
    """The documents of one type in one view."""

    schema: Schema
    limit: int
    """Lids are below this."""
    accept: Bitmap
    """The live documents of the type."""
    documents: int
    """How many those are."""
    dead: bool
    """Whether the index may hold documents that are not live."""
    index: IndexSnapshot
    columns: Mapping[str, ColumnView]
    inputs: Mapping[str, object] = field(default_factory=dict)
    """query(name) → number, text or tensor."""
    now_seconds: float = 0.0
    language: str = ""
    """The language of the query's text, as a tag; empty: English."""
    element_gaps: Mapping[str, float] = field(default_factory=dict)
    """By field: how far apart the rank profile says that its elements are."""
    tuning: Tuning = NO_TUNING
    """The settings of the rank profile and the query for words that are in many documents."""
    streamed: bool = False
    """Whether these are documents of streaming search, whose words are few enough to look through."""
    check_time: Callable[[], None] = no_clock
    """Raises OutOfTime when matching must end: called between operators, and by those that take long."""
    gram_match: str = "all"
    """How the grams of a text belong together: a composite of `operators.item`."""
    distribution_key: int = 0
    """The distribution key of the node."""
    own_lids: NDArray[np.uint32] | None = None
    """The lids in the node of documents that are read for one query."""
    cache: ViewCache | None = None
    """Operators of words that were planned before, and more that the view keeps; None: nothing is kept."""
    weak_and_skips: bool = True
    """Whether a weakAnd leaves out what cannot be among its best."""
    average_lengths: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By field: the mean lengths of it and of its elements, as far as a query of the same view needed them."""
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    """The time from which the budgets of searches in graphs are counted, by the clock of the kernels."""

    def empty(self) -> Bitmap:
        return np.zeros((self.limit + 63) // 64, np.uint64)

    def has_index(self, field: Field) -> bool:
        """Whether the field is searched by its text. Raises InvalidQuery where the schema says so, and it cannot be
        yet."""
        there = self.index.has((self.schema.document.name, field.name))
        if field.index is not None and not there:
            raise self._not_searched(field)
        return there

    def column(self, field: Field) -> ColumnView | None:
        """The field's column. Raises InvalidQuery where it is an attribute that is not searched by values, or not
        yet."""
        found = self.columns.get(field.name)
        if field.attribute is not None and (found is None or not found.is_searched):
            if found is None or field.type == PREDICATE:
                raise self._not_searched(field)
            if isinstance(field.type, TensorFieldType):  # Vespa: QueryValidator.java
                raise InvalidQuery(f"Cannot search for terms in '{field.name}': It is a tensor field")
            raise InvalidQuery(
                f"Field '{field.name}' of type '{field.type}' is not searched by values: there are geoLocation and"
                " geoBoundingBox for positions"
            )
        return found

    def _not_searched(self, field: Field) -> InvalidInput:
        if field.type == PREDICATE:
            return IllegalQuery(
                f"Index '{field.name}' is predicate attribute and can only be used in conjunction with a predicate"
                " query operator."
            )
        return InvalidQuery(
            f"Field '{field.name}' of type '{field.type}' in schema '{self.schema.name}' is not searched yet"
        )


class ViewCache:
    """Data of one view and document type that all its queries share: operators of words without annotations, and what
    compiled plans need. `search.bind` makes it; `search.plan.runs` and operators look there.

    Threads: any may ask for operators and keep them, since what two make is alike; `snapshot` and `filters` are for one
    at a time, which the lock of the content cluster sees to."""

    __slots__ = ("_operators", "filters", "snapshot", "space")

    def __init__(self, space: SearchSpace) -> None:
        """`space`: all documents of the type, without anything that is particular to one query."""
        self.space = space
        self.snapshot: _core.Snapshot | None = None
        """The same documents as compiled plans search them; None: no plan has needed them yet."""
        self.filters: dict[Hashable, Accepted] = {}
        """The documents that filters of compiled plans leave, by the template and the literals of these."""
        self._operators: dict[tuple[str, str, str], Operator] = {}

    def get(self, index: str, word: str, language: str) -> Operator | None:
        """Return the operator of a word, where one is kept."""
        return self._operators.get((index, word, language))

    def keep(self, index: str, word: str, language: str, operator: Operator) -> None:
        """Keep the operator of a word; where there are too many, the others go."""
        if len(self._operators) >= limits.VIEW_WORDS:
            self._operators = {}
        self._operators[index, word, language] = operator


class Operator:
    """A planned item."""

    element_join: ClassVar[int | None] = None
    """How it joins the elements of a field in which those that are run below it match: `BOTH`, `EITHER` or
    `FIRST_ONLY`; None: it is not made of others."""

    @abstractmethod
    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        """The documents that match.

        Bits of dead documents, of other types, and of those not in `within` may have any value. An operator that looks
        for a number of hits looks for them in `within`. The caller may change the bitmap, and does not change `within`.
        """

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        """The documents of `within` that could match, whatever what looks for a number of hits finds; None: all.

        It is what others look within that look for hits too. The caller may change the bitmap.
        """
        return self.bitmap(within)

    def look_within(self, ranked: Callable[[], Bitmap | None]) -> None:
        """Say of an operator that only ranks which documents those are (None: all); asked for only if it matters."""
        for child in self.children_of():
            child.look_within(ranked)

    def estimate(self) -> int:
        """About how many documents match, without looking at them all; not above the space's documents."""
        return sum(child.estimate() for child in self.children_of())

    def cost(self, limit: int) -> tuple[float, int]:
        """(nanoseconds to find the documents, rather too many; at most how many there are), of rows below `limit`.
        Looks at no posting and no row."""
        took_ns, counts = 0.0, []
        for child in self.children_of():
            one_ns, count = child.cost(limit)
            took_ns += one_ns
            counts.append(count)
        return (took_ns, self.most(counts, limit)) if counts else (limit * POSTING_NS, limit)

    def most(self, counts: Sequence[int], limit: int) -> int:
        """At most how many documents match, where those below match at most `counts`."""
        return min(limit, sum(counts))

    def children_of(self) -> tuple[Operator, ...]:
        """The operators below."""
        return ()

    def order(self) -> tuple[Operator, ...]:
        """The operators below that are run, in the order in which they are."""
        return self.children_of()

    @property
    def targets_hits(self) -> bool:
        """Whether it looks for a number of hits, so that these depend on the documents it looks within."""
        return any(child.targets_hits for child in self.order())

    @property
    def depends_on_hits(self) -> bool:
        """Whether its hits depend on the matches of the whole query, so that it must be asked last."""
        return any(child.depends_on_hits for child in self.order())

    @property
    def finds_alone(self) -> bool:
        """Whether, looking for a number of hits, it must not see the hits of others of its kind beside it."""
        return False

    def terms(self) -> Iterator[TermOperator]:
        """The terms below that count for ranking, in the order of the query."""
        return iter(())


class TermOperator(Operator):
    """A leaf of the query: documents that match in any of its fields."""

    def __init__(
        self, space: SearchSpace, matches: Sequence[FieldMatch], annotations: Annotations, length: int = 1
    ) -> None:
        self._space = space
        self.matches = tuple(matches)
        self.annotations = annotations
        self.length = length
        """Words, in a phrase."""

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self._space.empty()
        for match in self.matches:
            if within is None:
                match.add_to(result)
            else:
                match.add_within(result, within)
        return result

    def estimate(self) -> int:
        return min(self._space.documents, sum(match.estimate() for match in self.matches))

    def cost(self, limit: int) -> tuple[float, int]:
        took_ns, matches = 0.0, 0
        for match in self.matches:
            one_ns, count = match.cost(limit)
            took_ns += one_ns
            matches += count
        return took_ns, min(limit, matches)

    @cached_property
    def document_frequency(self) -> tuple[int, int]:
        """(documents with the term, documents), one number for all fields of the term as in Vespa.

        It is the sum over the fields, at most all documents; of alternatives, such as the parts of an equiv, the
        greatest. Nothing is counted in streaming search.

        Vespa: blueprintbuilder.cpp (`buildTerm`, `buildEquiv`), querynodes.cpp (`setDocumentFrequency`).
        """
        documents = self._space.documents
        if self._space.streamed or documents == 0 or not all(match.is_counted for match in self.matches):
            return NOT_COUNTED
        found = [match.document_frequencies() for match in self.matches]
        if len({len(each) for each in found}) == 1:
            return min(documents, max(sum(each) for each in zip(*found, strict=True))), documents
        return min(documents, sum(map(max, found))), documents

    def terms(self) -> Iterator[TermOperator]:
        if self.annotations.ranked:
            yield self
