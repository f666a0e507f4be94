"""The rank features of Vespa that are checked only: their arguments, outputs and types, in one table.

A profile that asks for one of them is right, and is not executed yet. What is executed registers itself, each family in
its own file; both are in `family.families`.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from typing import Final

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


def _number(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    return NUMBER


def _nothing_more(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    return ""


def _one_of(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise LanguageError(f"{what} is {' or '.join(words)}, not {word!r}{did_you_mean(word, words)}")


# Types


def _elementwise(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    cells = arguments[2] if len(arguments) > 2 else "double"
    _one_of("the cell type", cells, CELL_TYPES)
    return TensorType.of([Dimension(arguments[1])], cells)


def _by_label(cells: str) -> TypeRule:
    """One cell for each label of the query's items."""
    return lambda setup, arguments, output: TensorType.of([Dimension("label")], cells)


# Checks beyond the kinds of arguments


def _check_elementwise(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    feature = arguments[0]
    if not (feature.startswith("bm25(") and feature.endswith(")")):
        raise LanguageError(f"elementwise takes bm25(field), not {feature!r}")
    check_field("index", feature[5:-1], setup, "elementwise")
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
    # Beyond the reference: what content nodes know
    *(_row(name, "name", repeated=True, any_output=True) for name in _UNDOCUMENTED),
)

register_known(*KNOWN)
