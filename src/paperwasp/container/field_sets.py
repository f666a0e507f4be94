"""Field sets: which fields of the documents an answer shows.

    [document]  [all]  [none]  [id]  [docid]     of any type
    type:[document]   type:f1,f2                 of one type
    f1,f2                                        of any of the types; Vespa wants the type before them

Vespa: https://docs.vespa.ai/en/schemas/documents.html#fieldsets
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from paperwasp.document.types import DocumentType
from paperwasp.errors import InvalidInput

_WHOLE: Final = frozenset(("[document]", "[all]"))
_NOTHING: Final = frozenset(("[none]", "[id]", "[docid]"))


def read_field_set(
    text: str | None, types: Mapping[str, DocumentType], shown: Collection[str] | None = None
) -> frozenset[str] | None:
    """The fields that are shown of documents of the types `shown` (None: all of `types`); None: all of their fields.

    Errors: InvalidInput for what is not in any of `types`.
    """
    if text is None:
        return None
    name, colon, members = text.rpartition(":")
    if colon and name not in types:
        known = ", ".join(f"'{known}'" for known in types)
        raise InvalidInput(f"The fieldSet '{text}' is of document type '{name}', which is none of {known}")
    fields = (
        frozenset(types[name].fields) if colon else frozenset[str]().union(*(type.fields for type in types.values()))
    )
    if members in _WHOLE:
        return None if not colon or {name} >= set(types if shown is None else shown) else fields
    if members in _NOTHING:
        return frozenset()
    chosen = frozenset(member.strip() for member in members.split(","))
    if unknown := sorted(chosen - fields):
        of = f"document type '{name}'" if colon else "document type " + ", ".join(f"'{known}'" for known in types)
        raise InvalidInput(f"No such field '{unknown[0]}' in {of} (fieldSet '{text}')")
    return chosen
