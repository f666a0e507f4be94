"""The plain twin of core/rank/native_scores.cpp: nativeRank of hits, from where terms stand in them.

The features nativeFieldMatch, nativeProximity and nativeRank say what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.features.term_distance import UNDEFINED

Floats = NDArray[np.float64]
FIELD_NUMBERS: Final = (
    "index", "weight", "first_importance", "highest", "fixed_length", "least_length", "forward_importance",
    "near_highest", "pairs_weight",
)  # fmt: skip
"""The layout of `numbers`: this row for each field. A fixed length below 0 means the length of the field itself."""
FIELD_TABLES: Final = ("first", "count", "forward", "reverse")
LIST_NUMBERS: Final = ("field", "term", "owner", "length")
"""The numbers in `lists` for each: its field, the number of its word, the term (a place in `term_weights`), and
how many words that has."""
WEIGHTS: Final = ("match_divisor", "pairs_divisor", "match", "proximity", "attribute", "divisor")


def plain_native_scores(
    positions: Sequence[Sequence[Sequence[int]]],
    lengths: Sequence[Sequence[int]],
    numbers: Floats,
    tables: Sequence[Floats],
    lists: NDArray[np.uint32],
    term_weights: Floats,
    pairs: NDArray[np.uint32],
    pair_weights: Floats,
    weights: Floats,
    attribute: Floats,
) -> list[float]:
    """The score of each hit. `positions`: of each list in each hit. `lengths`: of each field in each hit."""
    fields = [dict(zip(FIELD_NUMBERS, row, strict=True)) for row in numbers.reshape(-1, len(FIELD_NUMBERS)).tolist()]
    four = len(FIELD_TABLES)
    tables_of = [dict(zip(FIELD_TABLES, tables[at : at + four], strict=True)) for at in range(0, len(tables), four)]
    rows = [dict(zip(LIST_NUMBERS, row, strict=True)) for row in lists.reshape(-1, len(LIST_NUMBERS)).tolist()]
    weight = dict(zip(WEIGHTS, weights.tolist(), strict=True))
    scores = []
    for hit in range(len(positions[0]) if positions else len(attribute)):
        found = [each[hit] for each in positions]
        match = proximity = 0.0
        for owner, term_weight in enumerate(term_weights.tolist()):
            of_term = 0.0
            for row, places in zip(rows, found, strict=True):
                if row["owner"] == owner and places:
                    at = row["field"]
                    of_term += _occurrences_worth(fields[at], tables_of[at], places, lengths[at][hit])
            match += of_term * term_weight
        if weight["match_divisor"] > 0:
            match /= weight["match_divisor"]
        for at, field in enumerate(fields):
            sum_ = 0.0
            own = [p for p, (a, _) in enumerate(pairs.reshape(-1, 2).tolist()) if rows[a]["field"] == at]
            for pair in own:
                a, b = pairs.reshape(-1, 2)[pair].tolist()
                ahead = _distance(found[a], rows[a]["length"], found[b])
                behind = _distance(found[b], rows[b]["length"], found[a])
                near = _value(tables_of[at]["forward"], ahead - 1) * field["forward_importance"]
                near += _value(tables_of[at]["reverse"], behind - 1) * (1.0 - field["forward_importance"])
                sum_ += near * float(pair_weights[pair]) / field["near_highest"]
            sum_ *= field["weight"]
            proximity += sum_ / field["pairs_weight"] if own and field["pairs_weight"] > 0 else sum_
        if weight["pairs_divisor"] > 0:
            proximity /= weight["pairs_divisor"]
        parts = (match, proximity, float(attribute[hit]) if len(attribute) else 0.0)
        total = 0.0
        for part, name in zip(parts, ("match", "proximity", "attribute"), strict=True):
            if weight[name] != 0:
                total += part * weight[name]
        scores.append(total / weight["divisor"])
    return scores


def _occurrences_worth(field: dict[str, float], tables: dict[str, Floats], places: Sequence[int], length: int) -> float:
    length = max(int(field["fixed_length"]) if field["fixed_length"] >= 0 else length, int(field["least_length"]))
    early = _value(tables["first"], places[0] * (len(tables["first"]) - 1) // max(length - 1, 1))
    often = _value(tables["count"], len(places) * (len(tables["count"]) - 1) // max(length, 1))
    share = field["first_importance"]
    return (early * share + often * (1.0 - share)) * field["weight"] / field["highest"]


def _value(table: Floats, place: int) -> float:
    return float(table[min(place, len(table) - 1)])


def _distance(firsts: Sequence[int], length: int, seconds: Sequence[int]) -> int:
    """The least distance from the end of a term to another later in the field."""
    apart = [b - (a + length - 1) for a in firsts for b in seconds if b > a + length - 1]
    return min([UNDEFINED, *apart])
