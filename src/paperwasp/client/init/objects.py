"""Objects in the rows of a sample: structs where their names are few and the same, maps where they are not.

A single struct is shown. Of lists of structs and of maps, single values within are attributes, so that `sameElement`
filters by them; attributes of single structs are there in streaming search only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Final

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.schema.data_types import RESERVED_NAMES

_MEMBERS: Final = 32
"""Objects with more names altogether are maps."""
_MEMBER: Final = compile_later(r"[a-zA-Z][a-zA-Z0-9_]*")
_DEEPEST: Final = 4
_LONG: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Objects:
    """The type of a field of objects, and what it needs."""

    type: str
    why: str
    structs: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Of each struct its name, and the names and types of its members; those of which others are made come first."""
    filtered: tuple[str, ...] = ()
    """The parts that can be attributes."""


def objects_of(values: Sequence[Any], name: str) -> Objects | None:
    """What objects, or lists of objects, are; their structs are named by `name`. None: no type holds them all."""
    if all(isinstance(value, Mapping) for value in values):
        return _struct(values, name) or _map(values)
    if not all(isinstance(value, list | tuple) for value in values):
        return None
    elements = [element for value in values for element in value]
    if not elements or not all(isinstance(element, Mapping) for element in elements):
        return None
    found = _struct(elements, name)
    if found is None:
        return None
    parts = tuple(part for part, type_ in found.structs[-1][1] if type_ in _SINGLE)
    return Objects(f"array<{found.type}>", f"lists of {found.why}", found.structs, parts)


def _struct(values: Sequence[Mapping[str, Any]], name: str, depth: int = 1) -> Objects | None:
    members = dict.fromkeys(str(member) for value in values for member in value)
    if not members or len(members) > _MEMBERS or depth > _DEEPEST:
        return None
    if not all(_MEMBER.fullmatch(member) and member not in RESERVED_NAMES for member in members):
        return None
    structs: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    types: list[tuple[str, str]] = []
    for member in members:
        given = [value[member] for value in values if value.get(member) is not None]
        type_ = _type_of(given)
        if type_ is None and given and all(isinstance(value, Mapping) for value in given):
            inner = _struct(given, f"{name}__{member}", depth + 1)
            if inner is not None:
                structs += inner.structs
                type_ = inner.type
        if type_ is None:
            return None
        types.append((member, type_))
    if len({each for each, _ in structs} | {name}) <= len(structs):
        return None
    said = ", ".join(list(members)[:5]) + (", …" if len(members) > 5 else "")
    return Objects(name, f"objects with {said}", (*structs, (name, tuple(types))))


def _map(values: Sequence[Mapping[str, Any]]) -> Objects | None:
    type_ = _type_of([inner for value in values for inner in value.values() if inner is not None])
    if type_ not in _SINGLE:
        return None
    return Objects(f"map<string, {type_}>", "objects of many names", (), ("key", "value"))


_SINGLE: Final = ("bool", "long", "double", "string")


def _type_of(values: Sequence[Any]) -> str | None:
    """The type of values that are no objects; of none at all it is a text."""
    if all(isinstance(value, bool) for value in values):
        return "bool" if values else "string"
    if any(isinstance(value, bool) for value in values):
        return None
    if all(isinstance(value, str) for value in values):
        return "string"
    if all(isinstance(value, Integral) and int(value) in _LONG for value in values):
        return "long"
    if all(isinstance(value, Real) for value in values):
        return "double"
    if not all(isinstance(value, list | tuple) or hasattr(value, "tolist") for value in values):
        return None
    inner = _type_of([each for value in values for each in value if each is not None])
    return f"array<{inner}>" if inner in _SINGLE else None
