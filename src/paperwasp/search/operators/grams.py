"""gram.match: how the grams of a text of a query belong together, in a field that matches gram.

`all`, which is the default, is an and of them; others make the composite of that name. Within a phrase, grams follow
each other whatever it says.
Vespa: https://docs.vespa.ai/en/querying/text-matching.html#n-gram-match
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paperwasp.search.operators.item import Item, TermItem, plan
from paperwasp.search.operators.operator import Operator, SearchSpace

ALL: Final = "all"
COMPOSITES: Final[dict[str, Callable[[tuple[TermItem, ...]], Item]]] = {}
"""`gram.match` → makes an item of the grams; the files of these items fill it."""


def grams_together(grams: tuple[TermItem, ...], space: SearchSpace) -> Operator:
    """The grams of a word in one field, as the query says."""
    return plan(COMPOSITES[space.gram_match](grams), space)
