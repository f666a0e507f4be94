"""The document selection language: which documents a condition, a visit or a cluster means.

A selection is read (`grammar`) into a tree (`tree`), which is looked at for what it says of ids, checked against
document types, and made a function of a document (`matcher`), which decides by three-valued logic (`values`).

Vespa: https://docs.vespa.ai/en/reference/writing/document-selector-language.html
"""

from paperwasp.document.selection.grammar import check_condition_length, parse_selection
from paperwasp.document.selection.matcher import (
    Matcher,
    PlainSubject,
    Purpose,
    Subject,
    check_cluster_selection,
    check_selection,
    matcher_of,
)
from paperwasp.document.selection.tree import (
    Selection,
    conjunction,
    fields_of,
    is_everything,
    location_of,
    negate,
    types_of,
)

__all__ = [
    "Matcher",
    "PlainSubject",
    "Purpose",
    "Selection",
    "Subject",
    "check_cluster_selection",
    "check_condition_length",
    "check_selection",
    "conjunction",
    "fields_of",
    "is_everything",
    "location_of",
    "matcher_of",
    "negate",
    "parse_selection",
    "types_of",
]
