"""Refuses queries that are wrong whatever the documents: phrases that only repeat a word, text that was encoded twice,
`in` with values that the field cannot have, and match-phase by an attribute that cannot be its own.

Vespa: com.yahoo.search.searchers.InputCheckingSearcher, ValidateMatchPhaseSearcher, ValidateFuzzySearcher;
com.yahoo.search.yql.YqlParser, buildIn
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from paperwasp.container.search.config import Target
from paperwasp.container.search.settings import SearchParameters
from paperwasp.document.types import BYTE, INT, LONG, STRING, ArrayType, DataType, NumericType, WeightedSetType
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.operators.items import FuzzyItem, InItem, Item, PhraseItem, SameElementItem, WordItem
from paperwasp.query.lexicon import parse_number
from paperwasp.schema.data_types import is_text
from paperwasp.schema.model import Field, Schema
from paperwasp.yql.simple_terms import TOKEN

_IN_A_ROW: Final = 5
_IN_A_PHRASE: Final = 10
_INTEGERS: Final = frozenset((BYTE, INT, LONG))
_SINGLE_CHARACTERS: Final = 4
"""More words of one character than these make a text worth a look."""


def check_items(item: Item, schemas: Sequence[Schema], outer: str = "") -> None:
    """Errors: IllegalQuery, InvalidQuery for what is wrong in this tree, or at its root, which is below `outer`."""
    if isinstance(item, PhraseItem):
        if len(item.words) > _IN_A_ROW:
            _check_phrase(item)
    elif isinstance(item, FuzzyItem):
        _check_fuzzy(item, ".".join(name for name in (outer, item.index) if name), schemas)
    elif isinstance(item, InItem):
        _check_values(item, ".".join(name for name in (outer, item.index) if name), schemas)
    elif isinstance(item, SameElementItem):
        outer = item.index
    for child in item.children_of():
        if type(child) is not WordItem:  # most are, and nothing is wrong with them
            check_items(child, schemas, outer)


def _check_fuzzy(item: FuzzyItem, name: str, schemas: Sequence[Schema]) -> None:
    """A fieldset is looked at field by field where it is searched."""
    found = [field for schema in schemas if name not in schema.fieldsets and (field := schema.field_named(name))]
    if found and not any(field.attribute is not None and is_text(field.type) for field in found):
        raise IllegalQuery(f"Fuzzy items require a string attribute field, but '{name}' is not")
    if not item.word:
        raise IllegalQuery(f"fuzzy in '{name}': fuzzy query must be non-empty")


def _check_values(item: InItem, name: str, schemas: Sequence[Schema]) -> None:
    """Checks the values of `in`. The first document type that has the field defines its type, as in Vespa."""
    fields = next((fields for schema in schemas if (fields := schema.fields_named(name))), ())
    types = {_of_one_value(field.type) for field in fields}
    has_integers, has_texts = not types.isdisjoint(_INTEGERS), STRING in types
    if fields and not has_integers and not has_texts:
        what = f"integer and string fields. The field {name} is not of these types"
        raise InvalidQuery(f"The in operator is only supported for {what}")
    if has_integers and has_texts:
        what = f"with a mix of integer and string fields. The fieldset {name} has both"
        raise InvalidQuery(f"The in operator is not supported for fieldsets {what}")
    is_fit, wanted = (_is_integer, "an integer") if has_integers else (_is_text, "a string")
    for value in item.values if fields else ():
        if not is_fit(value):
            raise InvalidQuery(f"in '{name}': expected {wanted}, but got {value}")


def _of_one_value(type_: DataType) -> DataType:
    return type_.inner[0] if isinstance(type_, (ArrayType, WeightedSetType)) else type_


def _is_text(value: str | int) -> bool:
    return isinstance(value, str)


def _is_integer(value: str | int) -> bool:
    return isinstance(value, int) or isinstance(parse_number(value), int)


def check_text(text: str | None, tree: Item) -> None:
    """Errors: IllegalQuery for a user's text that was encoded twice."""
    if text and not text.isascii() and _is_encoded_twice(text) and _has_many_single_characters(tree):
        raise IllegalQuery(
            "The user input has been determined to be double encoded UTF-8. "
            "Please investigate whether this is a false positive."
        )


def _check_phrase(phrase: PhraseItem) -> None:
    words = [word.lower() if isinstance(word, str) else None for word in phrase.words]
    for word, run in groupby(words):
        if word is not None and sum(1 for _ in run) > _IN_A_ROW:
            raise IllegalQuery(f"More than {_IN_A_ROW} occurrences of term '{word}' in a row detected in phrase")
    for word, count in Counter(words).items():
        if word is not None and count > _IN_A_PHRASE:
            raise IllegalQuery(f"Phrase contains more than {_IN_A_PHRASE} occurrences of term '{word}' in phrase")


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
