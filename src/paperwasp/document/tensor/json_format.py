"""Tensors as JSON: cells, values, blocks, and the short forms without these words. Files of constants hold them.

Documents are read as leniently as Vespa's TensorReader.java reads them: a type that is given does not count, numbers
may be texts, the values of indexed dimensions may be nested in any way, and the last ones may be missing.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#tensor
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

import numpy as np
import orjson
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.document.tensor.binary_format import convert, read_tensor
from paperwasp.document.tensor.types import TensorType, is_assignable
from paperwasp.document.tensor.value import (
    CELL_BYTES,
    CellCollector,
    Labels,
    Tensor,
    TensorBuilder,
    as_cells,
    hex_cells,
)
from paperwasp.errors import LanguageError, Position

_EXACT: Final = 1 << 53
_NUMBERS: Final = frozenset((int, float))
_FLAT: Final = frozenset((list, str))
_WORDS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("nan", "+nan", "-nan"), math.nan),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
"""Numbers that JSON has no digits for, in lower case."""
_VALUES: Final = frozenset({"values"})
_TYPE_AND_VALUES: Final = frozenset({"type", "values"})
_ONE_SUBSPACE: Final[tuple[Labels, ...]] = ((),)
_KEPT: Final = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
"""By cell type, the numbers that are cells as they are."""
"""The labels of a tensor without mapped dimensions."""
_DECIMAL: Final = compile_later(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?\s*", re.ASCII)
_HEX: Final = compile_later("[0-9A-Fa-f]*")


def read_constant(path: str, content: bytes, type_: TensorType) -> Tensor:
    """The tensor in a file of a package. Errors: LanguageError whose message says where in the file."""
    if path.endswith(".tbf"):
        return _binary(path, content, type_)
    if path.endswith(".lz4"):
        path, content = path.removesuffix(".lz4"), _inflate(path, content)
    if not path.endswith(".json"):
        raise LanguageError(f"a file of a constant ends in .json, .json.lz4 or .tbf, and {path!r} does not")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise LanguageError(error.msg, Position(path, error.lineno, error.colno)) from None
    try:
        return tensor_of(value, type_)
    except LanguageError as error:
        raise LanguageError(f"{path}: {error.bare_message}") from None


def _binary(path: str, content: bytes, type_: TensorType) -> Tensor:
    if len(content) > limits.TENSOR_FILE_BYTES:
        raise LanguageError(f"{path} has more than {limits.TENSOR_FILE_BYTES} bytes")
    try:
        return convert(read_tensor(content), type_)
    except ValueError as error:
        raise LanguageError(f"{path}: {error}") from None


def _inflate(path: str, content: bytes) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    inflater = LZ4FrameDecompressor()
    try:
        inflated: bytes = inflater.decompress(content, max_length=limits.TENSOR_FILE_BYTES + 1)
    except (RuntimeError, EOFError, MemoryError) as error:
        raise LanguageError(f"{path} is no LZ4 file: {error}") from None
    if len(inflated) > limits.TENSOR_FILE_BYTES:
        raise LanguageError(f"{path} inflates to more than {limits.TENSOR_FILE_BYTES} bytes")
    if not inflater.eof:
        raise LanguageError(f"{path} is cut off")
    return inflated


def tensor_of(value: Any, type_: TensorType, *, is_lenient: bool = False) -> Tensor:
    """The tensor that a JSON value writes; `is_lenient`: of a document that is sent.

    Errors: LanguageError that begins with the path to what is wrong.
    """
    try:
        if (numbers := _dense_numbers(value, type_, is_lenient)) is not None:
            return dense_tensor(numbers, type_)
        builder = TensorBuilder(type_)
        _Reader(builder, is_lenient).read(value)
        return builder.build()
    except ValueError as error:
        raise LanguageError(str(error)) from None


def flat_tensor(values: Any, type_: TensorType) -> Tensor | None:
    """The dense tensor whose cells are these numbers, all of them finite, in a decoded JSON array without nesting; None
    where they are given otherwise, or may be wrong."""
    numbers = _dense_numbers(values, type_, is_lenient=False) if type(values) is list else None
    if numbers is None or not np.isfinite(numbers).all():
        return None
    return dense_tensor(numbers, type_)


def dense_tensor(numbers: NDArray[Any], type_: TensorType) -> Tensor:
    """The tensor of one dense subspace whose cells are these numbers. Errors: ValueError for int8 that is none."""
    if numbers.dtype is _KEPT.get(type_.cell_type):
        return Tensor(type_, _ONE_SUBSPACE, numbers.reshape(1, *type_.shape))
    return Tensor(type_, _ONE_SUBSPACE, as_cells(numbers.reshape(1, *type_.shape), type_.cell_type))


def _dense_numbers(value: Any, type_: TensorType, is_lenient: bool) -> NDArray[np.float64] | None:
    """The cells of a dense tensor that is given as a flat array of all of them, or as stored in hex, as nearly all
    vectors are. None where it is given otherwise, or may be wrong: the reader says what is."""
    if type(value) is dict:
        if not (value.keys() == _VALUES or (is_lenient and value.keys() == _TYPE_AND_VALUES)):
            return None
        value = value["values"]
    if type(value) not in _FLAT or type_.mapped or not type_.indexed:
        return None
    if not 0 < (count := math.prod(type_.shape)) <= limits.TENSOR_CELLS:
        return None
    return _core.list_numbers(value, count) if type(value) is list else _hex_numbers(value, count, type_)


def _hex_numbers(text: str, count: int, type_: TensorType) -> NDArray[np.float64] | None:
    """The cells of hex digits; None where they are not just as many as there are cells."""
    if len(text) != 2 * count * CELL_BYTES[type_.cell_type]:
        return None
    try:
        cells = hex_cells(text, type_)
    except ValueError:
        return None
    return cells if len(cells) == count else None  # there was white space between digits


Cells = dict[tuple[Labels, tuple[int, ...]], float]
"""(labels of the mapped dimensions, indexes of the indexed ones) → value."""


def read_cells(value: Any, type_: TensorType, path: str) -> Cells:
    """The cells that are given in any form of `cells`. Errors: LanguageError that begins with the path."""
    collector = CellCollector(type_)
    _Reader(collector, is_lenient=True).cells(value, path)
    return collector.cells


def read_blocks(value: Any, type_: TensorType, path: str) -> Cells:
    """The cells of the subspaces that are given in any form of `blocks`. Errors: as `read_cells`."""
    collector = CellCollector(type_)
    _Reader(collector, is_lenient=True).blocks(value, path)
    return collector.cells


class _Reader:
    def __init__(self, builder: TensorBuilder | CellCollector, is_lenient: bool) -> None:
        self.builder = builder
        self.type = builder.type
        self.is_lenient = is_lenient
        self.mapped_names = tuple(dimension.name for dimension in self.type.mapped)
        self.names = {dimension.name for dimension in self.type.dimensions}

    def read(self, value: Any) -> None:
        if isinstance(value, dict) and self.is_named_form(value):
            self.named_form(value)
        elif isinstance(value, dict) and self.type.mapped:
            self.read_mapped(value, (), "")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            (self.blocks if "values" in value[0] else self.cells)(value, "")
        elif self.type.mapped:
            _fail("", f"a {self.type} is an object, not {_kind(value)}")
        elif isinstance(value, dict) and not value:
            return
        else:
            self.values(list(value.values()) if isinstance(value, dict) and self.is_lenient else value, "")

    def is_named_form(self, value: dict[str, Any]) -> bool:
        """Return whether these keys say what is under them, and are no labels of mapped dimensions."""
        return (
            "blocks" in value
            or ("cells" in value and not self.is_subspace(value["cells"]))
            or ("values" in value and not self.is_subspace(value["values"]))
            or (value.keys() == {"type"} and isinstance(value["type"], str))
        )

    def is_subspace(self, value: Any) -> bool:
        """Return whether it may stand at a label: a number, or the numbers of indexed dimensions."""
        if isinstance(value, list):
            return bool(self.type.mapped and self.type.indexed and value) and not isinstance(value[0], dict | list)
        return bool(self.type.mapped) and not isinstance(value, dict)

    def named_form(self, value: dict[str, Any]) -> None:
        readers: Mapping[str, Callable[[Any, str], None]] = {
            "cells": self.cells,
            "blocks": self.blocks,
            "values": self.values,
        }
        for key, inner in value.items():
            if key in readers:
                if key == "values" and self.type.mapped:
                    _fail(key, f"a {self.type} has mapped dimensions: use cells or blocks")
                readers[key](inner, key)
            elif key == "type":
                if not self.is_lenient:
                    self.check_type(inner)
            else:
                _fail(key, "expected type, cells, values or blocks")

    def check_type(self, text: Any) -> None:
        try:
            written = TensorType.parse(str(text))
        except ValueError as error:
            _fail("type", str(error))
        if not is_assignable(written, self.type):
            _fail("type", f"expected {self.type}, found {written}")

    def cells(self, value: Any, path: str) -> None:
        if isinstance(value, dict):
            if len(self.type.dimensions) != 1:
                _fail(path, f"labels alone are no address in {self.type}")
            name = self.type.dimensions[0].name
            for label, number in value.items():
                check_time()
                if not self.is_plain({name: label}, number):
                    self.cell({name: label}, number, f"{path}.{label}")
        elif isinstance(value, list):
            for place, cell in enumerate(value):
                check_time()
                if type(cell) is not dict or type(cell.get("address")) is not dict or "value" not in cell:
                    _fail(f"{path}[{place}]", "expected an object with address and value")
                if not self.is_plain(cell["address"], cell["value"]):
                    self.cell(cell["address"], cell["value"], f"{path}[{place}]")
        else:
            _fail(path, f"expected an array or an object, not {_kind(value)}")

    def is_plain(self, address: Mapping[str, Any], value: Any) -> bool:
        """Takes the cell where nothing is unusual about it, as almost always: no path to it need be made."""
        if type(value) is not float and (type(value) is not int or abs(value) > _EXACT):
            return False
        if self.type.indexed or address.keys() != self.names:
            return False
        labels = tuple([address[name] for name in self.mapped_names])
        if not all(type(label) is str for label in labels):
            return False
        self.builder.cell(labels, (), float(value))
        return True

    def cell(self, address: Mapping[str, Any], value: Any, path: str) -> None:
        self.check_address(address, [d.name for d in self.type.dimensions], path)
        indexes = []
        for dimension in self.type.indexed:
            text = str(address[dimension.name])
            if not text.isdecimal() or len(text) > 10:
                _fail(path, f"{text!r} is no index of dimension {dimension}")
            indexes.append(int(text))
        labels = tuple(str(address[d.name]) for d in self.type.mapped)
        try:
            self.builder.cell(labels, tuple(indexes), self.number(value, path))
        except ValueError as error:
            _fail(path, str(error))

    def blocks(self, value: Any, path: str) -> None:
        if isinstance(value, dict):
            self.read_mapped(value, (), path)
            return
        if not isinstance(value, list):
            _fail(path, f"expected an array or an object, not {_kind(value)}")
        names = [d.name for d in self.type.mapped]
        for place, block in enumerate(value):
            check_time()
            inner = f"{path}[{place}]"
            if not isinstance(block, dict) or not isinstance(block.get("address"), dict) or "values" not in block:
                _fail(inner, "expected an object with address and values")
            self.check_address(block["address"], names, inner)
            labels = tuple(str(block["address"][name]) for name in names)
            self.subspace(labels, block["values"], f"{inner}.values")

    def check_address(self, address: Mapping[str, Any], names: list[str], path: str) -> None:
        if sorted(address) != names:
            _fail(f"{path}.address", f"expected {', '.join(names)}; found {', '.join(address) or 'nothing'}")
        for name, label in address.items():
            if not isinstance(label, str | int) or isinstance(label, bool):
                _fail(f"{path}.address.{name}", f"expected a label, found {_kind(label)}")

    def read_mapped(self, value: Any, labels: Labels, path: str) -> None:
        if len(labels) == len(self.type.mapped):
            self.subspace(labels, value, path)
        elif isinstance(value, dict):
            for label, inner in value.items():
                check_time()
                self.read_mapped(inner, (*labels, label), f"{path}.{label}" if path else label)
        else:
            _fail(path, f"expected an object of labels, found {_kind(value)}")

    def values(self, value: Any, path: str) -> None:
        """All values of a tensor without mapped dimensions."""
        cells = self.subspace_cells(value, path)
        missing = math.prod(self.type.shape) - len(cells)
        if self.is_lenient and len(cells) and missing > 0:
            cells = np.pad(cells, (0, missing))
        self.add_subspace((), cells, path)

    def subspace(self, labels: Labels, value: Any, path: str) -> None:
        self.add_subspace(labels, self.subspace_cells(value, path), path)

    def add_subspace(self, labels: Labels, cells: NDArray[np.float64], path: str) -> None:
        try:
            self.builder.subspace(labels, cells)
        except ValueError as error:
            _fail(path, str(error))

    def subspace_cells(self, value: Any, path: str) -> NDArray[np.float64]:
        if isinstance(value, str) and self.type.indexed:
            if not _HEX.fullmatch(value):
                _fail(path, "a string of values has hexadecimal digits only")
            return hex_cells(value, self.type)
        if not self.type.indexed:
            single = value[0] if isinstance(value, list) and len(value) == 1 else value
            return np.array([self.number(single, path)], np.float64)
        return np.array(self.flat(value, self.type.shape, path), np.float64)

    def flat(self, value: Any, shape: tuple[int, ...], path: str) -> list[float]:
        """The numbers of nested arrays, or of one flat array."""
        if not isinstance(value, list):
            _fail(path, f"expected an array, found {_kind(value)}")
        if set(map(type, value)) <= _NUMBERS:
            return value
        if self.is_lenient:
            return self.leaves(value, path)
        if not any(isinstance(item, list) for item in value):
            return [self.number(item, f"{path}[{place}]") for place, item in enumerate(value)]
        if len(shape) < 2:
            _fail(path, "arrays are nested deeper than there are dimensions")
        if len(value) != shape[0]:
            _fail(path, f"expected {shape[0]} arrays, found {len(value)}")
        flat: list[float] = []
        for place, item in enumerate(value):
            inner = self.flat(item, shape[1:], f"{path}[{place}]")
            if len(inner) != math.prod(shape[1:]):
                _fail(f"{path}[{place}]", f"expected {math.prod(shape[1:])} value(s), found {len(inner)}")
            flat += inner
        return flat

    def leaves(self, value: list[Any], path: str) -> list[float]:
        """The numbers of arrays nested in any way."""
        flat: list[float] = []
        for place, item in enumerate(value):
            if isinstance(item, list) and set(map(type, item)) <= _NUMBERS:
                flat += item
            else:
                flat += [self.number(leaf, f"{path}[{place}]") for leaf in _leaves(item)]
        return flat

    def number(self, value: Any, path: str) -> float:
        if type(value) in _NUMBERS:
            try:
                return float(value)
            except OverflowError:
                _fail(path, "the number is too large")
        if value is None:
            return math.nan
        if isinstance(value, str):
            if value.lower() in _WORDS:
                return _WORDS[value.lower()]
            if self.is_lenient and (decimal := _DECIMAL.fullmatch(value)) is not None:
                return float(decimal[1])
        _fail(path, f"expected a number, found {_kind(value)}")


def _leaves(value: Any) -> Iterator[Any]:
    """The values in nested arrays, however deep; of anything else the value itself."""
    waiting = [iter((value,))]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list):
                waiting.append(iter(item))
                break
            yield item
        else:
            waiting.pop()


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _fail(path: str, message: str) -> NoReturn:
    raise LanguageError(f"{path.removeprefix('.')}: {message}" if path else message)
