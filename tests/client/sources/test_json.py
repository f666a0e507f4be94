"""Operations in JSON: an array, lines, or objects in a row, read piece by piece; broken ones with their places."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.sources.json_operations import JsonValue, JsonValues, member_text, read_json, read_operation
from paperwasp.client.sources.operations import SourceOperation
from paperwasp.client.sources.rows import RowOptions
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput
from tests.client.sources.reading import fields_of, operations_of, read_content, read_items, shown

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, content: bytes, size: int) -> None:
        self._content = content
        self._size = size

    @property
    def left_bytes(self) -> int:
        return len(self._content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = min(self._size, len(buffer), len(self._content))
        buffer[:count], self._content = self._content[:count], self._content[count:]
        return count


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 0, 3]), st.booleans(), st.booleans(), st.integers(1, 40))
def test_an_array_is_cut_into_what_a_decoder_finds_in_it(
    values: list[Any], indent: int | None, ascii_only: bool, in_array: bool, size: int
) -> None:
    texts = [json.dumps(value, indent=indent, ensure_ascii=ascii_only) for value in values]
    text = f" [\n{' ,'.join(texts)}\r\n] " if in_array else "\n\t".join(texts)
    if not in_array and texts and texts[0].startswith("["):
        return  # that is an array
    found = list(JsonValues("x", io.BufferedReader(Trickle(text.encode(), size))))
    assert [json.loads(value.text) for value in found if isinstance(value, JsonValue)] == values
    lines = [value.line for value in found if isinstance(value, JsonValue)]
    joint, start = (" ,", " [\n") if in_array else ("\n\t", "")
    begins = [len(start) + sum(len(other) + len(joint) for other in texts[:place]) for place in range(len(texts))]
    assert lines == [1 + text[:begin].count("\n") for begin in begins]


@given(OBJECTS, st.sampled_from([None, 2]), st.booleans())
def test_a_member_is_found_as_it_is_written(content: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only).encode()
    for name, value in content.items():
        found = member_text(text, name.encode())
        if json.dumps(name, ensure_ascii=ascii_only) == f'"{name}"':
            assert found is not None
            assert json.loads(found) == value
        else:
            assert found is None
    assert member_text(text, b"not there at all") is None


@given(st.permutations(["put", "condition", "create", "fields"]), OBJECTS, st.sampled_from([None, 1]))
def test_members_come_in_any_order(order: list[str], fields: dict[str, Any], indent: int | None) -> None:
    content = {"put": 'id:a:b::"fields": {', "condition": '"fields": }', "create": True, "fields": fields}
    text = json.dumps({name: content[name] for name in order}, indent=indent).encode()
    operation = read_operation(text, "here")
    assert (operation.kind, operation.id) == ("put", 'id:a:b::"fields": {')
    assert (operation.condition, operation.create) == ('"fields": }', True)
    assert json.loads(operation.fields or b"") == fields
    assert read_operation(operation.to_line(), "here") == operation or indent is not None
    assert operation.to_line().count(b"\n") == 1


def test_numbers_keep_their_digits() -> None:
    first = read_operation(
        b'{"put":"id:a:b::1","fields":{"version": 1.10, "big": 123456789012345678901234567890}}', "x"
    )
    assert first.fields == b'{"version": 1.10, "big": 123456789012345678901234567890}'
    second = read_operation(b'{"fields" : {"version":1.10} ,"put":"id:a:b::1"}', "x")
    assert second.fields == b'{"version":1.10}'


def test_the_last_of_two_members_counts() -> None:
    operation = read_operation(b'{"put":"id:a:b::1","fields":{"a":1},"fields":{"b":2}}', "x")
    assert operation.fields == b'{"b":2}'


LINES = b"""{"put": "id:shop:book::1", "fields": {"title": "One"}}

{"update": "id:shop:book:n=5:2", "create": true, "fields": {"title": {"assign": "Two"}}}
{"remove": "id:shop:book:g=x:3", "condition": "book.year < 1900"}
{"id": "id:shop:book::4", "fields": {}}
"""
EXPECTED = [
    ("put", "id:shop:book::1", b'{"title": "One"}', None, False),
    ("update", "id:shop:book:n=5:2", b'{"title": {"assign": "Two"}}', None, True),
    ("remove", "id:shop:book:g=x:3", None, "book.year < 1900", False),
    ("put", "id:shop:book::4", b"{}", None, False),
]


def _as_array(text: bytes) -> bytes:
    return b"[" + b",\n".join(line for line in text.splitlines() if line) + b"]"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.ndjson"])
@pytest.mark.parametrize("form", ["lines", "array", "crlf", "mark", "row"])
def test_all_forms_say_the_same(tmp_path: Path, name: str, form: str) -> None:
    content = {
        "lines": LINES,
        "array": _as_array(LINES),
        "crlf": LINES.replace(b"\n", b"\r\n"),
        "mark": b"\xef\xbb\xbf" + LINES,
        "row": LINES.replace(b"\n", b" ") if name == "a.json" else LINES.rstrip(),
    }[form]
    items = operations_of(read_content(tmp_path, name, content))
    assert [(item.kind, item.id, item.fields, item.condition, item.create) for item in items] == EXPECTED


def test_compressed_files_are_inflated(tmp_path: Path) -> None:
    long = LINES * 2000
    for name, content in (("a.jsonl.gz", gzip.compress(long)), ("a.json.zst", zstandard.compress(long))):
        assert len(operations_of(read_content(tmp_path, name, content))) == 8000
    two_parts = gzip.compress(LINES) + gzip.compress(LINES)
    assert len(operations_of(read_content(tmp_path, "b.jsonl.gz", two_parts))) == 8


def test_what_a_cut_off_compressed_file_still_has_is_read(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b'{"remove":"id:a:b::%d"}\n' % number for number in range(50_000)), 1)
    items = read_content(tmp_path, "a.jsonl.gz", whole[: len(whole) // 2])
    assert len(items) > 10_000
    assert all(isinstance(item, SourceOperation) for item in items[:-1])
    assert "a.jsonl.gz: damaged or cut off" in shown(items, tmp_path)[-1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[]", 'expected an object with "put", "update" or "remove"'),
        (b"{}", 'expected an object with "put", "update" or "remove"; if it is a row of a table, say with --schema'),
        (b'{"put": 7, "fields": {}}', 'expected an object with "put"'),
        (b'{"put": "a:b", "fields": {}}', "Unparseable id 'a:b'"),
        (b'{"put": "id:a:b::c"}', '"fields" must be an object'),
        (b'{"update": "id:a:b::c", "fields": []}', '"fields" must be an object'),
        (b'{"put": "id:a:b::c", "fields": {}, "condition": 1}', '"condition" must be a string'),
        (b'{"put": "id:a:b::c", "fields": {}, "create": "yes"}', '"create" must be true or false'),
    ],
)
def test_what_is_no_operation_is_refused(line: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_operation(line, "line 3")
    assert str(refused.value).startswith(f"line 3: {message}")


GOOD = b'{"remove": "id:a:b::1"}'
HOSTILE_LINES = {
    b'{"put": "id:a:b::2", "fields": {"a": }}': "line 2, column 38: no JSON: unexpected character",
    b'{"put": "id:a:b::2", "fields": {"a": 1}': "line 2, column 40: no JSON: unexpected end of data",
    b'{"put": "id:a:b::2", "fields": {"a": "\xff"}}': "line 2, byte 39: no UTF-8 (byte 0xFF)",
    b'{"put": "id:a:b::2", "fields": {"a": "\\ud800"}}': "line 2, column 39: no JSON: no low surrogate in string",
    b'{"remove": "id:a:b::2"} {"remove": "id:a:b::3"}': "line 2, column 25: no JSON: unexpected content after document",
    b"null": 'line 2: expected an object with "put", "update" or "remove"',
    b"{" + b"x" * 500: "line 2: longer than 300 bytes, which no service takes",
}


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=str)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_bad_line_costs_no_other(tmp_path: Path, line: bytes, end: bytes) -> None:
    content = end.join((GOOD, line, GOOD.replace(b"1", b"9"), b""))
    found = shown(read_content(tmp_path, "a.jsonl", content, most_bytes=300), tmp_path)
    assert found[0] == "id:a:b::1"
    assert found[1].startswith(f"a.jsonl, {HOSTILE_LINES[line]}")
    assert found[2:] == ["id:a:b::9"]


ENDS = "what follows in this file was not read"
HOSTILE_ARRAYS = {
    # The brackets match: the next element is found.
    b'[%s,\n{"put": "id:a:b::2", "fields": {"a": }},\n%s]': (
        ["id:a:b::1", "a.json, line 2, column 38: no JSON: unexpected character", "id:a:b::1"]
    ),
    b"[%s,\n7,\n%s]": ["id:a:b::1", "a.json, line 2: expected an object", "id:a:b::1"],
    b'[%s,\n"a, b]",\n%s]': ["id:a:b::1", "a.json, line 2: expected an object", "id:a:b::1"],
    # They do not.
    b'[%s,\n{"put": "id:a:b::2",\n "fields": {"a": 1},\n%s]': [
        "id:a:b::1",
        "a.json, line 4, column 1: no JSON: ",
        "a.json, line 4: the array does not end",
    ],
    b'[%s,\n{"put": "id:a:b::2", "fields": {}}}\n,%s]': [
        "id:a:b::1",
        "id:a:b::2",
        "a.json, line 2: expected ',' or ']'",
    ],
    b"[%s\n%s]": ["id:a:b::1", "a.json, line 2: expected ',' or ']' after an operation; " + ENDS],
    b'[%s,\n{"put": "id:a:b::2, "fields": {}},\n%s': ["id:a:b::1", "a.json, line 2, column 22: no JSON: "],
    b"[%s,\n%s": ["id:a:b::1", "id:a:b::1", "a.json, line 2: the array does not end: the file was cut off"],
    b'[%s,%s\n,{"put": "id:a:b::2", "fie': ["id:a:b::1", "id:a:b::1", "a.json, line 2: the operation that begins here"],
    b"[%s]\n%s": ["id:a:b::1", "a.json, line 2: there is more behind the end of the array"],
    b"[%s,\n[[[%s": ["id:a:b::1", "a.json, line 2: the operation that begins here does not end"],
}


@pytest.mark.parametrize("form", HOSTILE_ARRAYS, ids=str)
@pytest.mark.parametrize("size", [3, 1 << 16])
def test_a_broken_array_loses_nothing_of_what_came_before(form: bytes, size: int) -> None:
    content = form % ((GOOD,) * form.count(b"%s"))
    items = list(read_json("a.json", io.BufferedReader(Trickle(content, size)), None))
    found = shown(items, Path())
    expected = HOSTILE_ARRAYS[form]
    assert len(found) == len(expected), found
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_an_object_without_end_is_not_read_to_the_end_of_the_file() -> None:
    endless = b'[{"put": "id:a:b::1", "fields": {"a": "' + b"x" * 10_000_000
    stream = Trickle(endless, 1 << 16)
    items = list(read_json("a.json", io.BufferedReader(stream), None, most_bytes=100_000))
    assert [item.message for item in items if not isinstance(item, SourceOperation)] == [
        "a.json, line 1: an operation of more than 100000 bytes, or one whose brackets do not match; " + ENDS
    ]
    assert stream.left_bytes > 9_000_000


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    content = ("\ufeff" if encoding == "utf-16-be" else "").encode(encoding) + GOOD.decode().encode(encoding)
    (found,) = shown(read_content(tmp_path, "a.jsonl", content), tmp_path)
    assert found == "a.jsonl is in UTF-16: make it UTF-8, e.g. with `iconv -f UTF-16 -t UTF-8`"


def test_objects_may_be_rows(tmp_path: Path) -> None:
    rows = RowOptions(document_type="book", id="{shop}-{isbn}", fields={"shop": ""})
    content = (
        b'{"isbn": 7, "shop": "x", "title": "One", "tags": ["a"], "none": null}\n{"put": "id:a:b::1", "fields": {}}\n'
    )
    items = read_content(tmp_path, "a.jsonl", content, rows)
    assert shown(items, tmp_path) == ["id:book:book::x-7", "id:a:b::1"]
    assert fields_of(items) == [{"isbn": 7, "title": "One", "tags": ["a"]}, {}]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    assert read_content(tmp_path, "a.jsonl", b"") == []
    (unknown,) = shown(read_content(tmp_path, "a.txt", b""), tmp_path)
    assert unknown.startswith("The name '") and unknown.endswith("json|jsonl|csv|tsv|parquet|arrow")
    (missing,) = shown(read_items(tmp_path / "b.json"), tmp_path)
    assert missing == "Could not read 'b.json': No such file or directory"


def test_an_operation_is_one_line() -> None:
    """A line that is written for what failed is read as the same operation again."""
    fields = b'{"a":\n{"assign": 1}}'
    operation = SourceOperation("update", DocumentId.parse("id:a:b::1"), fields, "b.c == 1", True, "here")
    assert orjson.loads(operation.to_line()) == {
        "update": "id:a:b::1",
        "condition": "b.c == 1",
        "create": True,
        "fields": {"a": {"assign": 1}},
    }
