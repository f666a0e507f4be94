"""Partial results as bytes: read as they were written, merged as the whole, and refused where they are damaged."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.base.records import replace
from paperwasp.search.grouping.aggregator import aggregator_names
from paperwasp.search.grouping.binding import Binding, bound_request
from paperwasp.search.grouping.execution import Hits, execute
from paperwasp.search.grouping.merging import merged
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.partial_bytes import partial_from_bytes, partial_to_bytes
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level
from paperwasp.search.grouping.value_columns import arrays_of, values_from
from paperwasp.search.grouping.values import Kind, ListTable, Values
from tests.search.grouping.columns import attribute, binding_of
from tests.search.grouping.oracle import tree_from
from tests.search.grouping.random_requests import aggregates_of, columns_of, request_of

FORMAT = Path(__file__).parents[3] / "docs" / "internals" / "formats" / "grouping.md"
START = struct.Struct("<8sIII")
seeds = st.integers(0, 1 << 32)


def parts_of(chance: random.Random, count: int) -> tuple[GroupingRequest, Binding, list[PartialResult]]:
    """A request, how it is bound, and its results over two parts of the documents."""
    columns = columns_of(chance, count)
    request = replace(request_of(chance), top_n=None)
    lids = np.arange(count, dtype=np.uint32)
    relevances = np.array(chance.sample(range(count), count), np.float64)
    binding = binding_of(columns)
    bound, cut = bound_request(request, binding), chance.randrange(count + 1)
    parts = [execute(bound, Hits(lids[part], relevances[part]), cuts=False) for part in (slice(cut), slice(cut, None))]
    return request, binding, parts


@given(seeds, st.integers(0, 40))
def test_parts_that_were_written_and_read_are_merged_as_they_were(seed: int, count: int) -> None:
    request, binding, parts = parts_of(random.Random(seed), count)
    read = [partial_from_bytes(partial_to_bytes(part), request) for part in parts]
    assert tree_from(merged(request, read, binding), request) == tree_from(merged(request, parts, binding), request)
    again = [partial_to_bytes(part) for part in read]
    assert again == [partial_to_bytes(partial_from_bytes(each, request)) for each in again]


@given(seeds, st.data())
def test_changed_bytes_are_refused_or_are_another_result(seed: int, data: st.DataObject) -> None:
    """The checksum is made to fit, so that each check behind it has its turn."""
    chance = random.Random(seed)
    request, binding, parts = parts_of(chance, 12)
    written = bytearray(partial_to_bytes(parts[0]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(START.size, len(written) - 1))
        if chance.random() < 0.8:
            written[place] = data.draw(st.integers(0, 255))
        else:
            del written[place : place + data.draw(st.integers(1, 16))]
    magic, version, length, _ = START.unpack_from(written)
    written[: START.size] = START.pack(magic, version, length, crc32(written[START.size :]))
    try:
        read = partial_from_bytes(bytes(written), request)
    except ValueError:
        return
    tree_from(merged(request, [read, parts[1]], binding), request)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="partial result"):
        partial_from_bytes(data, GroupingRequest(0, 0))


COUNT = Expression("count")
REQUEST = GroupingRequest(
    7, 1, (Aggregation(2, COUNT),), levels=(Level(3, attribute("text"), aggregations=(Aggregation(4, COUNT),)),)
)


def small() -> PartialResult:
    columns: dict[str, tuple[Kind, list[Any]]] = {"text": (Kind.STRING, ["a", "bc", "a"])}
    hits = Hits(np.arange(3, dtype=np.uint32), np.array([1.0, 2.0, 0.5]))
    return execute(bound_request(REQUEST, binding_of(columns)), hits)


def test_the_worked_example_of_the_format() -> None:
    """The bytes that the page shows, in hex or as text, are those that are written."""
    example = FORMAT.read_text().split("## Worked example")[1].split("```")[1]
    lines = [line.partition(" #")[0].strip() for line in example.strip().splitlines()]
    shown = b"".join(line.encode() if line.startswith("{") else bytes.fromhex(line) for line in lines)
    header_size = START.unpack_from(shown)[2]
    json_size = len(next(line for line in lines if line.startswith("{")))
    filled = shown[: START.size + json_size] + b" " * (header_size - json_size) + shown[START.size + json_size :]
    assert filled == partial_to_bytes(small())


def test_a_result_of_another_request_is_refused() -> None:
    written = partial_to_bytes(small())
    level = REQUEST.levels[0]
    other_count = Aggregation(4, Expression("sum", (attribute("x"),)))
    for request in (
        replace(REQUEST, number=8),
        replace(REQUEST, root_tag=5),
        replace(REQUEST, levels=()),
        replace(REQUEST, aggregations=()),
        replace(REQUEST, levels=(replace(level, tag=5),)),
        replace(REQUEST, levels=(replace(level, aggregations=(other_count,)),)),
    ):
        with pytest.raises(ValueError, match="partial result"):
            partial_from_bytes(written, request)
    assert tree_from(partial_from_bytes(written, REQUEST), REQUEST) == tree_from(small(), REQUEST)


def test_levels_that_do_not_fit_are_refused() -> None:
    root, level = small().levels
    two = np.zeros(2, np.uint32)
    for broken in (
        (replace(root, parents=two), level),
        (replace(root, ids=Values(Kind.LONG, np.zeros(1, np.int64))), level),
        (root, replace(level, parents=np.ones(2, np.uint32))),
        (root, replace(level, relevances=np.zeros(1))),
        (root, replace(level, ids=Values(Kind.LONG, np.zeros(2, np.int64)))),
        (root, replace(level, states=())),
        (root, replace(level, states=root.states)),
    ):
        levels: tuple[Groups, ...] = broken
        with pytest.raises(ValueError, match="partial result"):
            partial_from_bytes(partial_to_bytes(PartialResult(7, levels)), REQUEST)


def test_versions_and_damage() -> None:
    written = partial_to_bytes(small())
    magic, version, length, crc = START.unpack_from(written)
    for start in (
        START.pack(b"PWASPARR", version, length, crc),
        START.pack(magic, 2, length, crc),
        START.pack(magic, version, 1 << 31, crc),
        START.pack(magic, version, length, crc ^ 1),
    ):
        with pytest.raises(ValueError, match="partial result"):
            partial_from_bytes(start + written[START.size :], REQUEST)
    for cut in range(len(written)):
        with pytest.raises(ValueError, match="partial result"):
            partial_from_bytes(written[:cut], REQUEST)
    body = orjson.loads(written[START.size : START.size + length])
    assert [level["tag"] for level in body["levels"]] == [1, 3]


def test_values_of_every_kind() -> None:
    coded = np.array([0, 1, 0], np.uint32)
    for values, wanted in (
        (Values(Kind.NULL, np.zeros(2, np.uint32)), [0, 0]),
        (Values(Kind.BOOL, np.array([True, False])), [True, False]),
        (Values(Kind.LONG, np.array([-5, 1 << 62])), [-5, 1 << 62]),
        (Values(Kind.DOUBLE, np.array([0.5, np.inf])), [0.5, np.inf]),
        (Values(Kind.STRING, coded, ListTable(["é\0", "\ud800"])), ["é\0", "\ud800", "é\0"]),
        (Values(Kind.RAW, coded, ListTable([b"", b"\xff"])), [b"", b"\xff", b""]),
        (Values(Kind.LONG_BUCKET, coded, ListTable([(1, 2), None])), [(1, 2), None, (1, 2)]),
        (Values(Kind.DOUBLE_BUCKET, coded, ListTable([(-np.inf, 2.0), None])), [(-np.inf, 2.0), None, (-np.inf, 2.0)]),
        (Values(Kind.STRING_BUCKET, coded, ListTable([("a", "b"), None])), [("a", "b"), None, ("a", "b")]),
        (Values(Kind.RAW_BUCKET, coded, ListTable([(b"a", b"b"), None])), [(b"a", b"b"), None, (b"a", b"b")]),
    ):
        read = values_from(arrays_of(values))
        assert read.kind is values.kind
        assert (read.data.tolist() if read.table is None else list(read.table.values_of(read.data))) == wanted
        codes = read.data.tolist()
        assert len(set(codes)) == len(set(wanted))


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"longs": np.zeros(2, np.int32)},
        {"longs": np.zeros((2, 1), np.int64)},
        {"text": np.zeros(2, np.uint8)},
        {"text": np.zeros(2, np.uint8), "ends": np.array([3], np.uint64)},
        {"text": np.zeros(2, np.uint8), "ends": np.array([2, 1], np.uint64)},
        {"buckets": np.zeros(2, np.uint8), "longs": np.zeros(3, np.int64)},
        {"buckets": np.zeros(2, np.uint8), "bools": np.zeros(4, np.uint8)},
        {"buckets": np.zeros(2, np.uint8), "nulls": np.zeros(4, np.uint8)},
    ],
)
def test_arrays_that_are_no_values_are_refused(arrays: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="state"):
        values_from(arrays)


def test_random_requests_have_every_aggregate() -> None:
    """What the tests over random requests cover."""
    chance = random.Random(1)
    assert {each.function for _ in range(500) for each in aggregates_of(chance)} == aggregator_names()
