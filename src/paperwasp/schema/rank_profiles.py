"""Rank profiles with what they inherit, as Vespa combines it.

* A setting with one value comes from the profile itself, else from its parents, which must then agree.
* Functions, constants and inputs are all those of the parents and of the profile, whose own win; two parents that
  define the same name differently are an error.
* A feature list is the profile's own, else its parents'; only `match-features inherits parent` joins them.
* Nothing is inherited implicitly, not even `default`; the weights of fields count in `default` and its heirs only.

Vespa: https://docs.vespa.ai/en/schemas/inheritance-in-schemas.html#rank-profile-inheritance
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from paperwasp import limits
from paperwasp.schema.model import Field, RankProfile
from paperwasp.schema.problems import Problems
from paperwasp.schema.rank_settings import FEATURE_LISTS, RankSettings, Surroundings, read_settings
from paperwasp.schema.tree import Node

BUILT_IN: Final[Mapping[str, RankSettings]] = MappingProxyType(
    {
        "default": RankSettings("default", is_default=True),
        # A constant: every hit scores 0.0, and no rank feature is needed for it.
        "unranked": RankSettings("unranked", single={"first_phase": "0", "ignore_default_rank_features": True}),
    }
)

_T = TypeVar("_T")


class ProfileScope:
    """The rank profiles of one schema: its own by name, and those that they may inherit from elsewhere."""

    def __init__(self, declared: Iterable[tuple[str, Node]], inherited: Mapping[str, RankSettings]) -> None:
        self.declared = dict(declared)
        self.inherited = inherited
        """Effective profiles of the inherited schemas and of the schemas of the inherited documents."""

    def resolve(self, around: Surroundings) -> dict[str, RankSettings]:
        """The effective settings of each declared profile."""
        resolution = _Resolution(self, around)
        return {name: resolution.effective(name) for name in self.declared}


def all_profiles(nodes: Iterable[Node], problems: Problems) -> Iterator[tuple[str, Node]]:
    """Full name and node of the profiles and of their inner profiles, which are named `outer.inner`."""
    seen: set[str] = set()
    for name, node in _with_inner(nodes, "", problems):
        if name in seen:
            problems.error(f"rank-profile {name} is defined twice", node.position)
        else:
            seen.add(name)
            yield name, node


def _with_inner(nodes: Iterable[Node], outer: str, problems: Problems) -> Iterator[tuple[str, Node]]:
    for node in nodes:
        name = f"{outer}.{node.name}" if outer else node.name
        if outer and outer not in node.inherits:
            problems.error(f"inner rank-profile {name} must inherit {outer}, which contains it", node.position)
        yield name, node
        yield from _with_inner(node.all("rank-profile"), name, problems)


def rank_profile(settings: RankSettings, fields: Mapping[str, Field]) -> RankProfile:
    """The profile as the rest of the code sees it, with the ranking settings of the schema's fields in it."""
    single: dict[str, Any] = settings.single
    weights = {f.name: f.weight if settings.is_default else 100 for f in fields.values() if f.weight != 100}
    filters = {f.name: True for f in fields.values() if f.rank_filter} | settings.filters
    match, summary, rank = (settings.features.get(keyword, ()) for keyword in FEATURE_LISTS)
    return RankProfile(
        name=settings.name,
        functions=MappingProxyType(settings.functions),
        constants=MappingProxyType(settings.constants),
        inputs=MappingProxyType(settings.inputs),
        match_features=match,
        summary_features=summary,
        rank_features=rank,
        rank_properties=MappingProxyType({key: (value,) for key, value in settings.properties.items()}),
        field_weights=MappingProxyType(weights | settings.weights),
        filter_fields=frozenset(name for name, is_filter in filters.items() if is_filter),
        position=settings.position,
        **single,
    )


class _Resolution:
    """One walk up the inheritance of a scope's profiles; each is resolved once."""

    def __init__(self, scope: ProfileScope, around: Surroundings) -> None:
        self.scope = scope
        self.around = around
        self.done: dict[str, RankSettings] = {}
        self.path: list[str] = []

    def effective(self, name: str) -> RankSettings:
        """The settings of declared profile `name` with all inherited ones in it."""
        if name in self.done:
            return self.done[name]
        node = self.scope.declared[name]
        own = read_settings(name, node, self.around)
        self.path.append(name)
        parents = [parent for each in node.inherits if (parent := self.parent(name, each, node)) is not None]
        self.path.pop()
        self.done[name] = _combined(own, parents, self.around.problems)
        return self.done[name]

    def parent(self, child: str, name: str, node: Node) -> RankSettings | None:
        """The effective profile that `child` calls `name`; itself is the one of that name that is inherited."""
        if name in self.path and name != child:
            cycle = " inherits ".join([*self.path[self.path.index(name) :], name])
            self.around.problems.error(f"a cycle of rank profiles: {cycle}", node.position)
            return None
        if name in self.scope.declared and name != child:
            if len(self.path) < limits.INHERITANCE_DEPTH:
                return self.effective(name)
            self.around.problems.error(f"rank profiles inherit deeper than {limits.INHERITANCE_DEPTH}", node.position)
            return None
        found = self.scope.inherited.get(name) or BUILT_IN.get(name)
        if found is None:
            what = "itself" if name == child else f"{name!r}, which does not exist"
            self.around.problems.error(f"rank-profile {child} inherits {what}", node.position)
        return found


def _combined(own: RankSettings, parents: list[RankSettings], problems: Problems) -> RankSettings:
    combine = _Combination(own, parents, problems)
    return RankSettings(
        name=own.name,
        node=own.node,
        single=combine.agreed("", [p.single for p in parents], own.single) | own.single,
        functions=combine.agreed("function ", [p.functions for p in parents], {}) | own.functions,
        constants=combine.agreed("constant ", [p.constants for p in parents], {}) | own.constants,
        inputs=combine.agreed("input ", [p.inputs for p in parents], own.inputs) | own.inputs,
        features={keyword: combine.features(keyword) for keyword in FEATURE_LISTS},
        properties=combine.only("rank-properties", [p.properties for p in parents], {}) | own.properties,
        weights=combine.agreed("weight of ", [p.weights for p in parents], own.weights) | own.weights,
        filters=combine.agreed("rank of ", [p.filters for p in parents], own.filters) | own.filters,
        is_default=own.is_default or any(p.is_default for p in parents),
    )


class _Combination:
    """How the settings of several parents become one."""

    def __init__(self, own: RankSettings, parents: list[RankSettings], problems: Problems) -> None:
        self.own = own
        self.parents = parents
        self.problems = problems

    def agreed(self, what: str, maps: list[dict[str, _T]], overridden: Mapping[str, _T]) -> dict[str, _T]:
        """The entries of all maps; one that differs between two of them and is not overridden is an error."""
        result: dict[str, _T] = {}
        for entries in maps:
            for name, value in entries.items():
                if name not in overridden and result.setdefault(name, value) != value:
                    self.conflict(f"{what}{name}" if what else name.replace("_", "-"))
        return result

    def only(self, what: str, values: list[_T], nothing: _T) -> _T:
        """The one value that is not empty; different ones are an error."""
        found = [value for value in values if value]
        if any(value != found[0] for value in found[1:]):
            self.conflict(what)
        return found[0] if found else nothing

    def features(self, keyword: str) -> tuple[str, ...]:
        own = self.own.features.get(keyword)
        if own is None:
            return self.only(keyword, [p.features.get(keyword, ()) for p in self.parents], ())
        named = self.own.inherited_features.get(keyword, ())
        inherited = [f for p in self.parents if p.name in named for f in p.features.get(keyword, ())]
        return tuple(dict.fromkeys([*inherited, *own]))

    def conflict(self, what: str) -> None:
        message = f"rank-profile {self.own.name} inherits different values of {what} from its parents"
        self.problems.error(message, self.own.position)
