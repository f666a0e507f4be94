"""Refuses queries that are wrong whatever the documents: by the checks of their items, for text that was encoded twice,
and for match-phase by an attribute that cannot be its own.

Vespa: com.yahoo.search.searchers.InputCheckingSearcher, ValidateMatchPhaseSearcher
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from paperwasp.container.search.config import Target
from paperwasp.container.search.settings import SearchParameters
from paperwasp.document.types import STRING, NumericType
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.schema.model import Field, Schema
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import TOKEN, WordItem

_SINGLE_CHARACTERS: Final = 4
"""More words of one character than these make a text worth a look."""


def check_items(item: Item, schemas: Sequence[Schema], outer: str = "") -> None:
    """Errors: IllegalQuery, InvalidQuery for what is wrong in this tree, or at its root, which is below `outer`."""
    if isinstance(item, TermItem):
        item.check(".".join(name for name in (outer, item.index) if name), schemas)
    elif isinstance(item, SameElementItem):
        outer = item.index
    for child in item.children_of():
        if type(child) is not WordItem:  # most are, and nothing is wrong with them
            check_items(child, schemas, outer)


def check_text(text: str | None, tree: Item) -> None:
    """Errors: IllegalQuery for a user's text that was encoded twice."""
    if text and not text.isascii() and _is_encoded_twice(text) and _has_many_single_characters(tree):
        raise IllegalQuery(
            "The user input has been determined to be double encoded UTF-8. "
            "Please investigate whether this is a false positive."
        )


def _is_encoded_twice(text: str) -> bool:
    """Whether the characters of a text are the bytes of another."""
    try:
        text.encode("latin-1").decode()
    except UnicodeError:
        return False
    return True


def _has_many_single_characters(tree: Item) -> bool:
    words = (word for item in tree.walk() if isinstance(item, WordItem) for word in TOKEN.findall(item.word))
    return sum(len(word) == 1 for word in words) > _SINGLE_CHARACTERS


def check_match_phase(parameters: SearchParameters, targets: Iterable[Target]) -> None:
    """Errors: InvalidQuery for an attribute that match-phase cannot be by."""
    schemas = [schema for target in targets for schema in target.schemas]
    for settings, is_fit, purpose, wanted in (
        (parameters.match_phase, _is_fit_for_match_phase, "match-phase", "numeric attribute with fast-search"),
        (parameters.diversity, _is_fit_for_diversity, "match-phase diversification", "numeric or string attribute"),
    ):
        name = settings.get("attribute")
        if not isinstance(name, str):
            continue
        fields = (schema.field_named(name) for schema in schemas)
        if not any(field is not None and is_fit(field) for field in fields):
            raise InvalidQuery(
                f"The attribute '{name}' is not available for {purpose}. It must be a single value {wanted}."
            )


def _is_fit_for_match_phase(field: Field) -> bool:
    return isinstance(field.type, NumericType) and field.attribute is not None and field.attribute.fast_search


def _is_fit_for_diversity(field: Field) -> bool:
    return (isinstance(field.type, NumericType) or field.type == STRING) and field.attribute is not None
