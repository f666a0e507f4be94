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

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
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
from paperwasp.storage.attributes.column import Arrays, Frozen, Lids, OpaqueView
from paperwasp.storage.attributes.dictionary import StringDictionary, freeze_strings
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.rows import RowStore
from paperwasp.storage.attributes.string import StringColumn

Feature = tuple[str, str, int]
"""Name, value, the subqueries that have it: a bit for each."""
RangeFeature = tuple[str, int, int]
"""Name, number, subqueries."""
_FIRST_PROGRAM: Final = 1
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
        self._programs.pad(_FIRST_PROGRAM)

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


# Conditions

CONDITION: Final = (1 << 30) - 1
"""The bits of a step that number a condition; the two above say what is done with its mask."""
PUSH: Final = 0
AND_MASK: Final = 1 << 30
OR_MASK: Final = 2 << 30
CALL: Final = 3 << 30
NOT: Final = CALL
AND: Final = CALL | 1
OR: Final = CALL | 2
"""Steps that take their operands from the stack."""

NEVER: Final = 0
ALWAYS: Final = 1
_FIRST_CONDITION: Final = 2
_LEAST, _MOST = -(2**63), 2**63 - 1
_SET, _RANGE = 0, 1

Named = Mapping[str, NDArray[Any]]
_Condition = tuple[int, int, tuple[int, ...]]
"""Kind, code of the feature's name, parts."""


class _Ranges:
    """The ranges of one feature: bounds and numbers, in parallel."""

    __slots__ = ("highs", "lows", "numbers")

    def __init__(self) -> None:
        self.lows, self.highs = GrowableArray(np.int64), GrowableArray(np.int64)
        self.numbers = GrowableArray(np.uint32)

    def extend(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Adds (low, high, number) each."""
        lows, highs, numbers = zip(*ranges, strict=True)
        self.lows.extend(np.array(lows, np.int64))
        self.highs.extend(np.array(highs, np.int64))
        self.numbers.extend(np.array(numbers, np.uint32))

    def with_value(self, value: int) -> NDArray[np.uint32]:
        """The numbers of the ranges that a value is in."""
        numbers = self.numbers.view()
        lows, highs = self.lows.array[: len(numbers)], self.highs.array[: len(numbers)]
        found: NDArray[np.uint32] = numbers[(lows <= value) & (value <= highs)]
        return found


class Conditions:
    """The conditions in the predicates of a column, each once, by number: the features of a query meet them or not.

        NEVER, ALWAYS    false and true
        a set            a feature has one of some values
        a range          a feature's number is between two bounds, both included

    The writer adds; searches find what was added from `publish` on. Readers look up at any time, and pass over what was
    added since their view was made.
    """

    def __init__(self) -> None:
        self._names = StringDictionary(cased=True)
        self._kinds, self._keys = GrowableArray(np.uint8), GrowableArray(np.uint32)
        self._parts = RowStore(GrowableArray(np.int64))
        """By condition: the codes of a set's values; the two bounds of a range."""
        for growable in (self._kinds, self._keys, self._parts):
            growable.pad(_FIRST_CONDITION)
        self._numbers: dict[_Condition, int] = {}
        self._added: list[_Condition] = []
        self._sets: dict[tuple[str, str], array[int]] = {}
        """Feature and value → the sets that have it."""
        self._ranges: dict[str, _Ranges] = {}
        self._lists_bytes = 0

    @property
    def count(self) -> int:
        """The number of conditions that are published."""
        return self._kinds.length

    def of_set(self, key: str, values: tuple[str, ...]) -> int:
        """The number of a set. `values`: each once, in one order."""
        names = self._names
        return self._number((_SET, names.encode_one(key), tuple(map(names.encode_one, values))))

    def of_range(self, key: str, low: int | None, high: int | None) -> int:
        """The number of a range; None: without end."""
        bounds = _LEAST if low is None else low, _MOST if high is None else high
        return self._number((_RANGE, self._names.encode_one(key), bounds))

    def publish(self) -> None:
        """Makes what was added known to searches."""
        added, first = self._added, self.count
        if not added:
            return
        self._added = []
        self._list(added, first)
        kinds, keys, parts = zip(*added, strict=True)
        self._parts.append(np.fromiter(map(len, parts), np.uint64), np.fromiter(chain.from_iterable(parts), np.int64))
        self._keys.extend(np.array(keys, np.uint32))
        self._kinds.extend(np.array(kinds, np.uint8))

    def masks(
        self, count: int, features: Iterable[tuple[str, str, int]], ranges: Iterable[tuple[str, int, int]]
    ) -> NDArray[np.uint64]:
        """For each of the first `count` conditions the subqueries in which these features meet it."""
        masks = np.zeros(count, np.uint64)
        masks[ALWAYS] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for key, text, subqueries in features:
            if (listed := self._sets.get((key, text))) is not None:
                numbers = np.array(listed[:], np.uint32)  # of a copy: the writer cannot lengthen what is looked at
                masks[numbers[: np.searchsorted(numbers, count)]] |= np.uint64(subqueries)
        for key, value, subqueries in ranges:
            if (known := self._ranges.get(key)) is not None:
                numbers = known.with_value(value)
                masks[numbers[: np.searchsorted(numbers, count)]] |= np.uint64(subqueries)
        return masks

    def freeze(self) -> Callable[[], Named]:
        """Gives the arrays that are saved, of what there is now."""
        kinds, keys, parts = self._kinds.view(), self._keys.view(), self._parts.freeze()
        names = self._names.strings()

        def arrays() -> Named:
            lengths, elements = parts()
            texts = freeze_strings(names)
            named = {"names": texts["strings"], "name_ends": texts["string_ends"]}
            return {"kinds": kinds, "keys": keys, "part_lengths": lengths, "parts": elements, **named}

        return arrays

    def load(self, arrays: Named) -> None:
        """Becomes what was frozen. Errors: KeyError, ValueError, IndexError."""
        self.__init__()  # type: ignore[misc]
        self._names.load({"strings": arrays["names"], "string_ends": arrays["name_ends"]})
        ends = np.cumsum(arrays["part_lengths"], dtype=np.int64).tolist()
        parts = arrays["parts"].tolist()
        rows = zip(arrays["kinds"].tolist(), arrays["keys"].tolist(), [0, *ends], ends, strict=False)
        for kind, key, start, end in islice(rows, _FIRST_CONDITION, None):
            self._number((kind, key, tuple(parts[start:end])))
        if self.count + len(self._added) != len(arrays["kinds"]):
            raise ValueError("conditions that are there twice")
        self.publish()

    def size_bytes(self) -> int:
        arrays = self._kinds.array.nbytes + self._keys.array.nbytes + self._parts.size_bytes()
        return arrays + self._names.size_bytes + self._lists_bytes

    def _number(self, condition: _Condition) -> int:
        next_number = self.count + len(self._added)
        number = self._numbers.setdefault(condition, next_number)
        if number == next_number:
            self._added.append(condition)
        return number

    def _list(self, added: Sequence[_Condition], first: int) -> None:
        """Puts conditions, numbered from `first` on, where features find them."""
        names, ranges = self._names, dict[str, list[tuple[int, int, int]]]()
        for number, (kind, key, parts) in enumerate(added, first):
            name = names[key]
            if kind == _RANGE:
                low, high = parts
                ranges.setdefault(name, []).append((low, high, number))
            else:
                for value in parts:
                    self._sets.setdefault((name, names[value]), array("I")).append(number)
            self._lists_bytes += 200 + 50 * len(parts)
        for name, found in ranges.items():
            self._ranges.setdefault(name, _Ranges()).extend(found)


def used_conditions(
    operations: NDArray[np.uint32], conditions: Callable[[], Named]
) -> tuple[NDArray[np.uint32], Named]:
    """Programs and conditions as they are saved, renumbered, without conditions that no program has."""
    named = dict(conditions())
    has_condition = operations < CALL
    used_operations = operations[has_condition]
    used = np.zeros(len(named["kinds"]), np.bool_)
    used[:_FIRST_CONDITION] = True
    used[used_operations & CONDITION] = True
    numbers = (np.cumsum(used) - 1).astype(np.uint32)
    kept = operations.copy()
    kept[has_condition] = used_operations & ~np.uint32(CONDITION) | numbers[used_operations & CONDITION]
    named["parts"] = named["parts"][np.repeat(used, named["part_lengths"])]
    for name in ("kinds", "keys", "part_lengths"):
        named[name] = named[name][used]
    return kept, named
