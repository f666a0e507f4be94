"""Dot products and MaxSim by kernels are what their expressions say."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.document.tensor import algebra
from paperwasp.document.tensor.algebra import CELL_FUNCTIONS
from paperwasp.document.tensor.batch import KeptTensors, Labels, TensorBatch
from paperwasp.document.tensor.products import (
    dots,
    greatest_by_hamming,
    greatest_dots,
    greatest_dots_with_bits,
    max_similarity,
)
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import Tensor
from tests.chance import SEED


def some_tensor(rng: np.random.Generator, type_: str, rows: int) -> Tensor:
    parsed = TensorType.parse(type_)
    shape = (rows, *parsed.shape)
    is_int = parsed.cell_type == "int8"
    cells = rng.integers(-128, 128, shape).astype(np.int8) if is_int else rng.standard_normal(shape).astype(np.float32)
    return Tensor(parsed, tuple((f"l{row}",) for row in range(rows)) if parsed.mapped else ((),), cells)


def batches(rng: np.random.Generator, query: str, documents: str, tokens: int) -> tuple[TensorBatch, TensorBatch]:
    labels = Labels()
    single = TensorBatch.single(some_tensor(rng, query, tokens), labels)
    counts = rng.integers(0, 30, 8).tolist()
    every = [some_tensor(rng, documents, count) for count in counts]
    return single, TensorBatch.of(every, TensorType.parse(documents), labels)


def reduced(batch: TensorBatch, summed: str) -> list[float]:
    best = algebra.reduced(batch, "max", ("t",))
    found: list[float] = algebra.numbers(algebra.reduced(best, "sum", (summed,)) if summed else best).tolist()
    return found


@pytest.mark.parametrize(("query", "tokens", "summed"), [
    ("tensor<float>(s{},x[16])", 5, "s"), ("tensor<float>(s[3],x[16])", 1, "s"), ("tensor<float>(x[16])", 1, ""),
])  # fmt: skip
def test_is_what_the_expression_says(query: str, tokens: int, summed: str) -> None:
    seed = SEED
    rng = np.random.default_rng(seed)
    given, documents = batches(rng, query, "tensor<float>(t{},x[16])", tokens)
    found = algebra.numbers(max_similarity(greatest_dots, given, KeptTensors.of(documents), summed))
    wanted = reduced(algebra.summed_products(given, documents, ("x",)), summed)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}")
    for endian in ("big", "little"):
        given, documents = batches(rng, query, "tensor<int8>(t{},x[2])", tokens)
        unpacked = algebra.unpacked(documents, "float", endian)
        nearest = greatest_dots_with_bits(unpacked.type, endian)
        found = algebra.numbers(max_similarity(nearest, given, KeptTensors.of(documents), summed))
        wanted = reduced(algebra.summed_products(given, unpacked, ("x",)), summed)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}")


def test_bits_that_differ() -> None:
    seed = SEED
    rng = np.random.default_rng(seed)
    given, documents = batches(rng, "tensor<int8>(s{},x[2])", "tensor<int8>(t{},x[2])", 4)
    different = algebra.reduced(algebra.joined(given, documents, CELL_FUNCTIONS["hamming"]), "sum", ("x",))
    near = algebra.mapped(different, lambda cells: 1 / (1 + cells))
    found = max_similarity(greatest_by_hamming(1.0, 1.0, "float"), given, KeptTensors.of(documents), "s")
    assert found.type == NUMBER
    np.testing.assert_allclose(algebra.numbers(found), reduced(near, "s"), rtol=1e-6, err_msg=f"seed {seed}")


@pytest.mark.parametrize("cell_type", ["float", "double", "int8"])
def test_dot_products_of_dense_tensors(cell_type: str) -> None:
    seed = SEED
    rng = np.random.default_rng(seed)
    labels, type_ = Labels(), TensorType.parse(f"tensor<{cell_type}>(x[3],y[5])")
    dtype = {"float": np.float32, "double": np.float64, "int8": np.int8}[cell_type]
    cells = (rng.standard_normal((9, 3, 5)) * 10).astype(dtype)
    query = TensorBatch.single(Tensor(type_, ((),), cells[:1]), labels)
    starts = rng.integers(0, 9, 20)
    counts = rng.integers(0, 2, 20)
    documents = np.where(counts[:, None, None] == 1, cells[starts], 0).astype(dtype)
    wanted = algebra.numbers(algebra.summed_products(query, TensorBatch.dense(type_, documents), ("x", "y")))
    found = dots(query, KeptTensors(type_, cells, starts, counts))
    if cell_type == "int8":
        assert found is None
    else:
        assert found is not None
        np.testing.assert_array_equal(algebra.numbers(found), wanted, err_msg=f"seed {seed}")


def test_no_tensor_is_zeros_also_beside_infinity() -> None:
    type_ = TensorType.parse("tensor<float>(x[2])")
    query = TensorBatch.single(Tensor(type_, ((),), np.array([[np.inf, 1]], np.float32)), Labels())
    found = dots(query, KeptTensors(type_, np.zeros((0, 2), np.float32), np.zeros(1, np.int64), np.zeros(1, np.int64)))
    assert found is not None and np.isnan(algebra.numbers(found)).all()
