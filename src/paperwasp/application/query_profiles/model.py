"""Query profiles as they are declared: fields, variants, and what they inherit and refer to.

Vespa: https://docs.vespa.ai/en/reference/querying/query-profiles.html#query-profiles
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property

from paperwasp.application.query_profiles.field_types import ProfileType
from paperwasp.application.query_profiles.ids import ComponentId
from paperwasp.application.query_profiles.substitution import Template
from paperwasp.base.records import dataclass
from paperwasp.errors import Position


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a field, and whether a request may set it to something else."""

    content: str | Template
    overridable: bool = True
    position: Position | None = None


When = tuple[str | None, ...]
"""Values of a profile's dimensions. None matches anything, and so does what is left out at the end."""


@dataclass
class Layer:
    """Settings that apply together: values, references to profiles (whose fields are below a name), and parents."""

    when: When = ()
    """Empty for the profile's own layer, which always applies."""
    position: Position | None = None
    values: dict[str, Value] = field(default_factory=dict)
    references: list[tuple[str, QueryProfile, bool]] = field(default_factory=list)
    """Name, profile, and whether a request may set another profile there; names with more dots come first."""
    inherits: list[QueryProfile] = field(default_factory=list)


@dataclass(eq=False)
class QueryProfile:
    """A query profile. Filled while profiles are read, since they refer to each other; then never changed."""

    id: ComponentId
    type: ProfileType | None = None
    own: Layer = field(default_factory=Layer, repr=False)
    variants: list[Layer] = field(default_factory=list, repr=False)
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
