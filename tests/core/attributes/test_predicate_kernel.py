"""The kernel of predicates against its plain twin."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.storage.attributes.predicate import AND, AND_MASK, NOT, OR, OR_MASK, PUSH
from tests.oracles import predicate
from tests.oracles.predicate import STACK

STEPS = st.one_of(
    st.builds(lambda kind, condition: kind | condition, st.sampled_from([PUSH, AND_MASK, OR_MASK]), st.integers(0, 6)),
    st.sampled_from([NOT, AND, OR]),
)
MASKS = st.lists(st.integers(0, 2**64 - 1), min_size=5, max_size=5)


def evaluated(module: ModuleType, programs: list[list[int]], masks: list[int]) -> list[int] | str:
    lengths = np.array([len(program) for program in programs], np.uint64)
    rows = (np.cumsum(lengths) - lengths) << np.uint64(24) | lengths
    results = np.full(len(programs), 7, np.uint64)
    steps = np.array([step for program in programs for step in program], np.uint32)
    try:
        module.evaluate_predicates(steps, rows, np.array(masks, np.uint64), results)
    except ValueError as error:
        return str(error)
    return results.tolist()


@given(st.lists(st.lists(STEPS, max_size=8), max_size=5), MASKS)
def test_kernel_and_twin_agree(programs: list[list[int]], masks: list[int]) -> None:
    found, expected = evaluated(_core, programs, masks), evaluated(predicate, programs, masks)
    assert found == expected


def test_by_hand() -> None:
    masks = [0, 2**64 - 1, 0b011, 0b110]
    programs = [[], [2], [2, NOT, AND_MASK | 1], [2, OR_MASK | 3], [2, 3, AND], [2, 3, OR, 0, NOT, AND], [0, NOT]]
    assert evaluated(_core, programs, masks) == [0, 3, 2**64 - 4, 7, 2, 7, 2**64 - 1]


@pytest.mark.parametrize("program", [[9], [NOT], [AND], [0, AND], [0, 0], [AND_MASK | 0], [0] * (STACK + 1)], ids=str)
def test_a_damaged_program_is_refused(program: list[int]) -> None:
    assert evaluated(_core, [[0], program], [0]) == "a damaged program"


def test_a_program_outside_of_its_array_is_refused() -> None:
    rows, masks = np.array([1 << 24 | 2], np.uint64), np.zeros(2, np.uint64)
    with pytest.raises(ValueError, match="a damaged program"):
        _core.evaluate_predicates(np.zeros(2, np.uint32), rows, masks, np.zeros(1, np.uint64))
    with pytest.raises(ValueError, match="the results do not fit the rows"):
        _core.evaluate_predicates(np.zeros(2, np.uint32), rows, masks, np.zeros(2, np.uint64))
