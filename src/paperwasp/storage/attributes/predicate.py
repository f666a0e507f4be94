"""Predicates by lid: boolean expressions that a query's features fulfil or not.

A query is up to 64 subqueries, each with features of its own, so what it asks has an answer of 64 bits. Every condition
in a predicate (`age in [20..30]`, `gender in [male, female]`) is kept once for the whole column, whichever documents
state it. A search

1. sets the 64 bits of the conditions that its features meet: by value where they are sets (a posting list for each
   value), by looking through the bounds of a feature's ranges;
2. runs the program of every distinct predicate over these masks, in the kernel `core/attributes/predicate.cpp`: the
   operations are those on bits, so all subqueries are evaluated at once;
3. looks up the result of each row's predicate.

So the cost of a search is that of reading all programs once: some nanoseconds for each operation of each distinct
predicate. What `arity`, the bounds and `dense-posting-list-threshold` tune in Vespa's index is not there to be tuned;
the bounds are checked when a query is planned. Answers are those of evaluating each predicate by itself.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.operations import Value
from paperwasp.document.predicate import (
    Conjunction,
    Disjunction,
    FeatureRange,
    FeatureSet,
    Negation,
    Predicate,
    Truth,
    parse_predicate,
)
from paperwasp.errors import LanguageError
from paperwasp.storage.attributes.column import Arrays, Frozen, Lids
from paperwasp.storage.attributes.dictionary import StringDictionary, freeze_strings
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.opaque import OpaqueView
from paperwasp.storage.attributes.predicate_conditions import (
    ALWAYS,
    AND,
    AND_MASK,
    NEVER,
    NOT,
    OR,
    OR_MASK,
    PUSH,
    Conditions,
    used_conditions,
)
from paperwasp.storage.attributes.rows import RowStore
from paperwasp.storage.attributes.string import StringColumn

Feature = tuple[str, str, int]
"""Name, value, the subqueries that have it: a bit for each."""
RangeFeature = tuple[str, int, int]
"""Name, number, subqueries."""
_FIRST: Final = 1
"""The first code of a predicate; the one before is of rows without."""


class PredicateView(OpaqueView):
    """`codes` by lid; by code the text in `dictionary` and the program at `rows` of `programs`."""

    __slots__ = ("_conditions", "_count", "_dictionary", "codes", "limit", "programs", "rows")

    def __init__(
        self,
        codes: NDArray[np.uint32],
        dictionary: StringDictionary,
        rows: NDArray[np.uint64],
        programs: NDArray[np.uint32],
        conditions: Conditions,
    ) -> None:
        self.codes = codes
        self.limit = len(codes)
        self.rows = rows
        self.programs = programs
        self._dictionary = dictionary
        self._conditions = conditions
        self._count = conditions.count

    def evaluate(self, features: Iterable[Feature], ranges: Iterable[RangeFeature]) -> NDArray[np.uint64]:
        """By code, the subqueries in which the predicate holds."""
        masks = self._conditions.masks(self._count, features, ranges)
        results = np.empty(len(self.rows), np.uint64)
        _core.evaluate_predicates(self.programs, self.rows, masks, results)
        return results

    def gather(self, lids: Lids) -> list[Value | None]:
        return [text or None for text in self._dictionary.decode(self.codes[lids].tolist())]


class PredicateColumn(StringColumn):
    """The writer's side: the texts as a column of strings, and a program for each distinct one."""

    def __init__(self) -> None:
        super().__init__(cased=True)
        self._conditions = Conditions()
        self._programs = RowStore(GrowableArray(np.uint32))
        self._programs.pad(_FIRST)

    def append(self, values: Sequence[Value | None]) -> None:
        super().append(values)
        self._compile()

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        super().fill(lids, values)
        self._compile()

    def set(self, lid: int, value: Value | None) -> None:
        super().set(lid, value)
        self._compile()

    def snapshot(self) -> PredicateView:  # type: ignore[override]
        rows, (programs,) = self._programs.snapshot()
        return PredicateView(self._codes.view(), self.dictionary, rows, programs, self._conditions)

    def freeze(self) -> Frozen:
        codes, strings = self._codes.view().copy(), self.dictionary.strings()
        programs, conditions = self._programs.freeze(), self._conditions.freeze()

        def arrays() -> Arrays:
            used = np.bincount(codes, minlength=len(strings)) > 0
            used[0] = True
            numbers = (np.cumsum(used) - 1).astype(np.uint32)
            lengths, operations = programs()
            kept, named = used_conditions(operations[np.repeat(used, lengths)], conditions)
            texts = freeze_strings([strings[code] for code in np.flatnonzero(used).tolist()])
            return {"codes": numbers[codes], **texts, "lengths": lengths[used], "programs": kept, **named}

        return arrays

    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        if len(arrays["lengths"]) != len(self.dictionary):
            raise ValueError("programs that do not fit the predicates")
        self._conditions.load(arrays)
        self._programs.load(arrays["lengths"], arrays["programs"])
        self.snapshot().evaluate((), ())

    def size_bytes(self) -> int:
        return super().size_bytes() + self._programs.size_bytes() + self._conditions.size_bytes()

    def _compile(self) -> None:
        """Gives programs to the texts that are new."""
        texts = self.dictionary.decode(range(self._programs.length, len(self.dictionary)))
        if texts:
            programs = [self._program(text) for text in texts]
            lengths = np.fromiter(map(len, programs), np.uint64, len(programs))
            operations: NDArray[Any] = np.fromiter((each for program in programs for each in program), np.uint32)
            self._programs.append(lengths, operations)
            self._conditions.publish()

    def _program(self, text: str) -> list[int]:
        try:
            predicate = parse_predicate(text)
        except LanguageError:  # documents are read before they are logged, so there is none
            return [NEVER]
        program: list[int] = []
        _write(predicate, self._conditions, program)
        return program


def _write(predicate: Predicate, conditions: Conditions, program: list[int]) -> None:
    """Appends the steps of a predicate: its operands before what joins them."""
    match predicate:
        case Negation():
            _write(predicate.operand, conditions, program)
            program.append(NOT)
        case Conjunction(operands):
            _join(operands, AND, AND_MASK, conditions, program)
        case Disjunction(operands):
            _join(operands, OR, OR_MASK, conditions, program)
        case _:
            program.append(PUSH | _condition(predicate, conditions))


def _join(operands: Sequence[Predicate], join: int, with_mask: int, conditions: Conditions, program: list[int]) -> None:
    """Writes the operands and joins them; an operand that is only a condition is joined in one step."""
    for place, operand in enumerate(operands):
        if place and isinstance(operand, Truth | FeatureSet | FeatureRange):
            program.append(with_mask | _condition(operand, conditions))
            continue
        _write(operand, conditions, program)
        if place:
            program.append(join)


def _condition(predicate: Truth | FeatureSet | FeatureRange, conditions: Conditions) -> int:
    match predicate:
        case Truth():
            return ALWAYS if predicate.value else NEVER
        case FeatureSet():
            return conditions.of_set(predicate.key, predicate.values)
        case FeatureRange():
            return conditions.of_range(predicate.key, predicate.low, predicate.high)
