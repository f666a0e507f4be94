"""The flat names of queries in tests: every field of a query has one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import msgspec

from tests.search.queries import GROUPS, NAMES


def test_every_field_of_a_query_has_a_flat_name() -> None:
    known = {*NAMES.values(), ("match", "tree")}
    assert known == {(name, field) for name, group in GROUPS.items() for field in _fields(group)}


def _fields(group: type) -> list[str]:
    """The names of its fields: what travels in messages is a Struct."""
    return [field.name for field in (fields(group) if is_dataclass(group) else msgspec.structs.fields(group))]
