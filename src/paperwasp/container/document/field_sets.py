"""Field sets: which fields of the documents an answer shows.

    [document]                                   all fields of the documents as they were fed
    [all]                                        those, and what indexing makes of them
    [none]  [id]  [docid]                        none
    type:[document]   type:f1,f2                 of one type
    f1,f2                                        of any of the types; Vespa wants the type before them

Vespa: https://docs.vespa.ai/en/schemas/documents.html#fieldsets
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from paperwasp.document.types import DocumentType
from paperwasp.errors import InvalidInput
from paperwasp.text.parsing.tokens import did_you_mean

_DOCUMENT: Final = "[document]"
_ALL: Final = "[all]"
_NOTHING: Final = frozenset(("[none]", "[id]", "[docid]"))
_NONE: Final = frozenset[str]()


def read_field_set(
    text: str | None,
    types: Mapping[str, DocumentType],
    derived: Mapping[str, frozenset[str]],
    shown: Collection[str] | None = None,
) -> frozenset[str] | None:
    """The fields that are shown of documents of the types `shown` (None: all of `types`); None: all that were fed.

    `derived`: by type, the fields that indexing makes. Errors: InvalidInput for what is not in any of `types`.
    """
    if text is None:
        return None
    name, colon, members = text.rpartition(":")
    if colon and name not in types:
        known = ", ".join(f"'{known}'" for known in types)
        raise InvalidInput(f"The fieldSet '{text}' is of document type '{name}', which is none of {known}")
    asked = (name,) if colon else tuple(types)
    fed = _NONE.union(*(types[each].fields for each in asked))
    made = _NONE.union(*(derived.get(each, _NONE) for each in asked))
    if members == _DOCUMENT or (members == _ALL and not made):
        return None if not colon or {name} >= set(types if shown is None else shown) else fed
    if members == _ALL:
        return fed | made
    if members in _NOTHING:
        return _NONE
    chosen = frozenset(member.strip() for member in members.split(","))
    if unknown := sorted(chosen - fed - made):
        of = f"document type '{name}'" if colon else "document type " + ", ".join(f"'{known}'" for known in types)
        near = did_you_mean(unknown[0], fed | made)
        raise InvalidInput(f"No such field '{unknown[0]}' in {of} (fieldSet '{text}'){near}")
    return chosen
