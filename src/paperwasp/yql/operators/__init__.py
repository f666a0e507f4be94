"""The operators of YQL that are written as functions, a file for each family.

An operator registers itself under its name in `registry`; importing this package registers all of them.
"""

from paperwasp.operators.registry import CONDITIONS, LEAVES
from paperwasp.yql.operators import (
    composite,
    elements,
    patterns,
    phrases,
    places,
    predicate,
    ranges,
    user_input,
    vectors,
    weighted,
)

__all__ = [
    "CONDITIONS",
    "LEAVES",
    "composite",
    "elements",
    "patterns",
    "phrases",
    "places",
    "predicate",
    "ranges",
    "user_input",
    "vectors",
    "weighted",
]
