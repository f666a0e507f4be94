"""Boost tables: functions of a small whole number, computed beforehand. The native rank features look them up.

Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#boost-tables
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.search.features.family import Floats, RankSetup

DEFAULT_SIZE: Final = 256
_ARGUMENTS: Final = {"expdecay": 2, "loggrowth": 3, "linear": 2}


class BoostTable:
    """The values of one table."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.max = max(0.0, float(values.max(initial=0.0)))
        self.last = len(values) - 1
        """The index of the last value, which also stands for everything beyond it."""

    def __getitem__(self, places: NDArray[Any]) -> Floats:
        found: Floats = self.values[np.minimum(places, self.last)]
        return found


@lru_cache(maxsize=256)
def boost_table(text: str) -> BoostTable:
    """The table that `text` describes, such as `expdecay(8000,12.50)` or `linear(1.5,0,512)`."""
    match = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", text)
    if match is None or match[1] not in _ARGUMENTS:
        raise LanguageError(f"no boost table {text!r}: expected expdecay(w,t), loggrowth(w,t,s) or linear(w,t)")
    count = _ARGUMENTS[match[1]]
    try:
        numbers = [float(argument) for argument in match[2].split(",")]
    except ValueError:
        raise LanguageError(f"boost table {text!r} takes numbers") from None
    if len(numbers) not in (count, count + 1):
        raise LanguageError(f"boost table {text!r}: {match[1]} takes {count} numbers and, if wanted, a size")
    size = numbers[count] if len(numbers) > count else DEFAULT_SIZE
    if not 1 <= size <= limits.BOOST_TABLE_VALUES:
        raise LanguageError(f"boost table {text!r}: the size must be 1 to {limits.BOOST_TABLE_VALUES}")
    return BoostTable(_values(match[1], numbers, np.arange(int(size), dtype=np.float64)))


def _values(kind: str, numbers: list[float], x: Floats) -> Floats:
    with np.errstate(all="ignore"):
        values: Floats
        if kind == "expdecay":
            values = numbers[0] * np.exp(-(x / numbers[1]))
        elif kind == "loggrowth":
            values = numbers[0] * np.log(1.0 + x / numbers[2]) + numbers[1]
        else:
            values = numbers[0] * x + numbers[1]
    return values


_NOTHING: Final = "linear(0,0)"
_ABOUT: Final[Mapping[str, str]] = {
    "firstOccurrenceTable": "expdecay(8000,12.50)",
    "occurrenceCountTable": "loggrowth(1500,4000,19)",
    "proximityTable": "expdecay(500,3)",
    "reverseProximityTable": "expdecay(400,3)",
    "weightTable": "linear(1,0)",
}
_OF_ATTRIBUTES: Final = ("weightTable",)
_RANK_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "about": _ABOUT,
    "identity": {
        **_ABOUT,
        "firstOccurrenceTable": "expdecay(100,12.50)",
        "proximityTable": "expdecay(5000,3)",
        "reverseProximityTable": "expdecay(3000,3)",
    },
    "tags": {**_ABOUT, "weightTable": "loggrowth(38,50,1)"},
    "empty": dict.fromkeys(_ABOUT, _NOTHING),
}
"""The tables of rank types. https://docs.vespa.ai/en/reference/ranking/nativerank.html#rank-types"""


def field_table(setup: RankSetup, feature: str, table: str, field: str) -> BoostTable:
    """The table of a field: its own rank property, that of its rank type, the feature's, or that of `about`.

    The rank type of an attribute says something of attributes alone, and that of any other field only of its index.
    """
    text = setup.text(f"{feature}.{table}.{field}", f"{feature}({field}).{table}")
    if text is None and (setup.field(field).attribute is not None) == (table in _OF_ATTRIBUTES):
        text = _RANK_TYPES.get(setup.rank_type(field), {}).get(table)
    text = text or setup.text(f"{feature}.{table}")
    return boost_table(_ABOUT[table] if text is None else text)


def importance_of(setup: RankSetup, feature: str, key: str, field: str) -> float:
    """The share of the first of the two tables of a field, by its own rank property or the feature's."""
    return setup.number(0.5, f"{feature}.{key}.{field}", f"{feature}({field}).{key}", f"{feature}.{key}")


def uses_normalization(setup: RankSetup) -> bool:
    """Whether boosts are divided by the highest value that their tables allow."""
    return setup.text("nativeRank.useTableNormalization") != "false"
