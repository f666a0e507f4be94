"""Parts of arrays of structs and of maps as documents are grouped by that are read for one query: it is known which
elements have the part at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.array import ArrayView


class PartView(ArrayView):
    """An array whose element i is a value where `is_set[i]`; an integer that is not set is 0."""

    __slots__ = ("is_set",)

    def __init__(self, view: ArrayView, is_set: NDArray[np.bool_]) -> None:
        values = view.values[: len(is_set)]
        if values.dtype.kind == "i" and view.element_type is not None:
            values = np.where(is_set, values, 0).astype(values.dtype)
        super().__init__(view.element_type, view.rows, values, view.dictionary)
        self.is_set = is_set
