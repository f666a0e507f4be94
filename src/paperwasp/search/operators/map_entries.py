"""Indexes that name one entry of a map by its key: `roles{ann}.name`, `notes{"a b"}`. Only streaming search has them.

Vespa: FieldSearchSpecMap::stripNonFields in streamingvisitors
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from paperwasp.search.operators.item import Item, TermItem, entry_term
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import WordItem

_ENTRY: Final = re.compile(r'([^{}]+)\{(?:([a-zA-Z0-9]+)|"([^"]*)")\}((?:\.[^{}]+)?)')


@entry_term
def within_entry(item: TermItem) -> Item:
    """The item, whose index has a brace, as a term of the entry that it names; as it is, where it names none."""
    found = _ENTRY.fullmatch(item.index)
    if found is None:
        return item
    field, plain, quoted, path = found.groups()
    key = quoted if plain is None else plain
    return SameElementItem(field, (WordItem("key", key), replace(item, index=f"value{path}")))
