"""Files with a few bytes that are others: whatever they do, each part of a file is an operation or a message, and what
stands before the damage is read as if there were none."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.sources.operations import SourceOperation
from paperwasp.client.sources.rows import RowOptions
from tests.client.sources.reading import operations_of, read_content

ROWS = RowOptions(document_type="book", id="id", types={"*": "auto"})
COUNT = 12
BYTES = st.sampled_from(
    [b"", b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\n", b"\r", b"\0", b"\xff", b"x", b"\xef\xbb\xbf"]
)


def contents() -> dict[str, bytes]:
    """Name → a file of `COUNT` operations."""
    lines = [b'{"put":"id:a:book::%d","fields":{"a":"\xc3\xa9 \\" %d","b":[1,{}]}}' % (n, n) for n in range(COUNT)]
    rows = [b'%d,"a ""%d""\n b",\xc3\xa9' % (n, n) for n in range(COUNT)]
    table = pa.table({"id": [str(n) for n in range(COUNT)], "v": [[n, 1.5] for n in range(COUNT)]})
    parquet, stream, file = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet, row_group_size=3)
    for sink, make in ((stream, pa.ipc.new_stream), (file, pa.ipc.new_file)):
        with make(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    jsonl = b"\n".join(lines) + b"\n"
    return {
        "a.jsonl": jsonl,
        "a.json": b"[" + b",\n".join(lines) + b"]",
        "a.csv": b"id,text,other\n" + b"\n".join(rows) + b"\n",
        "a.jsonl.gz": gzip.compress(jsonl, mtime=0),
        "a.jsonl.zst": zstandard.compress(jsonl),
        "a.parquet": parquet.getvalue(),
        "a.arrow": stream.getvalue(),
        "a.feather": file.getvalue(),
    }


CONTENTS = contents()
TEXTS = ("a.jsonl", "a.json", "a.csv")


@pytest.mark.parametrize("name", CONTENTS)
@given(place=st.floats(0, 1), removed=st.integers(0, 4), inserted=st.lists(BYTES, max_size=3).map(b"".join))
def test_damage_costs_nothing_before_it(tmp_path: Path, name: str, place: float, removed: int, inserted: bytes) -> None:
    content = CONTENTS[name]
    at = int(place * len(content))
    whole = operations_of(read_content(tmp_path, name, content, ROWS))
    assert len(whole) == COUNT
    items = read_content(tmp_path, name, content[:at] + inserted + content[at + removed :], ROWS)
    assert all(not item.is_end for item in items[:-1] if not isinstance(item, SourceOperation))
    assert all(isinstance(item, SourceOperation) or item.message for item in items)
    if name not in TEXTS:
        return
    before = content[:at]
    ends = {"a.jsonl": b"}}\n", "a.json": b"}},\n", "a.csv": "\u00e9\n".encode()}[name]
    intact = before.count(ends)
    assert items[:intact] == whole[:intact]
