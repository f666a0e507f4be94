"""A file is never held in memory: reading one of any size takes as much as reading a small one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paperwasp.client.sources.operations import SourceOperation
from paperwasp.client.sources.read import ReadOptions, read_file
from paperwasp.client.sources.rows import RowOptions

ROWS = 16_000
TEXT = "word " * 100
MOST_BYTES = 3_000_000
"""Of memory; the files have 8 MB."""


def lines(name: str) -> Iterator[str]:
    if name == "a.csv":
        yield "id,text\n"
    for number in range(ROWS):
        comma = "[" if number == 0 else ","
        put = f'{{"put": "id:a:b::{number}", "fields": {{"text": "{TEXT}"}}}}\n'
        yield {"a.csv": f"{number},{TEXT}\n", "a.jsonl": put, "a.json": comma + put}[name]
    if name == "a.json":
        yield "]"


def write(path: Path) -> None:
    if path.suffix == ".parquet":
        schema = pa.schema({"id": pa.int32(), "text": pa.string()})
        with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
            for start in range(0, ROWS, 1000):
                texts = [f"{number}{TEXT}" for number in range(start, start + 1000)]
                writer.write_table(pa.table({"id": range(start, start + 1000), "text": texts}, schema))
        return
    with path.open("w") as file:
        file.writelines(lines(path.name))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet"])
def test_reading_takes_no_more_memory_for_a_large_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path)
    options = ReadOptions(rows=RowOptions(document_type="b"))
    next(read_file(str(path), options))  # what is imported is not counted
    tracemalloc.start()
    arrow_bytes = 0
    try:
        count = 0
        for item in read_file(str(path), options):
            assert isinstance(item, SourceOperation)
            count += 1
            if count % 1000 == 0:
                arrow_bytes = max(arrow_bytes, pa.total_allocated_bytes())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == ROWS
    assert peak + arrow_bytes < MOST_BYTES, (peak, arrow_bytes)
