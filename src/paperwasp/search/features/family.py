"""Families of rank features, and their registry: one file of this package a family.

A family says its name, its parameters and its outputs once; they are checked against the schema when a profile is
compiled, and `bind` then answers the function that computes one output for a block of hits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.types import PREDICATE, ArrayType, MapType, NumericType, TensorFieldType, WeightedSetType
from paperwasp.errors import LanguageError
from paperwasp.ranking import Program, RankValue
from paperwasp.ranking.declarations import Declarations
from paperwasp.ranking.tensor_run import batch, whole_column
from paperwasp.schema.data_types import is_position
from paperwasp.schema.model import Field, RankProfile, Schema, SubField, uri_parts
from paperwasp.schema.pending import Z_CURVE_SUFFIX, is_attribute_now, is_indexed_now, is_z_curve
from paperwasp.search.features.block import Block
from paperwasp.text.parsing.tokens import did_you_mean

Floats = NDArray[np.float64]
Compute = Callable[[Block], Floats]
"""One float64 for each hit of the block, or a single one for all of them."""
TensorCompute = Callable[[Block], TensorBatch]
"""The same of a feature of tensor type: a tensor of just that type for each hit, or a single one."""

Parameter = Literal[
    "index", "single-index", "attribute", "numeric-attribute", "tensor-attribute", "position-attribute", "field",
    "number", "name", "expression", "attribute-feature", "any-field",
]  # fmt: skip
"""The kind of an argument: a field with an index (of a single value), with an attribute (of numbers, a tensor,
positions), with either of them; a number, counted from 0; any name; an expression; the feature attribute(name); any
field that terms may match, or whose parts they may match: in streaming search that is each one."""


class RankSetup(Struct, frozen=True, dict=True):
    """The rank profile and the schema that features are bound to."""

    schema: Schema
    profile: RankProfile
    declarations: Declarations = field(default_factory=Declarations)
    """Constants and models, with the files of the package if they are available."""

    def described(self, name: str) -> Field | SubField | None:
        """A field, or a part of one by its path (`items.price`)."""
        found = self.schema.fields.get(name)
        if found is None and "." in name:
            outer, _, path = name.partition(".")
            field_ = self.schema.fields.get(outer)
            if field_ is not None and path in uri_parts(field_):
                return self.schema.field_named(name)
            return field_.sub_fields.get(path) if field_ is not None else None
        return found

    def field(self, name: str) -> Field:
        """A field that is there, or a part of a URI."""
        found = self.schema.field_named(name)
        assert found is not None, name
        return found

    def searched_name(self, name: str) -> str:
        """The name that terms search a field by: `u.hostname` for `u.host`, the positions for their z-curve."""
        found = self.schema.field_named(name)
        if found is None:
            return name
        return found.name.removesuffix(Z_CURVE_SUFFIX) if is_z_curve(found, self.schema) else found.name

    def text(self, *keys: str) -> str | None:
        """The rank property of the first of these keys that is set, without quotes. Of several values the first."""
        for key in keys:
            if (value := self.profile.rank_properties.get(key)) is not None:
                return value[0].strip().strip("\"'")
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

    def whole(self, default: int, most: int, *keys: str) -> int:
        """As `number`, without what is behind the point; at most `most`."""
        number = self.number(default, *keys)
        if not -most <= number <= most:
            raise LanguageError(f"rank property {keys[0]} is {number:g}: at most {most}")
        return int(number)

    def weight(self, name: str) -> int:
        """The weight of a field: the profile's, or the field's own."""
        return self.profile.field_weights.get(name, self.field(name).weight)

    def rank_type(self, name: str) -> str:
        """The rank type that the profile says for a field, or the field where that counts; empty: none."""
        rank = self.profile.field_ranks.get(name)
        return "" if rank is None else rank.rank_type

    def is_filter(self, name: str) -> bool:
        """Whether the field only filters: its matches give no score."""
        return name in self.profile.filter_fields

    def has_bm25(self, name: str) -> bool:
        """Whether the index of the field keeps what bm25 needs: any does in streaming search, where it is made for each
        query (Vespa: QueryTerm::unpack_match_data)."""
        index = self.field(name).index
        return index is not None and (index.enable_bm25 or self.schema.is_streamed)

    @cached_property
    def listed_index_fields(self) -> tuple[str, ...]:
        """The fields with an index that is searched, and the parts of URIs, each of which is one in Vespa.

        Vespa: UriHack.java.
        """
        fields = [field for field in self.schema.fields.values() if is_indexed_now(field)]
        return tuple(
            name for field in fields for name in (field.name, *(f"{field.name}.{part}" for part in uri_parts(field)))
        )

    @cached_property
    def index_fields(self) -> tuple[str, ...]:
        """These fields by the names that terms search them by, each once."""
        return tuple(dict.fromkeys(map(self.searched_name, self.listed_index_fields)))

    def is_single(self, name: str) -> bool:
        """Whether the field has a single value."""
        return not is_multiple(self.field(name))

    @cached_property
    def attribute_fields(self) -> tuple[str, ...]:
        """The fields that ranking sees as attributes: a field that has an index as well counts as an index field; and
        the parts of structs and maps that are attributes.

        In Vespa each such part is an attribute of its own (config-model's AttributeFields.java, proton's
        indexenvironment.cpp).
        """
        whole = [field.name for field in self.schema.fields.values() if field.index is None and is_attribute_now(field)]
        names = (f"{field.name}.{path}" for field in self.schema.fields.values() for path in field.sub_fields)
        parts = [part for name in names if name not in self.schema.fields and (part := self.schema.field_named(name))]
        return (*whole, *(part.name for part in parts if is_attribute_now(part)))

    @cached_property
    def listed_attributes(self) -> tuple[str, ...]:
        """These fields by the names of their attributes in Vespa, which keeps positions as z-curves; and predicates,
        whose matches only some features see."""
        predicates = [f.name for f in self.schema.fields.values() if f.type == PREDICATE and is_attribute_now(f)]
        names = dict.fromkeys((*self.attribute_fields, *predicates))
        curved = [name for name in names if f"{name}{Z_CURVE_SUFFIX}" in self.schema.fields]
        return tuple(f"{name}{Z_CURVE_SUFFIX}" if name in curved else name for name in names)


Bind = Callable[[RankSetup, tuple[str, ...], str], Callable[[Block], Any]]
"""From the setup, the arguments and the name of an output to what computes it: a Compute, or a TensorCompute."""

Check = Callable[[RankSetup, tuple[str, ...], str], str]
"""From the same to what of it is not executed yet; empty: nothing. Raises LanguageError for what cannot be."""

TypeRule = Callable[[RankSetup, tuple[str, ...], str], TensorType]
"""From the same to the type of the value."""


def _number(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    return NUMBER


def _all_executed(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    return ""


class Family(Struct, frozen=True):
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
    type: TypeRule = _number
    pending: Check = _all_executed
    any_output: bool = False
    """Whether it has more outputs than those that are named."""


_DIGITS: Final = 9
"""The digits of the largest number that an argument may be, which fits all that compute with it."""
_FAMILIES: Final[dict[str, Family]] = {}


def register(
    name: str,
    *parameters: Parameter,
    outputs: tuple[str, ...] = ("out",),
    optional: int = 0,
    repeated: bool = False,
    listed: Callable[[RankSetup], Iterable[str]] = lambda setup: (),
    type_: TypeRule = _number,
    pending: Check = _all_executed,
    any_output: bool = False,
) -> Callable[[Bind], Bind]:
    """Registers the function below as `bind` of a family."""

    def add(bind: Bind) -> Bind:
        _FAMILIES[name] = Family(
            name, parameters, outputs, bind, optional, repeated, listed, type_, pending, any_output
        )
        return bind

    return add


def families() -> Mapping[str, Family]:
    """The registered families by name."""
    return _FAMILIES


def check_arguments(family: Family, setup: RankSetup, arguments: tuple[str | None, ...]) -> str:
    """Return what is not executed yet of the fields that arguments name; raises LanguageError for wrong arguments."""
    most = len(family.parameters)
    least = most - (1 if family.repeated else family.optional)
    if len(arguments) < least or (len(arguments) > most and not family.repeated):
        wanted = f"at least {least}" if family.repeated else (f"{least}" if least == most else f"{least} to {most}")
        raise LanguageError(f"rank feature {family.name!r} takes {wanted} argument(s), not {len(arguments)}")
    pending = ""
    for number, argument in enumerate(arguments):
        if argument is not None:
            kind = family.parameters[min(number, most - 1)]
            pending = pending or _check_argument(kind, argument, setup, family.name)
    return pending


def _check_argument(kind: Parameter, argument: str, setup: RankSetup, feature: str) -> str:
    if kind in ("name", "expression"):
        return ""
    if kind == "number":
        number_in(argument, feature)
        return ""
    if kind == "attribute-feature":
        if not (argument.startswith("attribute(") and argument.endswith(")")):
            raise LanguageError(f"rank feature {feature!r} takes attribute(name), not {argument!r}")
        kind, argument = "attribute", argument[10:-1]
    return check_field(kind, argument, setup, feature)


_OF_PARTS: Final = (
    "attribute",
    "attributeMatch",
    "nativeAttributeMatch",
    "nativeRank",
    "tensorFromLabels",
    "tensorFromLabelsWithOffset",
    "tensorFromStructs",
)
"""The features that read parts of structs, which are columns of arrays."""


def number_in(argument: str, feature: str) -> int:
    """The number that an argument is. Raises LanguageError for anything else."""
    if not (argument.isascii() and argument.isdigit() and len(argument) <= _DIGITS):
        raise LanguageError(f"rank feature {feature!r} takes a number counted from 0, not {argument!r}")
    return int(argument)


_OF_Z_CURVES: Final = frozenset({"attribute", "attributeMatch", "matches", "rawScore"})
"""The features of the attribute that Vespa keeps positions in."""


def check_field(kind: Parameter, name: str, setup: RankSetup, feature: str) -> str:
    """As `check_arguments`, of a field that a feature names."""
    described = setup.described(name)
    if described is None:
        near = did_you_mean(name, setup.schema.fields)
        raise LanguageError(f"rank feature {feature!r}: schema {setup.schema.name!r} has no field {name!r}{near}")
    if kind == "any-field":
        if setup.schema.is_streamed or _may_match(described):
            return ""
        raise LanguageError(f"rank feature {feature!r}: field {name!r} {_NEITHER}")
    if problem := _FIELD_CHECKS[kind](described):
        if setup.schema.is_streamed and kind in _OF_INDEXES and _may_match(described):
            if feature in _FLAT and isinstance(described, Field) and _is_flat_now(described):
                return ""
            return f"{feature}({name}) of type {described.type} where documents are streamed"
        raise LanguageError(f"rank feature {feature!r}: field {name!r} {problem}")
    if isinstance(described, SubField):
        if feature not in _OF_PARTS:
            return f"{feature}({name}) of a struct field"
        part = setup.schema.field_named(name)
        assert part is not None
        described = part
    if feature in _OF_Z_CURVES and isinstance(described, Field) and is_z_curve(described, setup.schema):
        return ""
    if kind in ("index", "single-index", "field"):
        executed = is_indexed_now(described) or (kind == "field" and is_attribute_now(described))
    else:
        executed = is_attribute_now(described) or isinstance(described.type, TensorFieldType)
    return "" if executed else f"{feature}({name}) of type {described.type}"


_FLAT: Final = ("bm25", "fieldMatch", "textSimilarity")
"""The features that are computed of fields which streaming search takes for texts of one value (`flat_places`)."""


def _is_flat_now(field: Field) -> bool:
    """Whether values of the field are texts with an index, or numbers."""
    kind = field.type
    value = kind.inner[0] if isinstance(kind, ArrayType | WeightedSetType) else kind
    return is_indexed_now(field) or (isinstance(value, NumericType) and is_attribute_now(field))


_OF_INDEXES: Final = ("index", "single-index")
"""Where documents are streamed, Vespa takes numbers and several values for a text of one value (its IndexEnvironment of
streamingvisitors, `addField`)."""
_NEITHER: Final = "is neither an index nor an attribute"


def _may_match(described: Field | SubField) -> bool:
    """Whether terms may match the field, or parts of it: Vespa has such a field for `sameElement`
    (IndexEnvironment::add_virtual_fields)."""
    parts = described.sub_fields.values() if isinstance(described, Field) else ()
    return any(each.index is not None or each.attribute is not None for each in (described, *parts))


def _index_problem(described: Field | SubField) -> str:
    return "" if described.index is not None else "has no index: its indexing statement needs 'index'"


def _single_problem(described: Field | SubField) -> str:
    problem = f"is a {described.type}: a single value is expected here"
    return _index_problem(described) or (problem if is_multiple(described) else "")


def _attribute_problem(described: Field | SubField) -> str:
    return "" if described.attribute is not None else "is no attribute: its indexing statement needs 'attribute'"


def _numeric_problem(described: Field | SubField) -> str:
    problem = f"is a {described.type}: a number is expected here"
    return _attribute_problem(described) or ("" if is_numeric(described) else problem)


def _tensor_problem(described: Field | SubField) -> str:
    problem = f"is a {described.type}: a tensor is expected here"
    return _attribute_problem(described) or ("" if isinstance(described.type, TensorFieldType) else problem)


def _position_problem(described: Field | SubField) -> str:
    problem = f"is a {described.type}: a position is expected here"
    return _attribute_problem(described) or ("" if is_position(described.type) else problem)


def _no_field_problem(described: Field | SubField) -> str:
    if described.index is None and described.attribute is None:
        return _NEITHER
    return ""


_FIELD_CHECKS: Final[Mapping[Parameter, Callable[[Field | SubField], str]]] = {
    "index": _index_problem,
    "single-index": _single_problem,
    "attribute": _attribute_problem,
    "numeric-attribute": _numeric_problem,
    "tensor-attribute": _tensor_problem,
    "position-attribute": _position_problem,
    "field": _no_field_problem,
}
"""Why a field is not of the kind; empty if it is."""


def is_numeric(described: Field | SubField) -> bool:
    """Whether the field holds numbers, one or many."""
    kind = described.type
    return isinstance(kind.element if isinstance(kind, ArrayType) else kind, NumericType)


def is_multiple(described: Field | SubField) -> bool:
    """Whether the field holds several values."""
    return isinstance(described.type, ArrayType | WeightedSetType | MapType)


def one(value: float) -> Floats:
    """The same value for all hits."""
    return np.array([value], np.float64)


def constant(value: float) -> Compute:
    """Computes the same value for every hit of every query."""
    column = one(value)
    return lambda block: column


# Running what profiles are compiled to over one block of hits.
#
# Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html


def evaluate(program: Program, block: Block) -> Floats:
    """The value of `program` for each hit of `block`, which remembers what several programs ask for."""
    return whole_column(program, block)


def evaluate_all(values: Mapping[str, RankValue], block: Block) -> dict[str, Floats | TensorBatch]:
    """name → one float64 per hit, or a tensor of each (or a single one): for match-features, summary-features and
    rank features."""
    return {
        name: evaluate(value, block) if isinstance(value, Program) else batch(value, block)
        for name, value in values.items()
    }
