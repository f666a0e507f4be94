"""The plain twin of core/documents/members.cpp, which says what it computes."""

from __future__ import annotations

from collections.abc import Sequence

import orjson


def pick_members(objects: Sequence[bytes], names: Sequence[bytes], required: int) -> list[bytes | None]:
    """Picks from each JSON object the members whose keys are `names` (`"key":`), in that order, as one object. None
    where the text is not an object, or lacks a member whose bit of `required` is set."""
    return [_pick(text, names, required) for text in objects]


def _pick(text: bytes, names: Sequence[bytes], required: int) -> bytes | None:
    try:
        members = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(members, dict):
        return None
    keys = [orjson.loads(name[:-1]) for name in names]
    if any(key not in members and required >> place & 1 for place, key in enumerate(keys)):
        return None
    return orjson.dumps({key: members[key] for key in keys if key in members})
