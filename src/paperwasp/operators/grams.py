"""gram.match: how the grams of a text of a query belong together, in a field that matches gram.

`all`, which is the default, is an and of them; others make the composite of that name. Within a phrase, grams follow
each other whatever it says.
Vespa: https://docs.vespa.ai/en/querying/text-matching.html#n-gram-match
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from paperwasp.linguistics.query import QueryToken
from paperwasp.operators.base import Operator, SearchSpace, plan
from paperwasp.operators.items import AndItem, Item, NearItem, OrItem, PhraseItem, WeakAndItem, WordItem
from paperwasp.schema.model import Field

ALL: Final = "all"
_COMPOSITES: Final[Mapping[str, Callable[[tuple[WordItem, ...]], Item]]] = {
    ALL: AndItem,
    "any": OrItem,
    "weakAnd": WeakAndItem,
    "phrase": lambda grams: PhraseItem(grams[0].index, grams, annotations=grams[0].annotations),
    "near": NearItem,
    "onear": lambda grams: NearItem(grams, ordered=True),
}


def grams_together(item: WordItem, tokens: Sequence[QueryToken], field: Field, space: SearchSpace) -> Operator:
    """The grams of a word in one field, as the query says."""
    notes = replace(item.annotations, implicit_transforms=False)
    grams = tuple(WordItem(field.name, token.term, annotations=notes) for token in tokens)
    return plan(_COMPOSITES[space.gram_match](grams), space)
