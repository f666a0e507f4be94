"""All query profiles of an application, which of them a request gets, and the values of the request under it.

    files → types, profiles (declared) → checked → for each request: found by name, resolved for its dimensions (kept)

Used on one thread at a time; what is kept ready is only ever replaced by its equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, cast

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.field_types import FieldDescription, ProfileType
from paperwasp.application.query_profiles.model import Hole, Layer, QueryProfile, Registry, Template
from paperwasp.application.query_profiles.reading import ProfileReader, describe_undeclared, read_types
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import Finding, IllegalQuery

# A query profile for requests of one kind: all inheritance, references and variants resolved.
#
# Precedence: a variant, then what it inherits, then less specific variants likewise, then the profile's own fields,
# then what it inherits; the first value found for a name is the value. Names below a reference are found in what it
# refers to, unless the profile that refers says otherwise.
#
# Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#variants-and-inheritance


class Rule(Struct, frozen=True):
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


class ResolvedProfile(Struct, frozen=True, dict=True):
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
    _rules: dict[str, Rule] = field(default_factory=dict)

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


class _Walk(Struct):
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


# The values of one request under a query profile: what the request sets, then what the profile does.
#
# Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#overrides


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


# All query profiles of an application.


FOLDER: Final = "search/query-profiles"
_TYPES: Final = f"{FOLDER}/types"
DEFAULT: Final = "default"
_INPUT: Final = compile_later(r"query\((.+)\)")


class QueryProfiles:
    """The query profiles of an application."""

    def __init__(
        self, profiles: Registry[QueryProfile] | None = None, input_types: Mapping[str, TensorType] | None = None
    ) -> None:
        """`input_types`: what types say of the inputs of ranking, by the name in query(name)."""
        self.input_types: Mapping[str, TensorType] = input_types or {}
        self._profiles: Registry[QueryProfile] = profiles if profiles is not None else Registry()
        self._dimensions: dict[QueryProfile, tuple[tuple[str, frozenset[str]], ...]] = {}
        self._resolved: dict[tuple[QueryProfile, tuple[str | None, ...]], ResolvedProfile] = {}
        self.has_default = self._profiles.find(DEFAULT) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self._profiles)

    def find(self, name: str) -> QueryProfile | None:
        """The profile of that name; or else of the longest path above the name, where its type matches paths."""
        if not name:
            return self._profiles.find(DEFAULT)
        found = self._profiles.find(name)
        if found is not None or "/" not in name:
            return found or self._matching_path(f"{name}/")
        path, colon, version = name.partition(":")
        while path.strip("/"):
            if (found := self._matching_path(f"{path}/{colon}{version}")) is not None:
                return found
            path = path.rpartition("/")[0]
            if (found := self._matching_path(f"{path}{colon}{version}")) is not None:
                return found
        return None

    def _matching_path(self, reference: str) -> QueryProfile | None:
        found = self._profiles.find(reference)
        return found if found is not None and found.type is not None and found.type.match_path else None

    def compile(self, name: str, context: Mapping[str, str]) -> ResolvedProfile | None:
        """The profile of that name, as a request with these parameters sees it; None: there is no such profile."""
        profile = self.find(name)
        if profile is None:
            return None
        known = self._reachable(profile)
        given = tuple(value if (value := context.get(dimension)) in values else None for dimension, values in known)
        key = profile, given
        found = self._resolved.get(key)
        if found is None:
            if len(self._resolved) >= limits.QUERY_PROFILES_RESOLVED:
                self._resolved.clear()
            found = self._resolved[key] = resolve(profile, context)
        return found

    def plain(self, name: str) -> ResolvedProfile | None:
        """The profile of that name, where all that it does is to give values for what a request leaves out: it has no
        variants, types, fixed values or substitutions. Then it is the same for all requests."""
        profile = self.find(name)
        if profile is None or self._reachable(profile):
            return None
        resolved = self.compile(name, {})
        is_plain = resolved is not None and not (resolved.types or resolved.fixed or resolved.has_templates)
        return resolved if is_plain else None

    def values(
        self,
        profile: ResolvedProfile,
        given: Mapping[str, str],
        context: Mapping[str, str],
        full_name: FullName = lambda name: name,
    ) -> dict[str, str]:
        """All values of a request that gives `given`, by full names, and whose parameters, as they came, are `context`.

        `full_name` knows the aliases of parameters. Errors: IllegalQuery.
        """
        return values_of(profile, given, lambda name: self.compile(name, context), full_name)

    def _reachable(self, profile: QueryProfile) -> tuple[tuple[str, frozenset[str]], ...]:
        """All dimensions over which the profile or one that it reaches varies, and the values that matter."""
        if profile not in self._dimensions:
            found: dict[str, set[str]] = {}
            for reached in _find_reachable((profile,)):
                for layer in reached.variants:
                    for dimension, value in zip(reached.dimensions, layer.when, strict=False):
                        found.setdefault(dimension, set()).update([value] if value is not None else [])
            self._dimensions[profile] = tuple((name, frozenset(values)) for name, values in found.items())
        return self._dimensions[profile]


NO_QUERY_PROFILES: Final = QueryProfiles()


def _find_reachable(profiles: Iterable[QueryProfile]) -> set[QueryProfile]:
    reached: set[QueryProfile] = set()
    waiting = list(profiles)
    while waiting:
        profile = waiting.pop()
        if profile not in reached:
            reached.add(profile)
            for layer in (profile.own, *profile.variants):
                waiting.extend((*layer.inherits, *(target for _, target, _ in layer.references)))
    return reached


def parse_query_profiles(files: Mapping[str, bytes]) -> tuple[QueryProfiles, tuple[Finding, ...]]:
    """The query profiles among a package's files (path → content), and what there is to tell about them.

    With an error among the findings there are no profiles.
    """
    findings = Findings()
    profiles: dict[str, bytes] = {}
    types: dict[str, bytes] = {}
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        if not name.endswith(".xml") or not f"{folder}/".startswith(f"{FOLDER}/"):
            continue
        if folder == FOLDER:
            profiles[path] = files[path]
        elif folder == _TYPES:
            types[path] = files[path]
        else:
            findings.warning(f"{path} is not read: query profiles are in {FOLDER} itself, types in {_TYPES}", None)
    known_types = read_types(types, findings)
    reader = ProfileReader(known_types, findings)
    check_profiles(reader.read(profiles), findings)
    found = (
        NO_QUERY_PROFILES if findings.errors else QueryProfiles(reader.profiles, _input_types(known_types, findings))
    )
    return found, (*findings.errors, *findings.notes)


def _input_types(types: Iterable[ProfileType], findings: Findings) -> dict[str, TensorType]:
    """The tensor types of all fields `query(name)`, for expressions of rank profiles that do not declare the input.

    Vespa: RankProfile.addInputs of what all query profile types say, whichever of them a query uses.
    """
    found: dict[str, TensorType] = {}
    for type_ in types:
        for declared in _own_fields(type_):
            match = _INPUT.fullmatch(declared.name)
            if match is None or declared.type.tensor is None:
                continue
            other = found.setdefault(match[1], declared.type.tensor)
            if other != declared.type.tensor:
                message = (
                    f"{declared.name} has the types {other} and {declared.type.tensor}: the first counts in expressions"
                )
                findings.warning(message, type_.position)
    return found


def _own_fields(type_: ProfileType) -> Iterator[FieldDescription]:
    """The fields that a type declares, also those with dots in their names, which are in types of their own."""
    for declared in type_.declared.values():
        nested = declared.type.profile_type
        if nested is not None and nested.is_nested:
            yield from _own_fields(nested)
        else:
            yield declared


# Checks of all query profiles together, once they are read: circles, sizes, variants, local substitutions.
#
# A profile that reaches itself, by inheritance or by reference, would have names without end, so there must be no way
# round. Whatever closes a circle is cut, so that the rest can be checked.


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
        """Return whether the name has a value in any variant."""
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
