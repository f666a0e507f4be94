"""The values of one request under a query profile: what the request sets, then what the profile does.

Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#overrides
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from paperwasp import limits
from paperwasp.application.query_profiles.checks import beside
from paperwasp.application.query_profiles.field_types import FieldDescription
from paperwasp.application.query_profiles.resolved import ResolvedProfile, Rule
from paperwasp.application.query_profiles.substitution import Hole, Template
from paperwasp.errors import IllegalQuery

REFERENCE: Final = "ref:"
"""The beginning of a value that refers to another query profile."""
Find = Callable[[str], ResolvedProfile | None]
"""Finds a query profile by the id in a reference."""
FullName = Callable[[str], str]
"""The name of a parameter that is given by an alias."""


def values_of(
    profile: ResolvedProfile, given: Mapping[str, str], find: Find, full_name: FullName = lambda name: name
) -> dict[str, str]:
    """All values of a request, by full name, that gives `given`, by full names.

    Errors: IllegalQuery where the profile's types do not admit what is given, or something mandatory is not there.
    """
    own: dict[str, str] = {}
    referred: dict[str, ResolvedProfile] = {}
    for name, value in given.items():
        rule = profile.rule(name)
        if not rule.is_fixed:
            target = _find_reference(rule, value, find)
            if target is None:
                own[rule.name] = value
            else:
                referred[rule.name] = target
    values = dict(profile.values)
    for prefix, target in referred.items():
        _put_reference(values, own, prefix, target)
    by_profiles = dict(values)
    values.update(own)
    _check_complete(profile, values, referred)
    if not profile.has_templates and not any(target.has_templates for target in referred.values()):
        return cast(dict[str, str], values)
    return _Substitution(values, by_profiles, lambda name: profile.rule(full_name(name)).name).all()


def _find_reference(rule: Rule, value: str, find: Find) -> ResolvedProfile | None:
    """The profile that the value refers to; None where it is a plain value. Errors: IllegalQuery."""
    problem = rule.problem
    is_reference = value.startswith(REFERENCE)
    if not problem and (is_reference or rule.is_profile):
        target = find(value.removeprefix(REFERENCE))
        if target is not None and _fits(target, rule.declared):
            return target
        if target is None and is_reference:
            problem = f"Query profile '{value.removeprefix(REFERENCE)}' is not found"
    problem = problem or rule.misfit(value)
    if problem:
        raise IllegalQuery(f"Could not set '{rule.name}' to '{value}': {problem}")
    return None


def _fits(target: ResolvedProfile, declared: FieldDescription | None) -> bool:
    if declared is None:
        return True
    wanted = declared.type.profile_type
    type_ = target.profile.type
    return declared.type.is_profile and (wanted is None or (type_ is not None and type_.is_a(wanted)))


def _put_reference(
    values: dict[str, str | Template], own: dict[str, str], prefix: str, target: ResolvedProfile
) -> None:
    """Puts the values of `target` below `prefix`, in place of those that are there."""
    for name in [name for name in values if name == prefix or name.startswith(f"{prefix}.")]:
        del values[name]
    for name in target.fixed:
        own.pop(f"{prefix}.{name}", None)
    values.update({f"{prefix}.{name}": value for name, value in target.values.items()})


def _check_complete(
    profile: ResolvedProfile, values: Mapping[str, object], referred: Mapping[str, ResolvedProfile]
) -> None:
    by_reference = (f"{prefix}.{name}" for prefix, target in referred.items() for name in target.mandatory)
    for name in (*profile.mandatory, *by_reference):
        if name not in values and name not in profile.groups and name not in referred:
            raise IllegalQuery(f"Incomplete query: Parameter '{name}' is mandatory in {profile} but is not set")


class _Substitution:
    """Fills the holes of templates. Each value is made once, so that values in values cannot cost without end."""

    def __init__(
        self,
        values: Mapping[str, str | Template],
        by_profiles: Mapping[str, str | Template],
        full_name: FullName,
    ) -> None:
        self._values = values
        self._by_profiles = by_profiles
        self._full_name = full_name
        self._done: dict[tuple[str, bool], str] = {}
        self._open: set[tuple[str, bool]] = set()

    def all(self) -> dict[str, str]:
        return {
            name: value if isinstance(value, str) else self._value(name, False) for name, value in self._values.items()
        }

    def _value(self, name: str, is_local: bool) -> str:
        """The value of a name; `is_local`: as the profiles have it. Nothing where there is none, as in Vespa."""
        content = (self._by_profiles if is_local else self._values).get(name, "")
        if isinstance(content, str):
            return content
        key = name, is_local
        if key not in self._done:
            if key in self._open:
                raise IllegalQuery(f"The substitutions in '{name}' go in a circle: '{content.text}'")
            if len(self._done) + len(self._open) >= limits.SUBSTITUTED_VALUES:
                raise IllegalQuery(f"More than {limits.SUBSTITUTED_VALUES} substitutions in the query profile")
            self._open.add(key)
            self._done[key] = self._fill(name, content)
            self._open.discard(key)
        return self._done[key]

    def _fill(self, name: str, template: Template) -> str:
        text = "".join(part if isinstance(part, str) else self._hole(name, part) for part in template.parts)
        if len(text) > limits.QUERY_TEXT_BYTES:
            raise IllegalQuery(f"The value of '{name}' is longer than {limits.QUERY_TEXT_BYTES} with its substitutions")
        return text

    def _hole(self, name: str, hole: Hole) -> str:
        if hole.is_local:
            return self._value(beside(name, hole.name), True)
        return self._value(hole.name if hole.name in self._values else self._full_name(hole.name), False)
