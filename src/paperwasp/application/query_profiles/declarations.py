"""Looks up names with dots in the types of query profiles, and checks that values of query profiles fit.

Vespa: https://docs.vespa.ai/en/reference/querying/query-profiles.html#field-type
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.field_types import FieldDescription, ProfileType
from paperwasp.application.query_profiles.model import QueryProfile
from paperwasp.application.query_profiles.native import native_types
from paperwasp.application.query_profiles.substitution import Template
from paperwasp.base.records import dataclass
from paperwasp.errors import Position


@dataclass(frozen=True, slots=True)
class Declared:
    """The full name behind aliases, the field that a type declares there if any, and why there can be none if so."""

    name: str
    field: FieldDescription | None = None
    problem: str = ""


def declared_at(type_: ProfileType | None, name: str) -> Declared:
    """Looks `name` up in `type_` and in the types of the profiles below it. `type_` None: nothing is declared."""
    parts = name.split(".")
    for index, part in enumerate(parts):
        if type_ is None:
            break
        parts[index] = part = type_.unalias(part)
        field = type_.field(part)
        if field is None:
            return Declared(".".join(parts), None, describe_undeclared(part, type_) if type_.strict else "")
        if index == len(parts) - 1:
            return Declared(".".join(parts), field)
        if not field.type.is_profile:
            return Declared(".".join(parts), None, f"'{part}' is not a query profile in {type_}, but {field.type}")
        type_ = field.type.profile_type
    return Declared(".".join(parts))


def describe_undeclared(part: str, type_: ProfileType) -> str:
    """The problem that a strict type declares no such name."""
    return f"'{part}' is not declared in {type_}, and the type is strict"


def check_field(
    declared: Declared, value: str | Template | QueryProfile, position: Position, findings: Findings
) -> bool:
    """Whether a query profile may set this; reports why not, and what has no effect."""
    problem = declared.problem or _misfit(value, declared.field)
    if problem:
        shown = value.id if isinstance(value, QueryProfile) else str(value)[:100]
        findings.error(f"Could not set '{declared.name}' to '{shown}': {problem}", position)
        return False
    if declared.field is None:
        _warn_native(declared.name, value, position, findings)
    return True


def _misfit(value: str | Template | QueryProfile, field: FieldDescription | None) -> str:
    if field is None or (isinstance(value, Template) and not field.type.is_profile):
        return ""
    if not isinstance(value, QueryProfile):
        return field.type.misfit(str(value))
    if not field.type.is_profile:
        return f"{value} is not a value of type {field.type}"
    wanted = field.type.profile_type
    if wanted is None or (value.type is not None and value.type.is_a(wanted)):
        return ""
    return f"{value} is not a {field.type}"


_NATIVE: Final = native_types()


def _native_names(type_: ProfileType, prefix: str = "") -> Iterator[tuple[str, FieldDescription]]:
    for field in type_.fields.values():
        full = f"{prefix}{field.name}" if field.name else prefix.rstrip(".")
        yield full, field
        if field.type.profile_type is not None:
            yield from _native_names(field.type.profile_type, f"{full}.")


_NAMES: Final = {
    name: field for type_ in ("native", "DefaultProperties") for name, field in _native_names(_NATIVE[type_])
}
_BY_LOWER_CASE: Final = {name.lower(): name for name in _NAMES}
_BY_ALIAS: Final = {alias.lower(): name for name, field in _NAMES.items() for alias in field.aliases}


def _warn_native(name: str, value: str | Template | QueryProfile, position: Position, findings: Findings) -> None:
    """Warns of what looks like a parameter of queries and will not be one."""
    group, dot, rest = name.partition(".")
    known = _NAMES.get(name)
    if known is None or (known.type.is_profile and known.type.profile_type and not known.type.profile_type.field("")):
        full = _BY_ALIAS.get(name.lower()) or _BY_LOWER_CASE.get(name.lower())
        if rest and group in _BY_ALIAS and _NAMES[_BY_ALIAS[group]].type.is_profile:
            full = f"{_BY_ALIAS[group]}.{rest}"
        if full is not None and full != name and not isinstance(value, QueryProfile):
            findings.warning(
                f"'{name}' sets no parameter: in query profiles it is '{full}', in full and in its case", position
            )
        elif group in _NATIVE and dot and (problem := declared_at(_NATIVE[group], rest).problem):
            findings.warning(f"'{name}' sets no parameter: {problem}", position)
    elif isinstance(value, str) and (problem := known.type.misfit(value)):
        findings.warning(f"'{name}' cannot be set to this, and queries that get it will fail: {problem}", position)
