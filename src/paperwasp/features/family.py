"""What a rank feature family is, and the registry of them: one file of this package a family.

A family says its name, its parameters and its outputs once; they are checked against the schema when a profile is
compiled, and `bind` then answers the function that computes one output for a block of hits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.types import ArrayType, NumericType
from paperwasp.errors import LanguageError
from paperwasp.features.base import MatchContext
from paperwasp.schema.model import Field, RankProfile, Schema

Floats = NDArray[np.float64]
Compute = Callable[[MatchContext], Floats]
"""One float64 for each hit of the context, or a single one for all of them."""

Parameter = Literal["index", "attribute", "numeric-attribute", "field", "number", "name"]
"""What an argument must be: a field with an index, with an attribute (of numbers), with either of them; a number,
counted from 0; or any name."""


@dataclass(frozen=True, slots=True)
class RankSetup:
    """What the features of one rank profile are bound to."""

    schema: Schema
    profile: RankProfile

    def text(self, *keys: str) -> str | None:
        """The rank property of the first of these keys that is set, without quotes."""
        for key in keys:
            if (value := self.profile.rank_properties.get(key)) is not None:
                return value[-1].strip().strip("\"'")
        return None

    def number(self, default: float, *keys: str) -> float:
        """As `text`, as a number."""
        text = self.text(*keys)
        if text is None:
            return default
        try:
            return float(text)
        except ValueError:
            raise LanguageError(f"rank property {keys[0]} is no number: {text!r}") from None

    def weight(self, name: str) -> int:
        """The weight of a field: the profile's, or the field's own."""
        return self.profile.field_weights.get(name, self.schema.fields[name].weight)

    def is_filter(self, name: str) -> bool:
        """Whether the field only filters: its matches give no score."""
        return name in self.profile.filter_fields

    def has_bm25(self, name: str) -> bool:
        """Whether the index of the field keeps what bm25 needs."""
        index = self.schema.fields[name].index
        return index is not None and index.enable_bm25

    @property
    def index_fields(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema.fields.values() if f.index is not None)

    @property
    def attribute_fields(self) -> tuple[str, ...]:
        """The fields that ranking sees as attributes: a field that has an index as well counts as an index field."""
        return tuple(f.name for f in self.schema.fields.values() if f.attribute is not None and f.index is None)


Bind = Callable[[RankSetup, tuple[str, ...], str], Compute]
"""From the setup, the arguments and the name of an output to what computes it."""


@dataclass(frozen=True, slots=True)
class Family:
    """One rank feature family."""

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[str, ...]
    """Names of its outputs; the first is the one of the name without an output."""
    bind: Bind
    optional: int = 0
    """How many of the last parameters may be left out."""
    repeated: bool = False
    """Whether the last parameter may come any number of times, or not at all."""
    listed: Callable[[RankSetup], Iterable[str]] = field(default=lambda setup: ())
    """Its features among the default rank features."""


_FAMILIES: Final[dict[str, Family]] = {}


def register(
    name: str,
    *parameters: Parameter,
    outputs: tuple[str, ...] = ("out",),
    optional: int = 0,
    repeated: bool = False,
    listed: Callable[[RankSetup], Iterable[str]] = lambda setup: (),
) -> Callable[[Bind], Bind]:
    """Registers the function below as `bind` of a family."""

    def add(bind: Bind) -> Bind:
        _FAMILIES[name] = Family(name, parameters, outputs, bind, optional, repeated, listed)
        return bind

    return add


def families() -> Mapping[str, Family]:
    """The registered families by name."""
    return _FAMILIES


def check_arguments(family: Family, setup: RankSetup, arguments: tuple[str, ...]) -> None:
    """Raises LanguageError where the arguments are not what the family takes of this schema."""
    most = len(family.parameters)
    least = most - (1 if family.repeated else family.optional)
    if len(arguments) < least or (len(arguments) > most and not family.repeated):
        wanted = f"at least {least}" if family.repeated else (f"{least}" if least == most else f"{least} to {most}")
        raise LanguageError(f"rank feature {family.name!r} takes {wanted} argument(s), not {len(arguments)}")
    for number, argument in enumerate(arguments):
        _check_argument(family.parameters[min(number, most - 1)], argument, setup, family.name)


def _check_argument(kind: Parameter, argument: str, setup: RankSetup, feature: str) -> None:
    if kind == "name":
        return
    if kind == "number":
        if not argument.isdigit():
            raise LanguageError(f"rank feature {feature!r} takes a number counted from 0, not {argument!r}")
        return
    described = setup.schema.fields.get(argument)
    if described is None:
        raise LanguageError(f"rank feature {feature!r}: schema {setup.schema.name!r} has no field {argument!r}")
    if problem := _field_problem(kind, described):
        raise LanguageError(f"rank feature {feature!r}: field {argument!r} {problem}")


def _field_problem(kind: Parameter, described: Field) -> str:
    """Why the field is not of the kind; empty if it is."""
    if kind == "index":
        if described.index is None:
            return "has no index: its indexing statement needs 'index'"
    elif kind == "field":
        if described.index is None and described.attribute is None:
            return "is neither an index nor an attribute"
    elif described.attribute is None:
        return "is no attribute: its indexing statement needs 'attribute'"
    elif kind == "numeric-attribute" and not is_numeric(described):
        return f"is a {described.type}: only numbers are supported here"
    return ""


def is_numeric(described: Field) -> bool:
    """Whether the field holds numbers, one or many."""
    kind = described.type
    return isinstance(kind.element if isinstance(kind, ArrayType) else kind, NumericType)


def one(value: float) -> Floats:
    """The same value for all hits."""
    return np.array([value], np.float64)


def constant(value: float) -> Compute:
    """Computes the same value for every hit of every query."""
    column = one(value)
    return lambda context: column
