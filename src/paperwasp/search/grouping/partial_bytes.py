"""Partial results as bytes, for another process that merges them. The format: docs/internals/formats/grouping.md."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
import orjson
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import State, state_of_form
from paperwasp.search.grouping.binding import order_of
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import Aggregation, GroupingRequest
from paperwasp.search.grouping.value_columns import arrays_of, group_keys, values_from
from paperwasp.search.grouping.values import Kind

_MAGIC: Final = b"PWASPGRP"
_VERSION: Final = 1
_START: Final = struct.Struct("<8sIII")
_ALIGNMENT_BYTES: Final = 8
_DTYPES: Final = frozenset({"|u1", "<u4", "<u8", "<i8", "<f8"})
Arrays = Mapping[str, NDArray[Any]]
Entry = tuple[str, str, int]
"""The name of an array, its dtype, and its number of elements."""


def partial_to_bytes(partial: PartialResult) -> bytes:
    """A partial result with its states. Hits in it are numbers of documents, also where they are written."""
    blocks: list[bytes] = []
    levels = []
    for level in partial.levels:
        groups: Arrays = {"parents": level.parents, "relevances": level.relevances, **arrays_of(level.ids)}
        arrays = _put(groups, blocks)
        states = [{"form": state.form, "arrays": _put(state.arrays(), blocks)} for state in level.states]
        levels.append({"tag": level.tag, "arrays": arrays, "states": states})
    header = orjson.dumps({"number": partial.number, "levels": levels})
    header += b" " * (-(_START.size + len(header)) % _ALIGNMENT_BYTES)
    body = b"".join(blocks)
    return _START.pack(_MAGIC, _VERSION, len(header), crc32(body, crc32(header))) + header + body


def partial_from_bytes(data: bytes, request: GroupingRequest) -> PartialResult:
    """The partial result of a request that bytes say.

    Errors: ValueError for bytes that are no partial result of this request.
    """
    if len(data) < _START.size:
        raise ValueError("a partial result of a grouping is cut")
    magic, version, length, crc = _START.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError("these bytes are no partial result of a grouping, or of another version")
    if length > len(data) - _START.size or crc != crc32(memoryview(data)[_START.size :]):
        raise ValueError("a partial result of a grouping is damaged")
    header = orjson.loads(data[_START.size : _START.size + length])
    reader = _Reader(data, _START.size + length)
    aggregations = [request.aggregations, *(order_of(level).aggregations for level in request.levels)]
    tags = [request.root_tag, *(level.tag for level in request.levels)]
    levels = _member(header, "levels", list)
    if _member(header, "number", int) != request.number or len(levels) != len(tags):
        raise ValueError("a partial result of a grouping is of another request")
    found: list[Groups] = []
    for level, tag, wanted in zip(levels, tags, aggregations, strict=True):
        if _member(level, "tag", int) != tag:
            raise ValueError("a level of a partial result has another tag")
        found.append(_level_of(level, wanted, reader, len(found[-1].parents) if found else None))
    reader.check_end()
    return PartialResult(request.number, tuple(found))


def _put(arrays: Arrays, blocks: list[bytes]) -> list[Entry]:
    """Append arrays to the blocks, each filled up to the next multiple of 8 bytes; return what they are."""
    entries = []
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        assert plain.dtype.str in _DTYPES, plain.dtype
        block = plain.tobytes()
        blocks.append(block + bytes(-len(block) % _ALIGNMENT_BYTES))
        entries.append((name, plain.dtype.str, len(plain)))
    return entries


class _Reader:
    """Reads arrays one after another."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._at = start

    def arrays(self, entries: list[Any]) -> dict[str, NDArray[Any]]:
        """The arrays of these entries, read-only. Errors: ValueError."""
        found: dict[str, NDArray[Any]] = {}
        for entry in entries:
            if not isinstance(entry, list) or len(entry) != 3 or [type(each) for each in entry] != [str, str, int]:
                raise ValueError("an array of a partial result is not described")
            name, dtype, count = entry
            if dtype not in _DTYPES or name in found:
                raise ValueError("an array of a partial result has another type")
            found[name] = self._array(np.dtype(dtype), count)
        return found

    def check_end(self) -> None:
        """Errors: ValueError where bytes are left."""
        if self._at != len(self._data):
            raise ValueError("a partial result of a grouping has bytes too many")

    def _array(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        size = count * dtype.itemsize
        filled = size + -size % _ALIGNMENT_BYTES
        if count < 0 or filled > len(self._data) - self._at:
            raise ValueError("an array of a partial result is cut")
        array = np.frombuffer(self._data, dtype, count, self._at)
        self._at += filled
        return array


def _level_of(level: Any, aggregations: Sequence[Aggregation], reader: _Reader, above: int | None) -> Groups:
    """A level. above: how many groups the level above has; None: this is the root. Errors: ValueError."""
    arrays = reader.arrays(_member(level, "arrays", list))
    parents, relevances = arrays.pop("parents", None), arrays.pop("relevances", None)
    if parents is None or relevances is None or parents.dtype != np.uint32 or relevances.dtype != np.float64:
        raise ValueError("a level of a partial result has no parents or relevances")
    ids = values_from(arrays)
    count = len(parents)
    if not count == len(relevances) == len(ids.data):
        raise ValueError("the arrays of a level of a partial result differ in length")
    if above is None and (count != 1 or parents[0] != 0 or ids.kind is not Kind.NULL):
        raise ValueError("a partial result has another root")
    if above is not None and count and (int(parents[-1]) >= above or (parents[1:] < parents[:-1]).any()):
        raise ValueError("a level of a partial result has groups of other parents")
    if len(_core.group_rows(parents, group_keys(ids))[1]) != count:
        raise ValueError("a level of a partial result has a group twice")
    written = _member(level, "states", list)
    if len(written) != len(aggregations):
        raise ValueError("a level of a partial result has other aggregates")
    states = [_state_of(each, aggregation, reader) for each, aggregation in zip(written, aggregations, strict=True)]
    if any(state.group_count != count for state in states):
        raise ValueError("a state of a partial result has another number of groups")
    return Groups(int(level["tag"]), parents, ids, relevances, tuple(states))


def _state_of(written: Any, aggregation: Aggregation, reader: _Reader) -> State:
    state = state_of_form(_member(written, "form", str))
    if state.form != aggregation.expression.function:
        raise ValueError(f"a state of a partial result is of another aggregate: '{state.form}'")
    return state.from_arrays(reader.arrays(_member(written, "arrays", list)))


def _member(value: Any, name: str, kind: type[Any]) -> Any:
    found = value.get(name) if isinstance(value, dict) else None
    if type(found) is not kind:
        raise ValueError(f"a partial result has no '{name}'")
    return found
