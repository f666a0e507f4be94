"""The plain twin of core/documents/repeated_names.cpp, which says what it computes: decodes the text with all its
names."""

from __future__ import annotations

from typing import Any

from paperwasp.document.update_json import Members, members_of


def repeats_names(text: bytes) -> bool:
    """Whether an update in JSON names a field, or an operation of a field, twice."""
    root = members_of(text)
    return isinstance(root, Members) and any(_repeats(value) for name, value in root if name == "fields")


def _repeats(fields: Any) -> bool:
    if not isinstance(fields, Members):
        return isinstance(fields, list) and any(_has_twice(inner) for inner in fields)
    return _has_twice(fields) or any(_has_twice(operations) for _, operations in fields)


def _has_twice(value: Any) -> bool:
    return isinstance(value, Members) and len({name for name, _ in value}) < len(value)
