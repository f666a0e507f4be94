"""What a match context has that the features of these tests never ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from paperwasp.features.base import NearVectors
from paperwasp.tensor.batch import TensorBatch
from paperwasp.tensor.kept import KeptTensors
from paperwasp.tensor.types import TensorType
from paperwasp.tensor.value import Tensor


def unasked() -> NoReturn:
    raise AssertionError("a feature asks for what these tests do not have")


class UnaskedContext:
    """The rest of a `MatchContext`."""

    @property
    def text_inputs(self) -> Mapping[str, str]:
        unasked()

    def query_tensor(self, name: str) -> Tensor | None:
        unasked()

    @property
    def distribution_key(self) -> int:
        unasked()

    def lids_in_node(self) -> NDArray[np.uint32]:
        unasked()

    @property
    def first_phase_max(self) -> float:
        unasked()

    def first_phase_ranks(self) -> NDArray[np.float64]:
        unasked()

    def tensor_input(self, name: str, type_: TensorType) -> TensorBatch:
        unasked()

    def tensor_attribute(self, name: str, type_: TensorType) -> TensorBatch:
        unasked()

    def kept_tensors(self, name: str, type_: TensorType) -> KeptTensors:
        unasked()

    def attribute_labels(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        unasked()

    def attribute_hash(self, name: str, element: int) -> NDArray[np.float64]:
        unasked()

    def attribute_weights(self, name: str) -> NDArray[np.float64]:
        unasked()

    def attribute_numbers(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        unasked()

    def attribute_positions(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        unasked()

    def attribute_products(self, name: str, weights: Mapping[str | int, float]) -> NDArray[np.float64]:
        unasked()

    def places_of_query(self, field: str) -> Sequence[tuple[int, int]]:
        unasked()

    def raw_scores(self, term: int, field: str) -> NDArray[np.float64]:
        unasked()

    def near_vectors(self, term: int, field: str) -> NearVectors | None:
        unasked()

    def vector_labels(self, field: str, hits: NDArray[np.int64], subspaces: NDArray[np.uint32]) -> NDArray[np.int64]:
        unasked()

    def subqueries(self, field: str) -> NDArray[np.uint64]:
        unasked()
