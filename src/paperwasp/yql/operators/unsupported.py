"""The operators of YQL that are known and not executed yet: a query that has one is refused by name."""

from __future__ import annotations

from paperwasp.yql.operators.registry import UNSUPPORTED

UNSUPPORTED.update(
    {
        "near": "words close to each other",
        "onear": "words close to each other, in order",
        "sameElement": "conditions on one element",
        "equiv": "words that count as one",
        "alternatives": "forms of one word",
        "uri": "search in parts of a URL",
        "fuzzy": "search by edit distance",
        "wand": "the best by a dot product",
        "weightedSet": "a set of weighted values",
        "dotProduct": "a set of weighted values, ranked by dot product",
        "nearestNeighbor": "search by vector",
        "geoLocation": "search around a place",
        "geoBoundingBox": "search in a rectangle",
        "predicate": "search in predicate fields",
        "labeled": "a label with a score",
    }
)
