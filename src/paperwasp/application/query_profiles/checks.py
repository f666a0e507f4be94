"""Checks of all query profiles together, once they are read: circles, sizes, variants, local substitutions.

A profile that reaches itself, by inheritance or by reference, would have names without end, so there must be no way
round. Whatever closes a circle is cut, so that the rest can be checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.model import Layer, QueryProfile
from paperwasp.application.query_profiles.substitution import Template


def check_profiles(profiles: Iterable[QueryProfile], findings: Findings) -> None:
    """Reports what is wrong with the profiles together."""
    graph = _Graph(findings)
    for profile in profiles:
        graph.weigh(profile, ())
    local_names = _LocalNames(findings)
    for profile in profiles:
        _check_variants(profile, findings)
        local_names.check(profile)


class _Graph:
    """Profiles and what they inherit and refer to."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._weights: dict[QueryProfile, int] = {}
        self._heights: dict[QueryProfile, int] = {}

    def weigh(self, profile: QueryProfile, above: tuple[QueryProfile, ...]) -> int:
        """How many values and profiles there are in all at and below this one, in all variants."""
        if profile in self._weights:
            return self._weights[profile]
        path = (*above, profile)
        weight = 1
        height = 0
        for layer in (profile.own, *profile.variants):
            layer.inherits = [parent for parent in layer.inherits if self._may_reach(profile, parent, path)]
            layer.references = [entry for entry in layer.references if self._may_reach(profile, entry[1], path)]
            below = [*layer.inherits, *(target for _, target, _ in layer.references)]
            weight += len(layer.values) + sum(self._weights[target] for target in below)
            height = max([height, *(self._heights[target] + 1 for target in below)])
        if weight > limits.QUERY_PROFILE_VALUES:
            message = f"{profile} has more than {limits.QUERY_PROFILE_VALUES} values with all that it refers to"
            self._findings.error(message, profile.position)
            weight = limits.QUERY_PROFILE_VALUES + 1
        self._weights[profile], self._heights[profile] = weight, height
        return weight

    def _may_reach(self, profile: QueryProfile, target: QueryProfile, path: tuple[QueryProfile, ...]) -> bool:
        if target in path:
            circle = " → ".join(str(member.id) for member in (*path[path.index(target) :], target))
            self._findings.error(f"Query profiles go in a circle: {circle}", profile.position)
            return False
        if len(path) <= limits.QUERY_PROFILE_DEPTH:
            self.weigh(target, path)
        if self._heights.get(target, limits.QUERY_PROFILE_DEPTH) >= limits.QUERY_PROFILE_DEPTH:
            message = f"Query profiles inherit and refer to each other deeper than {limits.QUERY_PROFILE_DEPTH} levels"
            self._findings.error(message, profile.position)
            return False
        return True


def _check_variants(profile: QueryProfile, findings: Findings) -> None:
    for layer in profile.variants:
        shown = ",".join("*" if value is None else value for value in layer.when)
        if not profile.dimensions:
            message = f"Cannot create a variant in {profile}, as it has not declared any variable dimensions"
            findings.error(message, layer.position)
        elif len(layer.when) > len(profile.dimensions):
            count = len(profile.dimensions)
            findings.error(
                f"Cannot create a variant for '{shown}': only {count} dimensions are declared", layer.position
            )


class _LocalNames:
    """Looks for the fields that local substitutions name."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._known: dict[tuple[QueryProfile, str], bool] = {}

    def check(self, profile: QueryProfile) -> None:
        for layer in (profile.own, *profile.variants):
            for name, value in layer.values.items():
                for local in value.content.local_names if isinstance(value.content, Template) else ():
                    if not self._is_set(profile, beside(name, local)):
                        message = f"Could not resolve local substitution '{local}' in {profile}"
                        self._findings.error(message, value.position)

    def _is_set(self, profile: QueryProfile, name: str) -> bool:
        """Whether the name has a value in any variant."""
        key = profile, name
        if key not in self._known:
            self._known[key] = any(self._is_set_in(layer, name) for layer in (profile.own, *profile.variants))
        return self._known[key]

    def _is_set_in(self, layer: Layer, name: str) -> bool:
        if name in layer.values or any(self._is_set(parent, name) for parent in layer.inherits):
            return True
        below = ((target, prefix) for prefix, target, _ in layer.references if name.startswith(f"{prefix}."))
        return any(self._is_set(target, name[len(prefix) + 1 :]) for target, prefix in below)


def beside(name: str, local: str) -> str:
    """The full name of what `%{.local}` in the value of `name` stands for."""
    return name[: name.rfind(".") + 1] + local
