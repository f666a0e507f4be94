"""Hits in the order of sort keys instead of relevance: the first ones of many are found without sorting the rest.

Level by level, rows that come before the last one wanted are sure; only among those that equal it is the next level
looked at.

Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.document.types import BOOL
from paperwasp.errors import InvalidQuery
from paperwasp.ranking import CompiledProfile
from paperwasp.schema.model import Sorting
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.operators import SearchSpace
from paperwasp.search.operators.field_match import Bitmap, Lids
from paperwasp.search.phases.scoring import scores_of
from paperwasp.search.query import BEFORE_ALL, SearchAfter, SortKey
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
from paperwasp.storage.documents.document_store import GID_BYTES
from paperwasp.text.linguistics.collation import DEFAULT_LOCALE, LOWERCASE, Collation

RELEVANCE: Final = "[relevance]"
DOCUMENT_ID: Final = "[docid]"
SOURCE: Final = "[source]"

Scores = NDArray[np.float64]
ScoresOf = Callable[[Lids], Scores]
"""The relevance of rising lids."""
FeatureOf = Callable[[str], ScoresOf]
"""From the name of a sort-feature to its values. Raises InvalidQuery where there is none."""

_EVERYWHERE_EQUAL: Final[PortableKey] = (1, 0, 0)


class SortLevel(Struct, frozen=True):
    """One sort key, for one document type. `view` None: the type has no such attribute, or it is no attribute."""

    field: str
    order: SortOrder
    view: ColumnView | None = None
    values_of: ScoresOf | None = None
    """The values of lids in any order, where a feature sorts."""

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
        """Return the keys that sort hits among those of other types and clusters; a cluster is one `[source]`."""
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
    """Refuse every feature: the document type has none that sort."""
    raise InvalidQuery(f"Could not sort by feature({name}): there are no sort-features")


def levels_of(
    keys: Sequence[SortKey], space: SearchSpace, language: str = "", features: FeatureOf = no_features
) -> tuple[SortLevel, ...]:
    """The levels of a query in one document type. `language`: of the query, for collations that name no locale.

    Errors: InvalidQuery for what cannot be sorted by, unknown functions and policies.
    """
    return tuple(_level(key, space, language, features) for key in keys)


def _level(key: SortKey, space: SearchSpace, language: str, features: FeatureOf) -> SortLevel:
    if key.missing and key.missing not in MISSING_POLICIES:
        raise InvalidQuery(f"Unknown missing policy '{key.missing}': known are {', '.join(MISSING_POLICIES)}")
    if key.field.startswith("["):
        return _built_in(key)
    if key.function == "feature":
        return SortLevel(f"feature({key.field})", SortOrder(bool(key.descending)), values_of=features(key.field))
    field = space.schema.field_named(key.field)
    if field is None or field.attribute is None:  # of another type, or another moment: the container has checked it
        return SortLevel(key.field, _order(key, Sorting(), is_text=False, language=language))
    view = space.columns.get(field.name)
    if view is None:
        raise InvalidQuery(f"The schema '{space.schema.name}' has no sortable attribute named: {key.field}")
    sorting = field.attribute.sorting or Sorting()
    return SortLevel(key.field, _order(key, sorting, is_text=view.is_string, language=language), view)


def _built_in(key: SortKey) -> SortLevel:
    if key.function or key.missing:
        raise InvalidQuery(f"Could not sort by '{key.field}' with a function or a missing policy: it has none")
    if key.field not in (RELEVANCE, DOCUMENT_ID, SOURCE):
        raise InvalidQuery(f"Could not sort by '{key.field}': known are {RELEVANCE}, {DOCUMENT_ID}, {SOURCE}")
    descending = key.field == RELEVANCE if key.descending is None else key.descending
    return SortLevel(key.field, SortOrder(descending))


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


def first_hits(levels: Sequence[SortLevel], matches: Bitmap, limit: int, wanted: int, scores_of: ScoresOf) -> Lids:
    """The first `wanted` of the matches, in order; ties: the lower lid first."""
    if wanted <= 0:
        return np.zeros(0, np.uint32)
    numbers = levels[0].numbers if levels else None
    if numbers is not None:
        near = _core.first_rows(numbers.values[:limit], matches, wanted, levels[0].order.descending)
    else:
        near = _core.bitmap_lids(matches, limit)
    return _first(levels, near, wanted, scores_of)


def _first(levels: Sequence[SortLevel], lids: Lids, wanted: int, scores_of: ScoresOf) -> Lids:
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


def _sorted(levels: Sequence[SortLevel], lids: Lids, scores_of: ScoresOf) -> Lids:
    keys = []
    for level in levels:
        check_time()
        if (of_level := level.keys(lids, scores_of)) is not None:
            keys.append(of_level)
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(lids))
    return lids[order]


# The hits behind the last one of the page before, found by comparing, without sorting those before it.
#
# The row of that hit says where each level is cut, unless it was changed since or is of another type or cluster: then
# the levels' values are searched for the place.


Mask = NDArray[np.bool_]
_FIRST_STREAMED: Final = 1 << 32
"""Above all lids."""
_BEHIND_ALL: Final = 1 << 128
"""Above all that stands for a lid."""


def streamed_lid(gid: bytes) -> int:
    """Return a number in place of the lid that a document of mode streaming lacks; it rises as the global ids do."""
    return _FIRST_STREAMED + int.from_bytes(gid, "big")


def located(after: SearchAfter, view: View) -> SearchAfter:
    """Where the page before ended, in a view. The hit's row may be dead; of several, the page begins behind the first,
    so that nothing is left out."""
    return replace(after, lid=_place_of(after.gid, view))


def _place_of(gid: bytes, view: View) -> int:
    """Return what stands for the first row of a document; once for a page, and by looking at all rows.

    No table has the first one: the store and the writer's map (`storage.documents.gid_map`) know only the live row.
    """
    if len(gid) != GID_BYTES:
        return -1 if gid <= BEFORE_ALL else _BEHIND_ALL
    words = view.gids[: view.limit].view(np.uint32)
    first, second, third = np.frombuffer(gid, np.uint32)
    rows = np.flatnonzero(words[:, 0] == first)
    rows = rows[(words[rows, 1] == second) & (words[rows, 2] == third)]
    if len(rows) == 0:
        return -1
    number = view.document_types[rows[0]]
    streamed = {kind.number for name, kind in view.layout.types.items() if view.modes.get(name) == "streaming"}
    return streamed_lid(gid) if number in streamed else int(rows[0])


def within_batch(after: SearchAfter, gids: Sequence[bytes]) -> SearchAfter:
    """Return where a page begins in a batch whose lids are the places of rising global ids."""
    return replace(after, lid=bisect_right(gids, after.lid, key=streamed_lid) - 1)


def ranked_behind(lids: Lids, scores: Scores, after: SearchAfter) -> Mask:
    """Mark the hits behind `after` in the order of relevance."""
    mask: Mask = (scores < after.relevance) | ((scores == after.relevance) & (lids > after.lid))
    return mask


def sorted_behind(levels: Sequence[SortLevel], lids: Lids, scores_of: ScoresOf, limit: int, after: SearchAfter) -> Mask:
    """Mark the hits behind `after` in the order of the levels; lids rise below `limit`. Errors: InvalidQuery."""
    behind = np.zeros(len(lids), np.bool_)
    equal = np.ones(len(lids), np.bool_)
    if len(after.sort_keys) != len(levels):
        raise InvalidQuery("'searchAfter' is of a query that sorts by other keys")
    for level, key in zip(levels, after.sort_keys, strict=True):
        keys = level.keys(lids, scores_of)
        scores = scores_of(lids) if level.field == RELEVANCE else np.zeros(len(lids))
        try:
            later, same = _cut(level, lids, keys, scores, limit, after.lid, key)
        except TypeError:
            raise InvalidQuery("'searchAfter' is of a query that sorts by other keys") from None
        behind |= equal & later
        equal &= same
    mask: Mask = behind | (equal & (lids > after.lid))
    return mask


def _cut(
    level: SortLevel, lids: Lids, keys: NDArray[np.int64] | None, scores: Scores, limit: int, lid: int, key: Any
) -> tuple[Mask, Mask]:
    """Which rows come later than the key, and which are the same."""
    if len(lids) == 0 or keys is None:
        own = level.portable_keys(lids[:1], scores[:1])
        return np.full(len(lids), own > [key]), np.full(len(lids), own == [key])
    at = int(np.searchsorted(lids, lid)) if 0 <= lid < limit else len(lids)
    if at < len(lids) and lids[at] == lid and level.portable_keys(lids[at : at + 1], scores[at : at + 1]) == [key]:
        return keys > keys[at], keys == keys[at]
    distinct, places = np.unique(keys, return_index=True)
    low, high = 0, len(distinct)
    while low < high:
        middle = (low + high) // 2
        place = places[middle]
        if level.portable_keys(lids[place : place + 1], scores[place : place + 1])[0] < key:
            low = middle + 1
        else:
            high = middle
    if low == len(distinct):
        nothing = np.zeros(len(lids), np.bool_)
        return nothing, nothing
    place = places[low]
    is_there = level.portable_keys(lids[place : place + 1], scores[place : place + 1])[0] == key
    same = keys == distinct[low]
    return (keys > distinct[low], same) if is_there else (keys >= distinct[low], np.zeros(len(lids), np.bool_))


# Sort-features: values that a rank profile computes to sort hits by.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html#sorting-by-rank-feature


_BLOCK_LIDS = 16_384


def sort_feature(setting: QuerySetting, profile: CompiledProfile, name: str) -> ScoresOf:
    """Return the function for values of a feature; -inf where one is no finite number. Errors: InvalidQuery."""
    if setting.space.streamed:
        raise InvalidQuery(f"Could not sort by feature({name}): streaming search does not sort by features")
    program = profile.sort_features.get(name)
    if program is None:
        raise InvalidQuery(
            f"Could not sort by feature({name}): it is not among the sort-features of rank profile '{profile.name}' in"
            f" schema '{setting.space.schema.name}'"
        )

    def values_of(lids: Lids) -> Scores:
        order = np.argsort(lids, kind="stable")
        values = np.empty(len(lids))
        for start in range(0, len(lids), _BLOCK_LIDS):
            check_time()
            block = order[start : start + _BLOCK_LIDS]
            values[block] = scores_of(Block(setting, lids[block]), program)
        return np.where(np.isfinite(values), values, -np.inf)

    return values_of
