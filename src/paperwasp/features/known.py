"""The rank features of Vespa that are checked only: their arguments, outputs and types, in one table.

A profile that asks for one of them is right, and is not executed yet. What is executed registers itself, each family in
its own file; both are in `family.families`.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from typing import Final

from paperwasp.document.types import MapType, StructType, TensorFieldType, WeightedSetType
from paperwasp.errors import LanguageError
from paperwasp.features.family import (
    Check,
    Family,
    Parameter,
    RankSetup,
    TypeRule,
    check_field,
    register_known,
)
from paperwasp.parsing.nearest import did_you_mean
from paperwasp.tensor.types import CELL_TYPES, NUMBER, Dimension, TensorType

_FOREACH_OPERATIONS: Final = ("sum", "product", "average", "max", "min", "count")
_FOREACH_OVER: Final = ("terms", "fields", "attributes")


def _number(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    return NUMBER


def _nothing_more(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    return ""


def _one_of(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise LanguageError(f"{what} is {' or '.join(words)}, not {word!r}{did_you_mean(word, words)}")


# Types


def _source(argument: str) -> str:
    """The name in attribute(name)."""
    return argument[10:-1]


def _one_mapped(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """One mapped dimension: that of the second argument, or named as the attribute."""
    return TensorType.of([Dimension(arguments[1] if len(arguments) > 1 else _source(arguments[0]))])


def _two_mapped(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """A dimension of labels, and one of their places in the array."""
    if arguments[1] == arguments[2]:
        raise LanguageError(f"the two dimensions of a tensor cannot both be {arguments[1]!r}")
    return TensorType.of([Dimension(arguments[1]), Dimension(arguments[2])])


def _of_structs(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    keys, cells = arguments[1:-2], arguments[-1]
    _one_of("the cell type", cells, ("float", "double"))
    if len(set(keys)) < len(keys):
        raise LanguageError("tensorFromStructs takes each key once")
    return TensorType.of([Dimension(key) for key in keys], cells)


def _elementwise(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    cells = arguments[2] if len(arguments) > 2 else "double"
    _one_of("the cell type", cells, CELL_TYPES)
    return TensorType.of([Dimension(arguments[1])], cells)


def _by_label(cells: str) -> TypeRule:
    """One cell for each label of the query's items."""
    return lambda setup, arguments, output: TensorType.of([Dimension("label")], cells)


# Checks beyond the kinds of arguments


def _check_weighted(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    name = _source(arguments[0])
    described = setup.described(name)
    if described is not None and not isinstance(described.type, WeightedSetType):
        raise LanguageError(f"tensorFromWeightedSet: field {name!r} is a {described.type}, and no weighted set")
    return ""


def _check_labels(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    name = _source(arguments[0])
    described = setup.described(name)
    if described is not None and isinstance(described.type, WeightedSetType | MapType | StructType | TensorFieldType):
        raise LanguageError(f"tensorFromLabels: field {name!r} is a {described.type}, and no value or array")
    return ""


def _check_structs(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    name = _source(arguments[0])
    described = setup.described(name)
    if not (arguments[0].startswith("attribute(") and arguments[0].endswith(")")):
        raise LanguageError(f"tensorFromStructs takes attribute(name), not {arguments[0]!r}")
    if described is None or not any(isinstance(type_, StructType) for type_ in described.type.walk()):
        near = did_you_mean(name, setup.schema.fields) if described is None else ""
        raise LanguageError(f"tensorFromStructs: {name!r} is no array of structs in {setup.schema.name!r}{near}")
    return ""


def _check_elementwise(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    feature = arguments[0]
    if not (feature.startswith("bm25(") and feature.endswith(")")):
        raise LanguageError(f"elementwise takes bm25(field), not {feature!r}")
    check_field("index", feature[5:-1], setup, "elementwise")
    return ""


def _check_foreach(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    over, _, _, condition, operation = arguments
    _one_of("what foreach goes over", over, _FOREACH_OVER)
    _one_of("the operation of foreach", operation, _FOREACH_OPERATIONS)
    if condition != "true" and condition[:1] not in (">", "<"):
        raise LanguageError(f'the condition of foreach is true, ">number" or "<number", not {condition!r}')
    return ""


def _row(
    name: str,
    *parameters: Parameter,
    outputs: str = "out",
    optional: int = 0,
    repeated: bool = False,
    type_: TypeRule = _number,
    check: Check = _nothing_more,
    any_output: bool = False,
) -> Family:
    """`outputs`: names, with spaces between them; the first is the one of the name alone."""
    return Family(
        name,
        parameters,
        tuple(outputs.split()),
        None,
        optional,
        repeated,
        type=type_,
        pending=_named(name, check),
        any_output=any_output,
    )


def _named(name: str, check: Check) -> Check:
    def pending(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
        return check(setup, arguments, output) or f"rank feature {name}"

    return pending


_UNDOCUMENTED: Final = (
    "debugAttributeWait",
    "debugWait",
    "fieldInfo",
    "jaroWinklerDistance",
    "proximity",
    "queryCompleteness",
    "reverseProximity",
    "termEditDistance",
    "termInfo",
)

KNOWN: Final = (
    # Text
    _row("elementwise", "name", "name", "name", optional=1, type_=_elementwise, check=_check_elementwise),
    _row("bm25_for_labels", "index", outputs="score", type_=_by_label("double")),
    _row("matches_for_labels", "field", optional=1, type_=_by_label("float")),
    # Attributes
    _row("tensorFromWeightedSet", "attribute-feature", "name", optional=1, type_=_one_mapped, check=_check_weighted),
    _row("tensorFromLabels", "attribute-feature", "name", optional=1, type_=_one_mapped, check=_check_labels),
    _row("tensorFromLabelsWithOffset", "attribute-feature", "name", "name", type_=_two_mapped, check=_check_labels),
    _row(
        "tensorFromStructs",
        "name",
        "name",
        "name",
        "name",
        "name",
        repeated=True,
        type_=_of_structs,
        check=_check_structs,
    ),
    # Features of features
    _row("foreach", "name", "name", "name", "name", "name", outputs="value", check=_check_foreach),
    # Beyond the reference: what content nodes know
    *(_row(name, "name", repeated=True, any_output=True) for name in _UNDOCUMENTED),
)

register_known(*KNOWN)
