"""Hits in the order of sort keys instead of relevance: the first ones of many are found without sorting the rest.

Level by level, rows that come before the last one wanted are sure; only among those that equal it is the next level
looked at.

Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.document.types import BOOL
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field, Sorting
from paperwasp.search.operators import SearchSpace
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.query import SortKey
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.sort_order import (
    MISSING_POLICIES,
    OrderKeys,
    PortableKey,
    SortOrder,
    order_keys,
    portable_key,
    rising,
)
from paperwasp.text.linguistics.collation import DEFAULT_LOCALE, LOWERCASE, Collation

RELEVANCE: Final = "[relevance]"
DOCUMENT_ID: Final = "[docid]"
SOURCE: Final = "[source]"

Lids = NDArray[np.uint32]
Scores = NDArray[np.float64]
ScoresOf = Callable[[Lids], Scores]
"""The relevance of rising lids."""
FeatureOf = Callable[[str], ScoresOf]
"""From the name of a sort-feature to its values. Raises InvalidQuery where there is none."""

_EVERYWHERE_EQUAL: Final[PortableKey] = (1, 0, 0)


@dataclass(frozen=True, slots=True)
class Level:
    """One sort key, for one document type. `view` None: the type has no such attribute, or it is no attribute."""

    field: str
    order: SortOrder
    view: ColumnView | None = None
    values_of: ScoresOf | None = None
    """Of lids in any order, where it is a feature that sorts."""

    def keys(self, lids: Lids, scores_of: ScoresOf) -> OrderKeys | None:
        """One number for each of these rising lids, lower for what comes first; None: all are equal."""
        if self.field == RELEVANCE:
            keys = rising(scores_of(lids))
        elif self.field == DOCUMENT_ID:
            keys = lids.astype(np.int64)
        elif self.values_of is not None:
            keys = rising(self.values_of(lids))
        else:
            return None if self.view is None else order_keys(self.view, lids, self.order)
        return ~keys if self.order.descending else keys

    def portable_keys(self, lids: Lids, scores: Scores) -> list[PortableKey]:
        """What sorts the hits among those of other types and clusters. `[source]` is the same for a whole cluster."""
        sign = -1 if self.order.descending else 1
        if self.field == RELEVANCE:
            return [(1, 0, sign * score) for score in scores.tolist()]
        if self.field == DOCUMENT_ID:
            return [(1, 0, sign * lid) for lid in lids.tolist()]
        if self.field == SOURCE:
            return [_EVERYWHERE_EQUAL] * len(lids)
        if self.values_of is not None:
            return [(1, 0, sign * value) for value in self.values_of(lids).tolist()]
        values = [None] * len(lids) if self.view is None else self.view.gather(lids)
        return [portable_key(self.view, value, self.order) for value in values]

    @property
    def numbers(self) -> NumericView | None:
        """The column, if its numbers as they are sort it."""
        if isinstance(self.view, NumericView) and not self.order.missing and self.view.data_type != BOOL:
            return self.view
        return None


def no_features(name: str) -> ScoresOf:
    """Of a document type without any that sort."""
    raise InvalidQuery(f"Could not sort by feature({name}): there are no sort-features")


def levels_of(
    keys: Sequence[SortKey], space: SearchSpace, language: str = "", features: FeatureOf = no_features
) -> tuple[Level, ...]:
    """The levels of a query in one document type. `language`: of the query, for collations that name no locale.

    Errors: InvalidQuery for what cannot be sorted by, unknown functions and policies.
    """
    return tuple(_level(key, space, language, features) for key in keys)


def _level(key: SortKey, space: SearchSpace, language: str, features: FeatureOf) -> Level:
    if key.missing and key.missing not in MISSING_POLICIES:
        raise InvalidQuery(f"Unknown missing policy '{key.missing}': known are {', '.join(MISSING_POLICIES)}")
    if key.field.startswith("["):
        return _built_in(key)
    if key.function == "feature":
        return Level(f"feature({key.field})", SortOrder(bool(key.descending)), values_of=features(key.field))
    field = space.schema.field_named(key.field)
    if field is None or field.attribute is None:  # of another type, or another moment: the container has checked it
        return Level(key.field, _order(key, Sorting(), is_text=False, language=language))
    view = space.columns.get(field.name)
    if view is None:
        raise InvalidQuery(f"The schema '{space.schema.name}' has no sortable attribute named: {key.field}")
    return Level(key.field, _order(key, _defaults(field), is_text=view.is_string, language=language), view)


def _built_in(key: SortKey) -> Level:
    if key.function or key.missing:
        raise InvalidQuery(f"Could not sort by '{key.field}' with a function or a missing policy: it has none")
    if key.field not in (RELEVANCE, DOCUMENT_ID, SOURCE):
        raise InvalidQuery(f"Could not sort by '{key.field}': known are {RELEVANCE}, {DOCUMENT_ID}, {SOURCE}")
    descending = key.field == RELEVANCE if key.descending is None else key.descending
    return Level(key.field, SortOrder(descending))


def _defaults(field: Field) -> Sorting:
    return (field.attribute and field.attribute.sorting) or Sorting()


def _order(key: SortKey, schema: Sorting, *, is_text: bool, language: str) -> SortOrder:
    descending = schema.order == "descending" if key.descending is None else key.descending
    collation = _collation(key, schema, language) if is_text or key.function else LOWERCASE
    return SortOrder(descending, collation, key.missing, key.missing_value)


def _collation(key: SortKey, schema: Sorting, language: str) -> Collation:
    """The query's settings, or else the schema's, as in Vespa; `uca` without a locale becomes `lowercase`."""
    strength = (key.strength or schema.strength).lower()
    locale = key.locale or schema.locale or language
    if key.function == "uca":
        return Collation("uca", locale or DEFAULT_LOCALE, strength)
    if key.function or schema.function != "uca":
        return Collation(key.function or schema.function)
    return Collation("uca", locale, strength) if locale else LOWERCASE


def first_hits(levels: Sequence[Level], matches: Bitmap, limit: int, wanted: int, scores_of: ScoresOf) -> Lids:
    """The first `wanted` of the matches, in order; ties: the lower lid first."""
    if wanted <= 0:
        return np.zeros(0, np.uint32)
    numbers = levels[0].numbers if levels else None
    if numbers is not None:
        near = _core.first_rows(numbers.values[:limit], matches, wanted, levels[0].order.descending)
    else:
        near = _core.bitmap_lids(matches, limit)
    return _first(levels, near, wanted, scores_of)


def _first(levels: Sequence[Level], lids: Lids, wanted: int, scores_of: ScoresOf) -> Lids:
    if not levels:
        return lids[:wanted]
    check_time()
    keys = levels[0].keys(lids, scores_of)
    if keys is None:
        return _first(levels[1:], lids, wanted, scores_of)
    if len(lids) <= wanted:
        return _sorted(levels, lids, scores_of)
    last = np.partition(keys, wanted - 1)[wanted - 1]
    sure, ties = lids[keys < last], lids[keys == last]
    rest = _first(levels[1:], ties, wanted - len(sure), scores_of)
    return np.concatenate([_sorted(levels, sure, scores_of), rest])


def _sorted(levels: Sequence[Level], lids: Lids, scores_of: ScoresOf) -> Lids:
    keys = []
    for level in levels:
        check_time()
        if (of_level := level.keys(lids, scores_of)) is not None:
            keys.append(of_level)
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(lids))
    return lids[order]
