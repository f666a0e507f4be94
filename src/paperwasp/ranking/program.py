"""Programs: an expression as a list of operations over columns, ready to run block by block.

A `ProgramBuilder` numbers values: the same operation on the same operands is the same value, and an operation on
constants is done at once. `program()` writes out what one value needs, in order, with as few temporaries as possible.
A `Program` is immutable and may run in many threads.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core.rank.best_parts import BestHits
from paperwasp.core.rank.rank_program import OPCODES, OPERATION_WIDTH, OPERATIONS
from paperwasp.core.together import Together

Floats = NDArray[np.float64]
FEATURE_BYTES: Final = 600
"""About what a feature takes that does not say it by a `size_bytes` of its own."""


class Bm25Field(Struct, frozen=True):
    """bm25 of a field that an index can prune by, as a rank profile sets it."""

    name: str
    k1: float
    b: float
    average_length: float | None
    """In tokens; None: that of the documents."""


class FindBest(Protocol):
    """Finds the best hits by a feature, without scoring all or without the interpreter's lock."""

    def __call__(
        self, block: Any, hits: NDArray[np.uint64], count: int, threads: int = 1, together: Together | None = None
    ) -> BestHits | None:
        """The best `count` of the hits of a bitmap; None: all have to be scored. `block`: of one document, which may be
        any.

        threads: how many may look for them, by `together`; they are the same. Errors: OutOfTime where there was no time
        for any hit.
        """


def find_best_of(feature: Feature) -> FindBest | None:
    """The kernel that finds the best hits by a feature, where it has one."""
    found: FindBest | None = getattr(feature, "best", None)
    return found


class Feature(Protocol):
    """A rank feature bound to its arguments, as a feature catalog answers it."""

    @property
    def name(self) -> str:
        """Its canonical name, such as `fieldTermMatch(title,0).occurrences`."""

    @property
    def bm25_field(self) -> Bm25Field | None:
        """The field, if it is the bm25 of a field that an index can prune by."""

    @property
    def query_name(self) -> str | None:
        """The name, if it is the value query(name) of the query."""

    def compute(self, context: Any) -> Any:
        """One float64 per hit of the context, or a single one for all; of a feature of tensor type a TensorBatch."""


class Program(Struct, frozen=True, eq=False):
    """A compiled expression over the values of `features`. Operands are these, the constants, then the temporaries."""

    features: tuple[Feature, ...]
    constants: Floats
    code: NDArray[np.int32]
    """Operations of `rank.rank_program.OPERATION_WIDTH` int32 each."""
    temporaries: int
    result: int

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        own = sum(getattr(feature, "size_bytes", FEATURE_BYTES) for feature in self.features)
        return self.code.nbytes + self.constants.nbytes + FEATURE_BYTES + own

    @property
    def constant(self) -> float | None:
        """The value, when it is the same for every hit of every query."""
        at = self.result - len(self.features)
        return float(self.constants[at]) if 0 <= at < len(self.constants) else None

    @property
    def is_feature(self) -> bool:
        """True where the value is that of a feature, as it is."""
        return self.result < len(self.features)

    @property
    def feature(self) -> Feature | None:
        """The feature whose value the program has, as it is; None: it computes one."""
        return self.features[self.result] if self.result < len(self.features) else None

    def evaluate(self, columns: Sequence[Floats], n: int) -> Floats:
        """One score per row. `columns`: parallel to `features`, float64, of length n or 1."""
        if self.result < len(self.features):
            return np.broadcast_to(columns[self.result], n).copy()
        out = np.empty(n, np.float64)
        _core.rank_program_evaluate(self.code, self.constants, list(columns), self.temporaries, self.result, out)
        return out


class Step(Struct, frozen=True):
    """A value of a builder: a feature, a constant, or an operation on earlier values."""

    feature: Feature | None = None
    constant: float | None = None
    operation: str = ""
    operands: tuple[int, ...] = ()


class ProgramBuilder:
    """Values with numbers, each there once; `program` makes any of them runnable."""

    def __init__(self) -> None:
        self._values: list[Step] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def constant(self, value: float) -> int:
        return self._number_of(("constant", struct.pack("d", value)), Step(constant=value))

    def feature(self, feature: Feature) -> int:
        return self._number_of(("feature", feature.name), Step(feature=feature))

    def apply(self, operation: str, *operands: int) -> int:
        """Return the number of `operation` on these values; constants, or a constant condition, are worked at once."""
        constants = [self._values[operand].constant for operand in operands]
        if operation == "select" and constants[0] is not None:
            return operands[1] if constants[0] != 0.0 else operands[2]
        known = [constant for constant in constants if constant is not None]
        if len(known) == len(operands):
            # by the kernel itself, so that folding never changes a score
            return self.constant(float(apply_operation(operation, [np.array([each], np.float64) for each in known])[0]))
        return self._number_of((operation, *operands), Step(operation=operation, operands=operands))

    def operation_on(self, value: int, names: Sequence[str]) -> str | None:
        """The operation, where `value` is one on just the features of these names, in their order."""
        operands = [self._values[operand].feature for operand in self._values[value].operands]
        found = [None if feature is None else feature.name for feature in operands]
        return self._values[value].operation if found == list(names) else None

    def _number_of(self, key: tuple[Any, ...], value: Step) -> int:
        number = self._numbers.setdefault(key, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def steps(self, result: int) -> list[tuple[int, Step]]:
        """The values that `result` is made of with their numbers, operands before what they are used in."""
        return [(number, self._values[number]) for number in self._find_needed(result)]

    def program(self, result: int) -> Program:
        """The program that computes value `result`."""
        needed = self._find_needed(result)
        features = [n for n in needed if self._values[n].feature is not None]
        constants = [n for n in needed if self._values[n].constant is not None]
        places = {number: place for place, number in enumerate([*features, *constants])}
        operations = [n for n in needed if n not in places]
        code, temporaries = self._code(operations, places, result)
        return Program(
            features=tuple(f for n in features if (f := self._values[n].feature) is not None),
            constants=np.array([self._values[n].constant for n in constants], np.float64),
            code=np.array(code, np.int32),
            temporaries=temporaries,
            result=places[result],
        )

    def _find_needed(self, result: int) -> list[int]:
        """The values that `result` is made of, operands before what they are used in."""
        seen, pending = {result}, [result]
        while pending:
            fresh = set(self._values[pending.pop()].operands) - seen
            seen |= fresh
            pending.extend(fresh)
        return sorted(seen)

    def _code(self, operations: list[int], places: dict[int, int], result: int) -> tuple[list[int], int]:
        """Operations with temporaries assigned. One is free again after its last use, and may be the target of that."""
        last_use = {operand: number for number in operations for operand in self._values[number].operands}
        last_use[result] = -1
        first, count = len(places), 0
        code: list[int] = []
        free: list[int] = []
        for number in operations:
            value = self._values[number]
            operands = [places[operand] for operand in value.operands]
            done = (operand for operand in dict.fromkeys(value.operands) if last_use[operand] == number)
            free += [places[operand] for operand in done if places[operand] >= first]
            if not free:
                free.append(first + count)
                count += 1
            places[number] = free.pop()
            padding = [0] * (OPERATION_WIDTH - 2 - len(operands))
            code += [OPCODES[value.operation], places[number], *operands, *padding]
        return code, count


def apply_operation(operation: str, operands: Sequence[Floats]) -> Floats:
    """Compute one operation as the kernel does within a program, in float64. Operands have the same length, or 1."""
    arity = OPERATIONS[operation]
    code = np.array([OPCODES[operation], arity, *range(arity), *[0] * (OPERATION_WIDTH - 2 - arity)], np.int32)
    out = np.empty(max(map(len, operands)), np.float64)
    _core.rank_program_evaluate(code, _NO_CONSTANTS, list(operands), 1, arity, out)
    return out


_NO_CONSTANTS: Final[Floats] = np.zeros(0)


# Weighted sums of bm25 features, by which dynamic pruning finds the best hits

Form = float | dict[str, float] | None
"""A constant, or fields with weights; None: anything else."""


def weighted_sum(program: Program, known: Callable[[Feature], float | None]) -> Mapping[str, float] | None:
    """Return field → weight where the program is exactly the sum of bm25(field) times its weight; else None.

    The program is run once on forms instead of numbers. `known` returns the value of a feature that is the same for all
    hits of this query. Weights may be negative.
    """
    operands: list[Form] = []
    for feature in program.features:
        bm25 = {feature.bm25_field.name: 1.0} if feature.bm25_field is not None else None
        operands.append(bm25 or known(feature))
    operands += [float(constant) for constant in program.constants]
    operands += [None] * program.temporaries
    names = list(OPERATIONS)
    for opcode, target, a, b, _ in program.code.reshape(-1, OPERATION_WIDTH).tolist():
        combine = _COMBINE.get(names[opcode])
        operands[target] = combine(operands[a], operands[b]) if combine else None
    result = operands[program.result]
    return result if isinstance(result, dict) else None


def _sum(a: Form, b: Form) -> Form:
    if isinstance(a, float) and isinstance(b, float):
        return a + b
    if isinstance(a, dict) and isinstance(b, dict):
        return {name: a.get(name, 0.0) + b.get(name, 0.0) for name in {**a, **b}}
    if isinstance(a, dict):
        return a if b == 0.0 else None
    return b if a == 0.0 else None


def _product(a: Form, b: Form) -> Form:
    if isinstance(a, float) and isinstance(b, float):
        return a * b
    if isinstance(a, dict) and isinstance(b, float):
        return {name: weight * b for name, weight in a.items()}
    if isinstance(a, float) and isinstance(b, dict):
        return _product(b, a)
    return None


_COMBINE: Final[dict[str, Callable[[Form, Form], Form]]] = {"add": _sum, "multiply": _product}
