from __future__ import annotations

from dataclasses import fields

from tests.search.queries import GROUPS, NAMES


def test_every_field_of_a_query_has_a_flat_name() -> None:
    known = {*NAMES.values(), ("match", "tree")}
    assert known == {(name, field.name) for name, group in GROUPS.items() for field in fields(group)}
