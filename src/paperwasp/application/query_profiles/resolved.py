"""A query profile for requests of one kind: all inheritance, references and variants resolved into one flat table.

Precedence: a variant, then what it inherits, then less specific variants likewise, then the profile's own fields, then
what it inherits; the first value found for a name is the value. Names below a reference are found in what it refers to,
unless the profile that refers says otherwise.
Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#variants-and-inheritance
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Final

from paperwasp import limits
from paperwasp.application.query_profiles.declarations import describe_undeclared
from paperwasp.application.query_profiles.field_types import FieldDescription, ProfileType
from paperwasp.application.query_profiles.model import Layer, QueryProfile
from paperwasp.application.query_profiles.substitution import Template
from paperwasp.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a profile for one name that a request sets."""

    name: str
    """The name behind the aliases that types declare."""
    is_fixed: bool
    """Whether the value of the request is ignored."""
    declared: FieldDescription | None
    problem: str
    """Why the name cannot be set; empty: it can."""

    @property
    def is_profile(self) -> bool:
        return self.declared is not None and self.declared.type.is_profile

    def misfit(self, value: str) -> str:
        """Why the name cannot be set to the value; empty: it can."""
        return self.problem if self.declared is None else self.declared.type.misfit(value)


@dataclass(frozen=True)
class ResolvedProfile:
    """A query profile and its values by full name. Texts with substitutions wait for the rest of a request."""

    profile: QueryProfile
    values: Mapping[str, str | Template]
    fixed: frozenset[str]
    """Names that a request cannot set."""
    groups: frozenset[str]
    """Names that have others below them: references, and what stands before a dot. The empty one is all."""
    types: Mapping[str, ProfileType]
    """Group → its type, if it has one."""
    mandatory: tuple[str, ...]
    _rules: dict[str, Rule] = field(default_factory=dict, repr=False)

    @cached_property
    def has_templates(self) -> bool:
        return any(isinstance(value, Template) for value in self.values.values())

    def rule(self, name: str) -> Rule:
        """Kept, as requests set the same names again and again."""
        found = self._rules.get(name)
        if found is None:
            if len(self._rules) >= limits.QUERY_PROFILES_RESOLVED:
                self._rules.clear()
            found = self._rule(self.unalias(name))
            if len(name) <= _KEPT_CHARACTERS:
                self._rules[name] = found
        return found

    def unalias(self, name: str) -> str:
        if not self.types:
            return name
        parts = name.split(".")
        for index, part in enumerate(parts):
            type_ = self.types.get(".".join(parts[:index]))
            if type_ is not None:
                parts[index] = type_.unalias(part)
        return ".".join(parts)

    def _rule(self, name: str) -> Rule:
        is_fixed = name in self.fixed
        parts = name.split(".")
        by_field: ProfileType | None = None
        declared: FieldDescription | None = None
        for index, part in enumerate(parts):
            type_ = by_field or self.types.get(".".join(parts[:index]))
            declared = type_.field(part) if type_ is not None else None
            if type_ is not None and declared is None and type_.strict:
                return Rule(name, is_fixed, None, describe_undeclared(part, type_))
            if declared is not None and declared.type.is_profile:
                by_field = declared.type.profile_type
        return Rule(name, is_fixed, declared, "")

    def __str__(self) -> str:
        return str(self.profile)


_KEPT_CHARACTERS: Final = 200


def resolve(profile: QueryProfile, context: Mapping[str, str]) -> ResolvedProfile:
    """`profile` as a request with these parameters sees it."""
    walk = _Walk(context)
    walk.visit(profile, "")
    types = {name: type_ for name, type_ in walk.types.items() if type_ is not None}
    return ResolvedProfile(profile, walk.values, frozenset(walk.fixed), frozenset(walk.types), types, _mandatory(types))


def _mandatory(types: Mapping[str, ProfileType]) -> tuple[str, ...]:
    return tuple(
        f"{group}.{field.name}".strip(".")
        for group, type_ in types.items()
        for field in type_.fields.values()
        if field.mandatory
    )


@dataclass(slots=True)
class _Walk:
    """Goes through profiles by falling precedence, and keeps what it meets first."""

    context: Mapping[str, str]
    values: dict[str, str | Template] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    references: set[str] = field(default_factory=set)
    types: dict[str, ProfileType | None] = field(default_factory=dict)

    def visit(self, profile: QueryProfile, prefix: str) -> None:
        """`prefix` is empty or ends with a dot."""
        self.types.setdefault(prefix[:-1], profile.type)
        for layer in profile.matching(self.context):
            self._note_groups(profile, layer, prefix)
            for name, value in layer.values.items():
                full = prefix + name
                if full not in self.values:
                    self.values[full] = value.content
                    if not value.overridable:
                        self.fixed.add(full)
            for name, target, overridable in layer.references:
                if prefix + name not in self.references:
                    self.references.add(prefix + name)
                    if not overridable:
                        self.fixed.add(prefix + name)
                self.visit(target, f"{prefix}{name}.")
            for parent in layer.inherits:
                self.visit(parent, prefix)

    def _note_groups(self, profile: QueryProfile, layer: Layer, prefix: str) -> None:
        """The types of the groups that are opened here: of what is referred to, or else of the declared field."""
        for name, target, _ in layer.references:
            self.types.setdefault(prefix + name, target.type)
        for name in (*layer.values, *(name for name, _, _ in layer.references)):
            type_ = profile.type
            group = prefix
            for part in name.split(".")[:-1]:
                found = type_.field(part) if type_ is not None else None
                type_ = found.type.profile_type if found is not None else None
                group += part
                self.types.setdefault(group, type_)
                group += "."
