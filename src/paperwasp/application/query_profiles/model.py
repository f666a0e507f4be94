"""Query profiles as they are declared: fields, variants, and what they inherit and refer to.

Vespa: https://docs.vespa.ai/en/reference/querying/query-profiles.html#query-profiles
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from paperwasp.application.query_profiles.field_types import ProfileType
from paperwasp.base.patterns import compile_later
from paperwasp.errors import Position

# Ids of query profiles and types: a name and a version, and how a reference finds the one it means.
#
#     MyProfile · MyProfile:1.2.3 · MyProfile:1.2.3.beta
#
# A reference that leaves the version, or its end, open means the newest one that begins so.
# Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#versioning


NAME: Final = compile_later(r"[$a-zA-Z_/][-$a-zA-Z0-9_/()]*")
"""The name of a profile, of a type, or of one part of a field's name."""
_VERSION: Final = compile_later(r"(\d{1,9})(?:\.(\d{1,9})(?:\.(\d{1,9})(?:\.([a-zA-Z0-9_-]+))?)?)?")

Version = tuple[int, int, int, str]
T = TypeVar("T")


class ComponentId(Struct, frozen=True):
    """A name and a version; `given` says how much of the version was written."""

    name: str
    version: Version = (0, 0, 0, "")
    given: int = 0

    @classmethod
    def parse(cls, text: str) -> ComponentId:
        """Errors: ValueError that says what is wrong."""
        name, colon, version = text.partition(":")
        if NAME.fullmatch(name) is None:
            raise ValueError(f"Illegal name '{name}'")
        if not colon:
            return cls(name)
        match = _VERSION.fullmatch(version)
        if match is None:
            raise ValueError(f"Illegal version '{version}' in '{text}'; one looks like 1, 1.2, 1.2.3 or 1.2.3.name")
        major, minor, micro, qualifier = match.groups()
        given = sum(part is not None for part in match.groups())
        return cls(name, (int(major), int(minor or 0), int(micro or 0), qualifier or ""), given)

    def admits(self, version: Version) -> bool:
        """Return whether this, as a reference, can mean something of that version."""
        return version[: self.given] == self.version[: self.given]

    def __str__(self) -> str:
        if self.version == (0, 0, 0, ""):
            return self.name
        *numbers, qualifier = self.version
        return f"{self.name}:{'.'.join(map(str, numbers))}{f'.{qualifier}' if qualifier else ''}"


class Registry(Generic[T]):
    """Things by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[Version, T]] = {}

    def add(self, id_: ComponentId, thing: T) -> bool:
        """False, and nothing is changed, where the id is taken."""
        versions = self._by_name.get(id_.name, {})
        if id_.version in versions:
            return False
        self._by_name[id_.name] = dict(sorted((versions | {id_.version: thing}).items()))
        return True

    def find(self, reference: str) -> T | None:
        """The newest thing that the reference can mean."""
        versions = self._by_name.get(reference)
        if versions is not None:
            return next(reversed(versions.values()))
        if ":" not in reference:
            return None
        try:
            id_ = ComponentId.parse(reference)
        except ValueError:
            return None
        versions = self._by_name.get(id_.name, {})
        return next((thing for version, thing in reversed(versions.items()) if id_.admits(version)), None)

    def __iter__(self) -> Iterator[T]:
        return (thing for versions in self._by_name.values() for thing in versions.values())

    @property
    def names(self) -> Iterator[str]:
        return iter(self._by_name)


# Texts with `%{name}` in them, which stands for the value of another property, and `%{.name}`, of one beside it.
#
# Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#value-substitution


_OPENING: Final = "%{"
_HOLE: Final = compile_later(r"%\{([^}]*)\}")


class Hole(Struct, frozen=True):
    """The place of a value in a text. `is_local`: the value beside this one in the profile, whatever a request says."""

    name: str
    is_local: bool = False


class Template(Struct, frozen=True):
    """A text with holes."""

    text: str
    parts: tuple[str | Hole, ...]

    @property
    def local_names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if isinstance(part, Hole) and part.is_local)

    def __str__(self) -> str:
        return self.text


def parse_value(text: str) -> str | Template:
    """The text itself where there is nothing to substitute. Errors: ValueError for a substitution without an end."""
    if _OPENING not in text:
        return text
    parts: list[str | Hole] = []
    end = 0
    for match in _HOLE.finditer(text):
        _check_closed(text[end : match.start()] + match[1])
        parts.append(text[end : match.start()])
        name = match[1]
        parts.append(Hole(name.removeprefix("."), name.startswith(".")))
        end = match.end()
    _check_closed(text[end:])
    parts.append(text[end:])
    return Template(text, tuple(part for part in parts if part))


def _check_closed(text: str) -> None:
    if _OPENING in text:
        raise ValueError(f"Unterminated value substitution '{text[text.index(_OPENING) :]}'")


class Value(Struct, frozen=True):
    """The value of a field, and whether a request may set it to something else."""

    content: str | Template
    overridable: bool = True
    position: Position | None = None


When = tuple[str | None, ...]
"""Values of a profile's dimensions. None matches anything, and so does what is left out at the end."""


class Layer(Struct):
    """Settings that apply together: values, references to profiles (whose fields are below a name), and parents."""

    when: When = ()
    """Empty for the profile's own layer, which always applies."""
    position: Position | None = None
    values: dict[str, Value] = field(default_factory=dict)
    references: list[tuple[str, QueryProfile, bool]] = field(default_factory=list)
    """Name, profile, and whether a request may set another profile there; names with more dots come first."""
    inherits: list[QueryProfile] = field(default_factory=list)


class QueryProfile(Struct, eq=False, dict=True):
    """A query profile. Filled while profiles are read, since they refer to each other; then never changed."""

    id: ComponentId
    type: ProfileType | None = None
    own: Layer = field(default_factory=Layer)
    variants: list[Layer] = field(default_factory=list)
    declared_dimensions: tuple[str, ...] | None = None
    position: Position | None = None

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        """Its own, or those of the first profile, depth first, that it inherits and that has any."""
        if self.declared_dimensions is not None:
            return self.declared_dimensions
        return next((parent.dimensions for parent in self.own.inherits if parent.dimensions), ())

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """All layers, by falling precedence: concrete values of dimensions further to the left are worth more."""
        return (*sorted(self.variants, key=self._generality), self.own)

    def _generality(self, layer: Layer) -> list[bool]:
        return [index >= len(layer.when) or layer.when[index] is None for index in range(len(self.dimensions))]

    def matching(self, context: Mapping[str, str]) -> Iterator[Layer]:
        """The layers that hold for a request with these parameters, by falling precedence."""
        if not self.variants:
            yield self.own
            return
        given = [context.get(dimension) for dimension in self.dimensions]
        for layer in self.layers:
            if all(wanted is None or wanted == value for wanted, value in zip(layer.when, given, strict=False)):
                yield layer

    def __str__(self) -> str:
        return f"query profile '{self.id}'" + (f" of type '{self.type.name}'" if self.type else "")
