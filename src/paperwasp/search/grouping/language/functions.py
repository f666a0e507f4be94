"""The functions of the grouping language, by what they take, and which of them aggregate.

Vespa: GroupingParser.jj
"""

from __future__ import annotations

from typing import Final

_ONE: Final = """
    neg normalizesubject reverse size sort stddev strlen sum first todouble tolong toraw tostring
    time.date time.dayofmonth time.dayofweek time.dayofyear time.hourofday time.minuteofhour time.monthofyear
    time.secondofminute time.year math.exp math.log math.log1p math.log10 math.sin math.asin math.cos math.acos
    math.tan math.atan math.sqrt math.sinh math.asinh math.cosh math.acosh math.tanh math.atanh math.floor math.cbrt
    zcurve.x zcurve.y
"""
ONE: Final = frozenset(_ONE.split())
"""Of one expression."""
TWO: Final = frozenset(("math.pow", "math.hypot", "argmin", "argmax"))
"""Of two expressions."""
MANY: Final = frozenset(("add", "and", "cat", "div", "mod", "mul", "or", "strcat", "sub"))
"""Of two expressions or more."""
BOTH: Final = frozenset(("avg", "max", "min", "xor"))
"""Of one expression: an aggregator. Of more: a function."""
NONE: Final = frozenset(("count", "docidnsspecific", "now", "relevance"))
BITS: Final = {"md5": 128, "xorbit": 64}
"""Of an expression and a number of bits, and the largest number of bits that each takes."""
OF_ATTRIBUTES: Final = frozenset(("array.at", "interpolatedlookup"))
"""Of the name of an attribute and an expression."""
OWN: Final = frozenset(
    ("attribute", "debugwait", "fixedwidth", "predefined", "quantiles", "summary", "uca", "geo_distance")
)
"""Whose arguments nothing else has."""
NAMESPACES: Final = frozenset(("array", "math", "time", "zcurve"))
ALL: Final = ONE | TWO | MANY | BOTH | NONE | BITS.keys() | OF_ATTRIBUTES | OWN

AGGREGATORS: Final = frozenset(("argmax", "argmin", "count", "first", "quantiles", "stddev", "sum"))
"""With those of BOTH that have one argument."""
OF_HITS: Final = frozenset(
    ("array.at", "attribute", "attribute_function", "docidnsspecific", "interpolatedlookup", "map", "map_source",
     "relevance", "summary")
)  # fmt: skip
"""What a single hit has."""


def is_aggregator(function: str, arguments: int) -> bool:
    """Whether a function with this number of arguments is computed over the hits of a group."""
    return function in AGGREGATORS or (function in BOTH and arguments == 1)
