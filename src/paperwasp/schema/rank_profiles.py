"""Rank profiles with what they inherit, as Vespa combines it.

* A setting with one value comes from the profile itself, else from its parents, which must then agree.
* Functions, constants and inputs are all those of the parents and of the profile, whose own win; two parents that
  define the same name differently are an error.
* A feature list is the profile's own, else its parents'; only `match-features inherits parent` joins them.
* Nothing is inherited implicitly, not even `default`; the weights and rank types of fields count in `default` and its
  heirs only.

Vespa: https://docs.vespa.ai/en/schemas/inheritance-in-schemas.html#rank-profile-inheritance
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Struct

from paperwasp import limits
from paperwasp.document.types import PREDICATE, DataType, NumericType
from paperwasp.errors import Position
from paperwasp.schema.data_types import is_single
from paperwasp.schema.model import (
    AttributeSettings,
    Constant,
    Field,
    FieldRank,
    Function,
    GlobalPhase,
    Input,
    OnnxModel,
    RankProfile,
)
from paperwasp.schema.rank_settings import FEATURE_LISTS, RankSettings, Surroundings, Text, read_settings
from paperwasp.schema.tree import Problems, SchemaNode, nearest

BUILT_IN: Final[Mapping[str, RankSettings]] = MappingProxyType(
    {
        "default": RankSettings("default", is_default=True),
        # A constant: every hit scores 0.0, and no rank feature is needed for it.
        "unranked": RankSettings("unranked", single={"first_phase": Text("0"), "ignore_default_rank_features": True}),
    }
)

_T = TypeVar("_T")


class ProfileScope:
    """The rank profiles of one schema: its own by name, and those that they may inherit from elsewhere."""

    def __init__(self, declared: Iterable[tuple[str, SchemaNode]], inherited: Mapping[str, RankSettings]) -> None:
        self.declared = dict(declared)
        self.inherited = inherited
        """Effective profiles of the inherited schemas and of the schemas of the inherited documents."""

    def resolve(self, around: Surroundings) -> dict[str, RankSettings]:
        """The effective settings of each declared profile."""
        resolution = _Resolution(self, around)
        return {name: resolution.effective(name) for name in self.declared}


def all_profiles(nodes: Iterable[SchemaNode], problems: Problems) -> Iterator[tuple[str, SchemaNode]]:
    """Full name and node of the profiles and of their inner profiles, which are named `outer.inner`."""
    seen: set[str] = set()
    for name, node in _with_inner(nodes, "", problems):
        if name in seen:
            problems.error(f"rank-profile {name} is defined twice", node.position)
        else:
            seen.add(name)
            yield name, node


def _with_inner(nodes: Iterable[SchemaNode], outer: str, problems: Problems) -> Iterator[tuple[str, SchemaNode]]:
    for node in nodes:
        name = f"{outer}.{node.name}" if outer else node.name
        if outer and not {outer, _short(outer)} & set(node.inherits):
            problems.error(f"inner rank-profile {name} must inherit {outer}, which contains it", node.position)
        yield name, node
        yield from _with_inner(node.all("rank-profile"), name, problems)


def _short(name: str) -> str:
    """The name of an inner profile as its neighbours call it."""
    return name.rpartition(".")[2]


class FieldRanking(Struct, frozen=True):
    """The rank settings of the fields of a schema, for all its profiles: most share them as they are."""

    weights: Mapping[str, int]
    """The weights in `default` and its heirs."""
    no_weights: Mapping[str, int]
    """The weights in other profiles: every weight is 100 there."""
    filters: frozenset[str]
    rank_types: Mapping[str, str]
    """The rank types in `default` and its heirs, of fields that have one."""

    @classmethod
    def of(cls, fields: Mapping[str, Field]) -> FieldRanking:
        weights = {each.name: each.weight for each in fields.values() if each.weight != 100}
        return cls(
            MappingProxyType(weights),
            MappingProxyType(dict.fromkeys(weights, 100)),
            frozenset(each.name for each in fields.values() if each.rank_filter),
            MappingProxyType({each.name: each.rank_type for each in fields.values() if each.rank_type}),
        )

    def __len__(self) -> int:
        return len(self.weights) + len(self.filters) + len(self.rank_types)

    def weights_of(self, settings: RankSettings) -> Mapping[str, int]:
        weights = self.weights if settings.is_default else self.no_weights
        return MappingProxyType({**weights, **settings.weights}) if settings.weights else weights

    def filters_of(self, settings: RankSettings) -> frozenset[str]:
        if not settings.filters:
            return self.filters
        filters = {**dict.fromkeys(self.filters, True), **settings.filters}
        return frozenset(name for name, is_filter in filters.items() if is_filter)


def rank_profile(
    settings: RankSettings,
    ranking: FieldRanking,
    constants: Mapping[str, Constant],
    onnx_models: Mapping[str, OnnxModel],
) -> RankProfile:
    """The profile as the rest of the code sees it, with what the schema and its fields say in it."""
    single = _values(settings)
    match, summary, rank, sort = (tuple(settings.features.get(keyword, ())) for keyword in FEATURE_LISTS)
    return RankProfile(
        name=settings.name,
        functions=MappingProxyType(settings.functions),
        constants=MappingProxyType({**constants, **settings.constants}),
        inputs=MappingProxyType(settings.inputs),
        onnx_models=MappingProxyType({**onnx_models, **settings.onnx_models}),
        match_features=match,
        summary_features=summary,
        rank_features=rank,
        sort_features=sort,
        rank_properties=MappingProxyType({key: tuple(values) for key, values in settings.properties.items()}),
        field_weights=ranking.weights_of(settings),
        filter_fields=ranking.filters_of(settings),
        field_ranks=MappingProxyType(_field_ranks(settings, ranking)),
        mutations=tuple(settings.mutations),
        tuning=MappingProxyType(settings.tuning),
        position=settings.position,
        inherits=settings.parents,
        expression_positions=MappingProxyType(_positions(settings)),
        **single,
    )


def _values(settings: RankSettings) -> dict[str, Any]:
    """The settings with one value, as RankProfile has them. The totals are over nodes, of which there is one."""
    single: dict[str, Any] = {
        name: value.text if isinstance(value, Text) else value for name, value in settings.single.items()
    }
    for total, name in (("total_keep_rank_count", "keep_rank_count"), ("total_rerank_count", "rerank_count")):
        if total in single:
            single[name] = single.pop(total)
    expression = settings.single.get("global_phase")
    count = single.pop("global_rerank_count", 100)
    limit = single.pop("global_rank_score_drop_limit", None)
    if isinstance(expression, Text):
        single["global_phase"] = GlobalPhase(expression.text, count, limit, expression.position)
    return single


def _positions(settings: RankSettings) -> dict[str, Position]:
    texts = {keyword: settings.single.get(keyword.replace("-", "_")) for keyword in ("first-phase", "second-phase")}
    places = {keyword: text.position for keyword, text in texts.items() if isinstance(text, Text) and text.position}
    return {**places, **settings.feature_positions}


def _field_ranks(settings: RankSettings, ranking: FieldRanking) -> dict[str, FieldRank]:
    types = {**ranking.rank_types, **settings.rank_types} if settings.is_default else settings.rank_types
    names = dict.fromkeys([*types, *settings.filter_thresholds, *settings.element_gaps])
    return {
        name: FieldRank(settings.filter_thresholds.get(name), settings.element_gaps.get(name), types.get(name, ""))
        for name in names
    }


class _Resolution:
    """One walk up the inheritance of a scope's profiles; each is resolved once."""

    def __init__(self, scope: ProfileScope, around: Surroundings) -> None:
        self.scope = scope
        self.around = around
        self.done: dict[str, RankSettings] = {}
        self.size = 0
        self.path: list[str] = []

    def effective(self, name: str) -> RankSettings:
        """The settings of declared profile `name` with all inherited ones in it."""
        if name in self.done:
            return self.done[name]
        node = self.scope.declared[name]
        own = read_settings(name, node, self.around)
        self.path.append(name)
        own.parents = tuple(self.full_name(name, each) for each in node.inherits)
        parents = [parent for each in own.parents if (parent := self.parent(name, each, node)) is not None]
        self.path.pop()
        self.done[name] = _combine_parents(own, parents, self.around.problems) if self.has_room(name, node) else own
        done = self.done[name]
        self.size += done.size + (self.around.ranking_fields if done.has_field_settings else 0)
        return done

    def has_room(self, name: str, node: SchemaNode) -> bool:
        """Return whether the profiles so far hold few enough settings, inherited ones counted in each."""
        if self.size <= limits.SCHEMA_PARTS:
            return True
        message = f"rank-profile {name}: the rank profiles have more than {limits.SCHEMA_PARTS} settings together"
        self.around.problems.error(message, node.position)
        return False

    def full_name(self, child: str, name: str) -> str:
        """The full name of what `child` calls `name`: the nearest of the profiles around it."""
        outer = child.rpartition(".")[0]
        while outer:
            full = f"{outer}.{name}"
            if full in self.scope.declared and full != child:
                return full
            outer = outer.rpartition(".")[0]
        return name

    def parent(self, child: str, name: str, node: SchemaNode) -> RankSettings | None:
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
            known = {*self.scope.declared, *self.scope.inherited, *BUILT_IN} - {child}
            what = "itself" if name == child else f"{name!r}, which does not exist{nearest(name, known)}"
            self.around.problems.error(f"rank-profile {child} inherits {what}", node.position)
        return found


def _combine_parents(own: RankSettings, parents: list[RankSettings], problems: Problems) -> RankSettings:
    combine = _Combination(own, parents, problems)

    def merge(what: str, name: str) -> dict[str, Any]:
        overridden: dict[str, Any] = getattr(own, name)
        return combine.merge_equal(what, [getattr(p, name) for p in parents], overridden) | overridden

    single = merge("", "single")
    for count in ("keep_rank_count", "rerank_count"):
        if {count, f"total_{count}"} <= single.keys():
            word = count.replace("_", "-")
            problems.error(f"rank-profile {own.name} has both {word} and total-{word}", own.position)
    return RankSettings(
        name=own.name,
        node=own.node,
        parents=own.parents,
        single=single,
        functions=combine.merge_equal("function ", [p.functions for p in parents], {}, _function) | own.functions,
        constants=combine.merge_equal("constant ", [p.constants for p in parents], {}, _constant) | own.constants,
        inputs=combine.merge_equal("input ", [p.inputs for p in parents], own.inputs, _input) | own.inputs,
        onnx_models={**{k: v for p in parents for k, v in p.onnx_models.items()}, **own.onnx_models},
        features={keyword: combine.features(keyword) for keyword in FEATURE_LISTS},
        feature_positions={**{k: v for p in parents for k, v in p.feature_positions.items()}, **own.feature_positions},
        properties=combine.only("rank-properties", [p.properties for p in parents], {}) | own.properties,
        tuning=merge("", "tuning"),
        mutations=[*(mutation for p in parents for mutation in p.mutations), *own.mutations],
        weights=merge("weight of ", "weights"),
        filters=merge("rank of ", "filters"),
        filter_thresholds=merge("filter-threshold of ", "filter_thresholds"),
        element_gaps=merge("element-gap of ", "element_gaps"),
        rank_types=merge("rank-type of ", "rank_types"),
        is_default=own.is_default or any(p.is_default for p in parents),
    )


def _function(function: Function) -> object:
    """The part of a function by which two definitions are the same; likewise the next ones."""
    return function.parameters, function.expression, function.inline


def _constant(constant: Constant) -> object:
    return constant.type, constant.text, constant.file, constant.uri


def _input(declared: Input) -> object:
    return declared.type, declared.default


def _itself(value: object) -> object:
    return value


class _Combination:
    """How the settings of several parents become one."""

    def __init__(self, own: RankSettings, parents: list[RankSettings], problems: Problems) -> None:
        self.own = own
        self.parents = parents
        self.problems = problems

    def merge_equal(
        self,
        what: str,
        maps: list[dict[str, _T]],
        overridden: Mapping[str, _T],
        meaning: Callable[[_T], object] = _itself,
    ) -> dict[str, _T]:
        """Merges maps. An entry that differs between two of them and is not overridden is an error."""
        result: dict[str, _T] = {}
        for entries in maps:
            for name, value in entries.items():
                if name not in overridden and meaning(result.setdefault(name, value)) != meaning(value):
                    self.conflict(f"{what}{name}" if what else name.replace("_", "-"))
        return result

    def only(self, what: str, values: list[_T], nothing: _T) -> _T:
        """The one value that is not empty; different ones are an error."""
        found = [value for value in values if value]
        if any(value != found[0] for value in found[1:]):
            self.conflict(what)
        return found[0] if found else nothing

    def features(self, keyword: str) -> dict[str, None]:
        own = self.own.features.get(keyword)
        if own is None:
            return self.only(keyword, [p.features.get(keyword, {}) for p in self.parents], {})
        named = set(self.own.inherited_features.get(keyword, ()))
        inherited = [f for p in self.parents if {p.name, _short(p.name)} & named for f in p.features.get(keyword, ())]
        return dict.fromkeys([*inherited, *own])

    def conflict(self, what: str) -> None:
        message = f"rank-profile {self.own.name} inherits different values of {what} from its parents"
        self.problems.error(message, self.own.position)


# Checks the settings of attributes in a rank profile, on the profile with everything that it inherits.
#
# Vespa: the validators of match-phase, diversity and rank filters in its config model (com.yahoo.schema.processing).


def check_profile(
    profile: RankProfile, fields: Mapping[str, Field], unusable: Collection[str], problems: Problems
) -> None:
    """Reports what is wrong with the profile's settings of attributes; `unusable` fields are reported elsewhere."""
    _Check(profile, fields, unusable, problems).run()


class _Check:
    """The checks of one profile."""

    def __init__(
        self, profile: RankProfile, fields: Mapping[str, Field], unusable: Collection[str], problems: Problems
    ) -> None:
        self.profile = profile
        self.fields = fields
        self.unusable = unusable
        self.problems = problems

    def run(self) -> None:
        phase, diversity = self.profile.match_phase, self.profile.diversity
        if phase and phase.attribute:
            self.match_phase(phase.attribute, phase.position)
        if diversity and diversity.attribute:
            self.diversity(diversity.attribute)
        for mutation in self.profile.mutations:
            self.mutation(mutation.attribute)
        for name, rank in self.profile.field_ranks.items():
            if rank.filter_threshold is not None and name in self.profile.filter_fields:
                self.error(f"field {name} has a filter-threshold, and is a filter: it can be one of both")

    def match_phase(self, name: str, position: Position | None) -> None:
        type_, settings = self.attribute("match-phase", name, position)
        if settings and not (type_ and _is_single_number(type_)):
            self.error(f"the attribute {name} of match-phase must be a single number, and is {type_}", position)
        elif settings and not settings.fast_search:
            self.error(f"the attribute {name} of match-phase must be fast-search", position)

    def diversity(self, name: str) -> None:
        type_, settings = self.attribute("diversity", name, None)
        if settings and type_ and (not is_single(type_) or type_ == PREDICATE):
            self.error(f"the attribute {name} of diversity must have single values, and is {type_}")
        if self.profile.match_phase is None and self.profile.second_phase is None:
            self.error("diversity needs a match-phase or a second-phase")

    def mutation(self, name: str) -> None:
        type_, settings = self.attribute("mutate", name, None)
        if settings and type_ and not _is_single_number(type_):
            self.error(f"the attribute {name} of mutate must be a single number, and is {type_}")
        elif settings and not settings.mutable:
            self.error(f"the attribute {name} of mutate must be mutable")

    def attribute(
        self, what: str, name: str, position: Position | None
    ) -> tuple[DataType | None, AttributeSettings | None]:
        """Type and settings of an attribute; None for both after telling that there is none."""
        field = self.fields.get(name)
        if field and field.attribute:
            return field.type, field.attribute
        if name not in self.unusable:
            attributes = [each.name for each in self.fields.values() if each.attribute]
            self.error(f"the attribute {name} of {what} does not exist{nearest(name, attributes)}", position)
        return None, None

    def error(self, message: str, position: Position | None = None) -> None:
        self.problems.error(f"rank-profile {self.profile.name}: {message}", position or self.profile.position)


def _is_single_number(type_: DataType) -> bool:
    return isinstance(type_, NumericType)
