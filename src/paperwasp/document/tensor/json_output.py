"""Tensors as JSON values, in each of the forms of `format.tensors`.

    short   {"type": …, "values": […]} · {"type": …, "cells": {label: v}} · {"type": …, "blocks": {label: […]}}
    long    {"type": …, "cells": [{"address": {…}, "value": v}, …]}
    hex     as short, each dense subspace a string of hex digits
    …-value the same without the type and the key

Documents show floats with the digits of a double, and infinities as strings, so that nothing is lost. Search results
show each cell in the shortest text of its own type (TensorDataSource.java in Vespa's vespajlib), or with the digits of
a double where they are not text, and what is not finite as null (NonFiniteToNullDataSink.java).

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#format.tensors
Differs: in documents, Vespa writes null for infinities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Labels, Tensor

FORMS: Final = ("short", "long", "short-value", "long-value", "hex", "hex-value")

_BIG_ENDIAN: Final[Mapping[str, str]] = {"double": ">f8", "float": ">f4", "int8": "i1"}

_Dense = Callable[[Any], Any]
"""An array of cells, or a single one, → what JSON has for it. orjson writes NumPy's arrays and numbers of any type."""


def tensor_json(tensor: Tensor, form: str = "short") -> Any:
    """The tensor as a JSON value in one of `FORMS`, as documents show it."""
    return _json(tensor, form, _numbers)


def shown_json(tensor: Tensor) -> Any:
    """The same as `tensor_json` in the short form, for orjson alone, which writes arrays of NumPy itself."""
    return _json(tensor, FORMS[0], _finite_arrays)


def is_stored_in_hex(type_: TensorType) -> bool:
    """Return whether `stored_json` writes tensors of this type in hex.

    Eight digits for a float are less than half of its decimal ones, and are written and read in a fraction of the time.
    """
    return bool(type_.indexed) and type_.cell_type != "int8"


def stored_json(tensor: Tensor) -> Any:
    """The tensor as the log and the document store keep it, for orjson: in the short form, where each dense subspace of
    floating-point cells is in hex."""
    return _json(tensor, "hex", _numbers) if is_stored_in_hex(tensor.type) else shown_json(tensor)


def result_json(tensor: Tensor, form: str = "short", *, exact: bool = False) -> Any:
    """The tensor as a JSON value, for orjson, as search results show it; `exact`: what CBOR is made of."""
    return _json(tensor, form, _doubles if exact else _as_they_are)


def _json(tensor: Tensor, form: str, numbers: _Dense) -> Any:
    kind, _, value_only = form.partition("-")
    if kind == "long":
        key, value = _long(tensor, numbers)
    else:
        key, value = _short(tensor, _hex(tensor) if kind == "hex" else numbers, numbers)
    return value if value_only else {"type": str(tensor.type), key: value}


def _as_they_are(cells: Any) -> Any:
    return np.ascontiguousarray(cells) if np.ndim(cells) else cells


def _doubles(cells: Any) -> Any:
    return _as_they_are(cells if cells.dtype == np.int8 else np.float64(cells))


def _short(tensor: Tensor, dense: _Dense, number: _Dense) -> tuple[str, Any]:
    mapped, indexed = tensor.type.mapped, tensor.type.indexed
    if not mapped:
        return "values", dense(tensor.cells[0]) if indexed else [number(tensor.cells[0])]
    values = [dense(row) if indexed else number(row) for row in tensor.cells]
    key = "blocks" if indexed else "cells"
    if len(mapped) == 1:
        return key, {label: value for (label,), value in zip(tensor.labels, values, strict=True)}
    name = "values" if indexed else "value"
    return key, [
        {"address": _address(tensor, labels), name: value} for labels, value in zip(tensor.labels, values, strict=True)
    ]


def _long(tensor: Tensor, number: _Dense) -> tuple[str, Any]:
    return "cells", [
        {"address": _address(tensor, labels, place), "value": number(row[place])}
        for labels, row in zip(tensor.labels, tensor.cells, strict=True)
        for place in np.ndindex(*tensor.type.shape)
    ]


def _address(tensor: Tensor, labels: Labels, place: tuple[int, ...] = ()) -> dict[str, str]:
    address = {dimension.name: label for dimension, label in zip(tensor.type.mapped, labels, strict=True)}
    address |= {dimension.name: str(index) for dimension, index in zip(tensor.type.indexed, place, strict=False)}
    return dict(sorted(address.items()))


def _number(cell: Any) -> Any:
    """A cell as JSON has it; null is NaN."""
    if isinstance(cell, np.ndarray):
        cell = cell.item()
    number = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(number, int) or math.isfinite(number):
        return number
    return None if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _numbers(cells: NDArray[Any]) -> Any:
    """Nested lists, one level for each dimension; of a single cell a number."""
    if not np.ndim(cells):
        return _number(cells)
    if cells.dtype == np.int8 or np.isfinite(cells).all():
        return cells.tolist()
    return [_numbers(row) if row.ndim else _number(row) for row in cells]


def _finite_arrays(cells: Any) -> Any:
    return _doubles(cells) if np.ndim(cells) and np.isfinite(cells).all() else _numbers(cells)


def _hex(tensor: Tensor) -> _Dense:
    cell_type = tensor.type.cell_type

    def dump(cells: NDArray[Any]) -> str:
        if cell_type == "bfloat16":
            return (cells.view(np.uint32) >> np.uint32(16)).astype(">u2").tobytes().hex().upper()
        return cells.astype(_BIG_ENDIAN[cell_type]).tobytes().hex().upper()

    return dump
