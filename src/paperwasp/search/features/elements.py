"""Features of matched elements of a field: elementCompleteness, flowCompleteness, elementSimilarity, elementwise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import CELL_TYPES, Dimension, TensorType
from paperwasp.errors import LanguageError, TooLarge
from paperwasp.ranking import Program, parse_expression
from paperwasp.ranking.program import ProgramBuilder
from paperwasp.ranking.tree import Number, Operation, Prefix, RankNode, Reference
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.bm25 import DEFAULT_B, DEFAULT_K1, Bm25Parameters, term_idf
from paperwasp.search.features.family import (
    Compute,
    Floats,
    RankSetup,
    TensorCompute,
    check_field,
    constant,
    is_multiple,
    register,
)
from paperwasp.search.features.term_places import ElementPlaces, ElementRows, element_places, element_rows
from paperwasp.text.parsing.tokens import did_you_mean

# elementCompleteness(field): how completely the element that matches best and the query cover each other.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#elementCompleteness(name).completeness


ELEMENT_COMPLETENESS: Final = "elementCompleteness"
OUTPUTS: Final = ("completeness", "fieldCompleteness", "queryCompleteness", "elementWeight")


def _element_completeness_listed(setup: RankSetup) -> Iterable[str]:
    names = [name for name in setup.listed_index_fields if not setup.is_filter(name)]
    return [f"{ELEMENT_COMPLETENESS}({name}).{output}" for name in names for output in OUTPUTS]


@register(ELEMENT_COMPLETENESS, "index", outputs=OUTPUTS, listed=_element_completeness_listed)
def bind_element_completeness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    importance = setup.number(0.5, f"{ELEMENT_COMPLETENESS}({field}).fieldCompletenessImportance")

    def compute(block: Block) -> Floats:
        rows = element_rows(block, field)
        of_query = rows.column("terms_weight") / rows.total_weight
        of_field = np.minimum(rows.column("terms"), rows.column("length")) / rows.column("length")
        completeness = of_field * importance + of_query * (1 - importance)
        weight = rows.column("weight")
        values = dict(zip(OUTPUTS, (completeness, of_field, of_query, weight), strict=True))
        return rows.best(completeness * weight, values[output])

    return compute


# flowCompleteness(field): as elementCompleteness, where terms count that can each have a place of their own.
#
# Vespa: not in its reference; a feature of its content nodes.


FLOW_COMPLETENESS: Final = "flowCompleteness"
_OUTPUTS: Final = ("completeness", "fieldCompleteness", "queryCompleteness", "elementWeight", "weight", "flow")


@register(FLOW_COMPLETENESS, "index", outputs=_OUTPUTS)
def bind_flow_completeness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    if output == "weight":
        return constant(setup.weight(field))
    importance = setup.number(0.5, f"{FLOW_COMPLETENESS}({field}).fieldCompletenessImportance")

    def compute(block: Block) -> Floats:
        rows = element_rows(block, field, flow=True)
        flow = rows.column("flow")
        of_query = flow / max(1, rows.terms)
        of_field = flow / rows.column("length")
        completeness = of_field * importance + of_query * (1 - importance)
        values = {
            "completeness": completeness,
            "fieldCompleteness": of_field,
            "queryCompleteness": of_query,
            "elementWeight": rows.column("weight"),
            "flow": flow,
        }
        return rows.best(completeness * rows.column("terms_weight"), values[output])

    return compute


# elementSimilarity(field): how alike the query and the elements of a field are, by outputs that rank properties set.
#
# An output is an `aggregator(expression)`. The expression is worked for each element that the query matches, from the
# similarities p, o, q and f and the weight w.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-feature-configuration.html#elementSimilarity


ELEMENT_SIMILARITY: Final = "elementSimilarity"
_DEFAULT: Final = "max((0.35*p+0.15*o+0.30*q+0.20*f)*w)"
_SYMBOLS: Final[Mapping[str, Callable[[ElementRows], Floats]]] = {
    "p": lambda rows: rows.column("proximity"),
    "o": lambda rows: rows.column("order"),
    "q": lambda rows: rows.query_coverage,
    "f": lambda rows: rows.field_coverage,
    "w": lambda rows: rows.column("weight"),
}
_OPERATORS: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "^": "power"}
_AGGREGATORS: Final[Mapping[str, np.ufunc]] = {"max": np.maximum, "avg": np.add, "sum": np.add}


class _Symbol(Struct, frozen=True):
    """A name of an expression, as a `ranking.program.Feature` of its program."""

    name: str
    bm25_field: None = None
    query_name: None = None

    def compute(self, block: Any) -> Floats:
        return _SYMBOLS[self.name](block)


class Output(Struct, frozen=True):
    """How the elements of a hit give one value."""

    aggregator: str
    program: Program

    def values(self, rows: ElementRows) -> Floats:
        """One value for each hit; 0 where no element matches."""
        columns = [np.ascontiguousarray(symbol.compute(rows)) for symbol in self.program.features]
        values = self.program.evaluate(columns, len(rows.elements))
        counts = np.diff(rows.offsets.astype(np.int64))
        found = np.zeros(len(counts))
        some = counts > 0
        if some.any():
            found[some] = _AGGREGATORS[self.aggregator].reduceat(values, rows.offsets[:-1][some])
        return found / np.maximum(counts, 1) if self.aggregator == "avg" else found


def output_of(text: str) -> Output:
    """`aggregator(expression)`. Raises LanguageError."""
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text, re.DOTALL)
    if match is None or match[1] not in _AGGREGATORS:
        near = did_you_mean(match[1], _AGGREGATORS) if match else ""
        raise LanguageError(f"{text!r} is no {', '.join(_AGGREGATORS)} of an expression{near}")
    builder = ProgramBuilder()
    try:
        return Output(match[1], builder.program(_compiled(parse_expression(match[2]), builder)))
    except TooLarge as error:
        raise LanguageError(error.message) from None


def _compiled(node: RankNode, builder: ProgramBuilder) -> int:
    match node:
        case Number(value=value):
            return builder.constant(value)
        case Reference(name=name, arguments=(), output="") if name in _SYMBOLS:
            return builder.feature(_Symbol(name))
        case Prefix(operator="-", operand=operand):
            return builder.apply("negate", _compiled(operand, builder))
        case Operation(operands=operands, operators=operators) if set(operators) <= _OPERATORS.keys():
            value = _compiled(operands[0], builder)
            for operator, operand in zip(operators, operands[1:], strict=True):
                value = builder.apply(_OPERATORS[operator], value, _compiled(operand, builder))
            return value
    known = f"{', '.join(_SYMBOLS)}, numbers and the operators {' '.join(_OPERATORS)}"
    raise LanguageError(f"{str(node)!r} in an output of {ELEMENT_SIMILARITY}, which knows {known}")


def outputs_of(setup: RankSetup, field: str) -> dict[str, str]:
    """The outputs of a field, the default one first."""
    prefix = f"{ELEMENT_SIMILARITY}({field}).output."
    names = [key.removeprefix(prefix) for key in setup.profile.rank_properties if key.startswith(prefix)]
    return {"default": _DEFAULT, **{name: setup.text(prefix + name) or "" for name in names}}


def _check_element_similarity(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    known = outputs_of(setup, arguments[0])
    if output and output not in known:
        problem = (
            f"rank feature {ELEMENT_SIMILARITY}({arguments[0]}) has no output {output!r}; it has {', '.join(known)}"
        )
        raise LanguageError(f"{problem}, and those of rank properties {ELEMENT_SIMILARITY}({arguments[0]}).output.name")
    for name, text in known.items():
        try:
            output_of(text)
        except LanguageError as error:
            raise LanguageError(
                f"output {name!r} of {ELEMENT_SIMILARITY}({arguments[0]}): {error.bare_message}"
            ) from None
    return ""


def _element_similarity_listed(setup: RankSetup) -> Iterable[str]:
    for field in setup.listed_index_fields:
        if is_multiple(setup.field(field)) and not setup.is_filter(field):
            yield f"{ELEMENT_SIMILARITY}({field})"
            yield from (
                f"{ELEMENT_SIMILARITY}({field}).{name}" for name in outputs_of(setup, field) if name != "default"
            )


@register(
    ELEMENT_SIMILARITY,
    "index",
    outputs=("default",),
    listed=_element_similarity_listed,
    pending=_check_element_similarity,
    any_output=True,
)
def bind_element_similarity(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    aggregated = output_of(outputs_of(setup, arguments[0])[output])

    def compute(block: Block) -> Floats:
        return aggregated.values(element_rows(block, arguments[0]))

    return compute


# elementwise(bm25(field),dimension,cells): the BM25 of each element of an indexed field that the query matches.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#elementwise-bm25


ELEMENTWISE: Final = "elementwise"


def _type(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    cells = _cells(arguments)
    if cells not in CELL_TYPES:
        known = " or ".join(CELL_TYPES)
        raise LanguageError(f"the cell type is {known}, not {cells!r}{did_you_mean(cells, CELL_TYPES)}")
    return TensorType.of([Dimension(arguments[1])], cells)


def _cells(arguments: tuple[str, ...]) -> str:
    return arguments[2] if len(arguments) > 2 else "double"


def _check_elementwise(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    feature = arguments[0]
    if not (feature.startswith("bm25(") and feature.endswith(")")):
        raise LanguageError(f"{ELEMENTWISE} takes bm25(field), not {feature!r}")
    return check_field("index", feature[5:-1], setup, ELEMENTWISE)


def parameters_of(setup: RankSetup, arguments: tuple[str, ...]) -> Bm25Parameters:
    """The rank properties of the feature, those of its bm25(field), or the defaults."""
    own, of_field = f"{ELEMENTWISE}({arguments[0]},{arguments[1]},{_cells(arguments)})", arguments[0]
    average = setup.number(math.nan, f"{own}.averageElementLength", f"{of_field}.averageFieldLength")
    return Bm25Parameters(
        setup.number(DEFAULT_K1, f"{own}.k1", f"{of_field}.k1"),
        setup.number(DEFAULT_B, f"{own}.b", f"{of_field}.b"),
        None if math.isnan(average) else average,
    )


@register(ELEMENTWISE, "name", "name", "name", outputs=("score",), optional=1, type_=_type, pending=_check_elementwise)
def bind_elementwise(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    field = arguments[0][5:-1]
    parameters = parameters_of(setup, arguments)
    type_ = _type(setup, arguments, output)

    def compute(block: Block) -> TensorBatch:
        average = parameters.average_field_length
        if average is None:
            average = block.setting.average_lengths(field)[1] or 1.0
        keys, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
        for number, term in terms_of(block, field):
            found, occurrences, lengths = _by_element(element_places(block, number, field))
            keys.append(found)
            scores.append(parameters.scores(occurrences, lengths, average, term_idf(term, number, block)))
        return _summed(np.concatenate(keys), np.concatenate(scores), len(block.lids), type_)

    return compute


def _by_element(places: ElementPlaces) -> tuple[NDArray[np.int64], Floats, Floats]:
    """(key, occurrences, length) of each element that has the term; a key is hit << 32 | element."""
    ends = places.offsets.astype(np.int64)
    counts = ends[1:] - ends[:-1]
    hits = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    keys, first, occurrences = np.unique(hits << 32 | places.elements, return_index=True, return_counts=True)
    return keys, occurrences.astype(np.float64), places.lengths[first].astype(np.float64)


def _summed(keys: NDArray[np.int64], scores: Floats, hits: int, type_: TensorType) -> TensorBatch:
    """The sums of equal keys, labelled with the numbers of the elements."""
    found, places = np.unique(keys, return_inverse=True)
    sums = np.bincount(places, scores, len(found))
    starts = np.searchsorted(found, np.arange(hits + 1, dtype=np.int64) << 32)
    labels = (found & 0xFFFFFFFF).reshape(-1, 1)
    return TensorBatch(type_, starts.astype(np.int64), labels, converted(sums, type_.cell_type))
