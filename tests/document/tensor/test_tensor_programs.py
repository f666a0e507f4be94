"""Random tensor programs over batches give what the definitions give for each tensor by itself.

PAPERWASP_TENSOR_CASES sets how many functions are worked, PAPERWASP_SEED where the random numbers begin.
"""

from __future__ import annotations

import math
import os
import random

import pytest

from paperwasp.document.tensor import Tensor
from paperwasp.document.tensor.batch import Labels
from paperwasp.document.tensor.value import DTYPES
from tests.chance import SEED
from tests.document.tensor.plain_tensors import Address, PlainTensor
from tests.document.tensor.random_programs import Program, Step
from tests.document.tensor.random_values import Value

CASES = int(os.environ.get("PAPERWASP_TENSOR_CASES", "2000"))
PARTS = 8
STEPS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int) -> None:
    for number in range(part, max(PARTS, CASES // STEPS), PARTS):
        program = Program(random.Random(f"{SEED}/{number}"))
        for step in program.steps(STEPS):
            check(step, program.labels, f"PAPERWASP_SEED={SEED}, program {number}: {step.what}")


def check(step: Step, labels: Labels, message: str) -> None:
    value = step.value
    check_shape(value, message)
    tensors = value.batch.tensors(labels)
    assert len(tensors) == len(value.tensors), message
    for hit, (tensor, wanted) in enumerate(zip(tensors, value.tensors, strict=True)):
        cells = cells_of(tensor)
        assert tensor.type.cell_type == wanted.cell_type, f"{message}: {tensor.type}"
        assert value.sizes == dict(wanted.sizes), f"{message}: {tensor.type}"
        assert cells.keys() == wanted.cells.keys(), f"{message}\nhit {hit}: {tensor}\nwanted {wanted.cells}"
        assert is_close(cells, wanted), f"{message}\nhit {hit}: {tensor}\nwanted {wanted.cells}"


def check_shape(value: Value, message: str) -> None:
    batch = value.batch
    assert batch.cells.shape == (batch.starts[-1], *batch.type.shape), message
    assert batch.cells.dtype == DTYPES[batch.type.cell_type], message
    assert batch.labels.shape == (batch.starts[-1], len(batch.type.mapped)), message
    assert batch.starts[0] == 0 and (batch.counts >= 0).all(), message
    if not batch.type.mapped:
        assert (batch.counts == 1).all(), message


def cells_of(tensor: Tensor) -> dict[Address, float]:
    mapped, indexed = ([d.name for d in ds] for ds in (tensor.type.mapped, tensor.type.indexed))
    found: dict[Address, float] = {}
    for labels, subspace in zip(tensor.labels, tensor.cells, strict=True):
        named = list(zip(mapped, labels, strict=True))
        for place in _places(tensor.type.shape):
            found[frozenset([*named, *zip(indexed, place, strict=True)])] = float(subspace[place])
    return found


def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for size in shape:
        places = [(*place, index) for place in places for index in range(size)]
    return places


def is_close(cells: dict[Address, float], wanted: PlainTensor) -> bool:
    tolerance = {"double": 1e-9, "float": 1e-5, "bfloat16": 1e-2, "int8": 0.0}[wanted.cell_type]
    # a float on the way to a double leaves its rounding there
    tolerance = max(tolerance, 1e-5) if wanted.cell_type == "double" else tolerance
    largest = max((abs(v) for v in wanted.cells.values() if math.isfinite(v)), default=0.0)
    return all(
        (math.isnan(value) and math.isnan(cells[address]))
        or value == cells[address]
        or abs(value - cells[address]) <= tolerance * max(abs(value), largest * 1e-2)
        for address, value in wanted.cells.items()
    )
