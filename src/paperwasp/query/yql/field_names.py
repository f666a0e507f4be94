"""The names of fields in a query tree, changed to those that the schemas have.

Vespa: getCanonicName of IndexFacts.java, for a name that YQL has in quotes.
"""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.search.operators.item import Item


def renamed(item: Item, names: Mapping[str, str]) -> Item:
    """The tree with other names for the fields that `names` has."""
    return item.with_indexes(lambda index: names.get(index, index))
