"""Batches of tensors: what goes in comes out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.tensor import Tensor, TensorType, parse_tensor
from paperwasp.document.tensor.batch import Labels, TensorBatch

MIXED = TensorType.parse("tensor<float>(k{},x[2])")


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "7", "07", "-1", "", "123456789012345678901"]), st.integers(0, 9))
    )
)
def test_tensors_of_many_hits(cells: list[dict[str, int]]) -> None:
    tensors = [
        Tensor(
            MIXED,
            tuple((label,) for label in one),
            np.array([[n, n + 1] for n in one.values()], np.float32).reshape(-1, 2),
        )
        for one in cells
    ]
    labels = Labels()
    batch = TensorBatch.of(tensors, MIXED, labels)
    assert batch.hits == len(tensors)
    assert batch.counts.tolist() == [len(one) for one in cells]
    assert batch.owners.tolist() == [hit for hit, one in enumerate(cells) for _ in one]
    assert batch.tensors(labels) == tensors


def test_a_tensor_for_all_hits_and_dense_ones() -> None:
    labels = Labels()
    single = TensorBatch.single(parse_tensor("tensor(x[2]):[1,2]"), labels)
    assert single.is_single and single.hits == 1 and single.labels.shape == (1, 0)
    dense = TensorBatch.dense(TensorType.parse("tensor(x[2])"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert [str(tensor) for tensor in dense.tensors(labels)] == ["tensor(x[2]):[1.0,2.0]", "tensor(x[2]):[3.0,4.0]"]


def test_labels_keep_their_numbers_over_a_base() -> None:
    base = Labels()
    a = base.number("a")
    one, two = Labels(base), Labels(base)
    assert one.number("a") == two.number("a") == a
    b = one.number("b")
    assert (one.text(a), one.text(b), one.text(12)) == ("a", "b", "12")
    assert two.known("b") is None
    assert two.number("c") == b
    assert two.text(b) == "c"
    assert one.number("12") == 12
    assert one.number("012") < 0
