"""All query profiles of an application, and which of them a request gets.

    files → types, profiles (declared) → checked → for each request: found by name, resolved for its dimensions (kept)

Used on one thread at a time; what is kept ready is only ever replaced by its equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.checks import check_profiles
from paperwasp.application.query_profiles.field_types import FieldDescription, ProfileType
from paperwasp.application.query_profiles.ids import Registry
from paperwasp.application.query_profiles.model import QueryProfile
from paperwasp.application.query_profiles.profile_reader import ProfileReader
from paperwasp.application.query_profiles.request import FullName, values_of
from paperwasp.application.query_profiles.resolved import ResolvedProfile, resolve
from paperwasp.application.query_profiles.type_reader import read_types
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import Finding

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
        for field in _own_fields(type_):
            match = _INPUT.fullmatch(field.name)
            if match is None or field.type.tensor is None:
                continue
            other = found.setdefault(match[1], field.type.tensor)
            if other != field.type.tensor:
                message = f"{field.name} has the types {other} and {field.type.tensor}: the first counts in expressions"
                findings.warning(message, type_.position)
    return found


def _own_fields(type_: ProfileType) -> Iterator[FieldDescription]:
    """The fields that a type declares, also those with dots in their names, which are in types of their own."""
    for field in type_.declared.values():
        nested = field.type.profile_type
        if nested is not None and nested.is_nested:
            yield from _own_fields(nested)
        else:
            yield field
