"""Operations as bytes and back; documents as JSON and back; layouts as markers and back."""

from __future__ import annotations

import math
import struct
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.content.layouts.codec import DocumentCodec
from paperwasp.content.layouts.layout import EMPTY, Layout
from paperwasp.content.log.late_operations import LateOperations
from paperwasp.content.log.records import Entry, EntryKind, decode_entries, entry_of, records_of
from paperwasp.document.ids import partition_of
from paperwasp.document.operations import Operation, Put, Remove, Update
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    ArrayType,
    DataType,
    DocumentType,
    NumericType,
    tensor_field,
    weighted_set_of,
)
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate, Index
from paperwasp.errors import Corruption, InvalidInput, OtherVersion
from paperwasp.schema.model import Field
from paperwasp.storage.documents.document_store import StoredForm
from tests.content.document_schemas import VARIANTS, variant_schema
from tests.content.nodes import BOOK, MUSIC, MUSIC_FIELDS, doc_id, put, remove, schema, update

LAYOUT = EMPTY.changed(1, [MUSIC, BOOK], {})
KIND = LAYOUT.types["music"]
CODEC = DocumentCodec(KIND)


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    if isinstance(data_type, ArrayType):
        return st.lists(values_of(data_type.element), max_size=3)
    if data_type == BOOL:
        return st.booleans()
    if data_type == STRING:
        return st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cn"]), max_size=5)
    if data_type in (FLOAT, DOUBLE):
        return st.floats(width=32 if data_type == FLOAT else 64)
    assert isinstance(data_type, NumericType)
    return st.integers(data_type.low, data_type.high)


def encode_entries(entries: list[Entry]) -> bytes:
    """The payload of one record, as docs/internals/formats/operations.md says it: what the kernel is compared with."""
    parts = [struct.pack("<BI", 4, len(entries))]
    for entry in entries:
        id_bytes, body, flags = entry.id.encode(), entry.body, int(entry.create)
        if entry.condition is not None:
            flags |= 2
            condition = entry.condition.encode()
            body = struct.pack("<I", len(condition)) + condition + body
        if entry.required_us:
            flags |= 4
            body = struct.pack("<Q", entry.required_us) + body
        head = (entry.kind, flags, len(id_bytes), len(body), entry.timestamp_us, entry.gid)
        parts += [struct.pack("<BBHIQ12s", *head), id_bytes, body]
    return b"".join(parts)


FIELDS = st.fixed_dictionaries({}, optional={field.name: values_of(field.type) for field in MUSIC_FIELDS})
ASSIGNED = st.fixed_dictionaries({}, optional={f.name: st.one_of(st.none(), values_of(f.type)) for f in MUSIC_FIELDS})


@given(FIELDS)
def test_documents_come_back_as_they_were(fields: dict[str, Any]) -> None:
    """Every float to the last bit, and every empty value."""
    assert repr(CODEC.decode(CODEC.encode(fields))) == repr(fields)


@given(st.lists(st.one_of(FIELDS, st.booleans(), ASSIGNED.map(lambda fields: [fields])), max_size=6))
def test_operations_come_back_as_they_were(given_: list[Any]) -> None:
    operations: list[Operation] = []
    for number, one in enumerate(given_):
        if isinstance(one, dict):
            operations.append(put(f"ø{number}", **one))
        elif isinstance(one, list):
            operations.append(update(number, create=number % 2 == 0, **one[0]))
        else:
            operations.append(remove(number))
    entries = [entry_of(operation, KIND, CODEC, 7 + number) for number, operation in enumerate(operations)]
    again = list(decode_entries(encode_entries(entries), lambda: "here"))
    for entry, found in zip(entries, again, strict=True):
        assert (entry.id, entry.gid, entry.kind, entry.document_type) == (
            found.id,
            found.gid,
            found.kind,
            found.document_type,
        )
        assert (entry.timestamp_us, entry.body, entry.create) == (found.timestamp_us, found.body, found.create)
        if entry.updates is not None:
            assert repr(CODEC.decode_updates(found.body)) == repr(entry.updates)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(st.one_of(st.none(), TEXTS), st.booleans(), st.binary(max_size=9)), max_size=5))
def test_conditions_come_back_as_they_were(given_: list[tuple[str | None, bool, bytes]]) -> None:
    entries = [
        Entry(EntryKind.PUT, "id:n:t::æ", b"123456789012", "t", 7, body, create, condition)
        for condition, create, body in given_
    ]
    found = list(decode_entries(encode_entries(entries), lambda: "here"))
    assert [(entry.condition, entry.create, entry.body) for entry in found] == given_


@given(
    st.lists(
        st.builds(
            Entry,
            st.sampled_from(EntryKind),
            TEXTS,
            st.binary(min_size=12, max_size=12),
            st.just("t"),
            st.integers(0, 2**64 - 1),
            st.binary(max_size=9),
            st.booleans(),
            st.none() | TEXTS,
            required_us=st.just(0) | st.integers(0, 2**64 - 1),
        ),
        max_size=12,
    )
)
def test_entries_of_one_partition_that_follow_each_other_are_one_record(entries: list[Entry]) -> None:
    runs = groupby(entries, lambda entry: partition_of(entry.gid))
    assert [tuple(each[:2]) for each in records_of(entries)] == [(of, encode_entries(list(run))) for of, run in runs]


@pytest.mark.parametrize(
    ("id", "gid", "body"), [("a" * 65_536, b"123456789012", b""), ("a", b"1", b""), ("a", b"123456789012", "text")]
)
def test_entries_that_have_no_form_are_refused(id: str, gid: bytes, body: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        records_of([Entry(EntryKind.PUT, id, gid, "t", 7, body)])


@given(st.none() | TEXTS, st.integers(0, 2**64 - 1), st.binary(max_size=9))
def test_required_times_come_back_as_they_were(condition: str | None, required_us: int, body: bytes) -> None:
    identity = ("id:n:t::æ", b"123456789012", "t", 7)
    entry = Entry(EntryKind.UPDATE, *identity, body, condition=condition, required_us=required_us)
    (found,) = decode_entries(encode_entries([entry]), lambda: "here")
    assert (found.condition, found.required_us, found.body) == (condition, required_us, body)


def test_an_update_is_logged_as_its_json() -> None:
    operation = Update(
        doc_id("a"),
        (
            FieldUpdate("year", Calculate("increment", 2)),
            FieldUpdate("tags", Add(["x"])),
            FieldUpdate("sizes", Assign(7), (Index(1),)),
            FieldUpdate("score", Assign(float(np.float32(0.1)))),
        ),
    )
    assert entry_of(operation, KIND, CODEC, 1).body == (
        b'{"year":{"increment":2},"tags":{"add":["x"]},"sizes[1]":{"assign":7},"score":{"assign":0.1}}'
    )
    assert entry_of(update("a", score=float(np.float32(0.1)), note=None), KIND, CODEC, 1).body == (
        b'{"score":{"assign":0.1},"note":{"assign":null}}'
    )


def test_json_that_was_made_already_is_logged_where_the_layout_stores_it_so() -> None:
    kind = EMPTY.changed(1, [schema("music", Field("weights", weighted_set_of(STRING)))], {}).types["music"]
    codec = DocumentCodec(kind)
    assert entry_of(Put(doc_id("a"), {"title": "x"}, json=b'{"title": "x"}'), KIND, CODEC, 1).body == b'{"title": "x"}'
    assert entry_of(Put(doc_id("a"), {"weights": {"x": 1}}, json=b"no"), kind, codec, 1).body == b'{"weights":{"x":1}}'
    assigned = Update(doc_id("a"), (FieldUpdate("title", Assign("x")),), json=b'{"title": {"assign":"x"}}')
    assert entry_of(assigned, KIND, CODEC, 1).body == assigned.json
    assigned = Update(doc_id("a"), (FieldUpdate("weights", Assign({"x": 1})),), json=b"no")
    assert entry_of(assigned, kind, codec, 1).body == b'{"weights":{"assign":{"x":1}}}'


def test_json_of_the_layout_before_is_made_again() -> None:
    before, now = (
        EMPTY.changed(1, [schema("music", *(Field(name, STRING) for name in names))], {})
        for names in (["a", "b"], ["a"])
    )
    late = LateOperations()
    late.note_change(before)
    kind = now.types["music"]
    for operation, body in (
        (Put(doc_id("1"), {"a": "x", "b": "y"}, json=b'{"a":"x","b":"y"}'), b'{"a":"x"}'),
        (
            Update(
                doc_id("1"),
                (FieldUpdate("a", Assign("x")), FieldUpdate("b", Assign("y"))),
                json=b'{"a":{"assign":"x"},"b":{"assign":"y"}}',
            ),
            b'{"a":{"assign":"x"}}',
        ),
    ):
        assert late.entry(operation, kind, DocumentCodec(kind), 1).body == body


@pytest.mark.parametrize(
    "operation",
    [
        Update(doc_id("a"), (FieldUpdate("title", Calculate("increment", 2)),)),
        Update(doc_id("a"), (FieldUpdate("nothing", Calculate("increment", 2)),)),
        Update(
            doc_id("a"), (FieldUpdate("sizes", Assign(7), (Index(1),)), FieldUpdate("sizes", Assign(8), (Index(1),)))
        ),
        Remove(doc_id("a"), "music.year >"),
        Put(doc_id("a"), {}, "music.title == 'a\ud800'"),
        Put(doc_id("x" * 70_000), {}),
    ],
)
def test_what_could_not_be_replayed_is_not_logged(operation: Operation) -> None:
    with pytest.raises((InvalidInput, UnicodeEncodeError)):
        entry_of(operation, KIND, CODEC, 1)


def test_what_was_read_as_the_layouts_fields_is_not_checked_again() -> None:
    """Only where all fields of that type are here, as they are there: a deployment may come in between."""
    wrong = {"year": 2**40}
    same = DocumentType("music", {name: KIND.types[name] for name in ("title", "year")})
    for other in (DocumentType("music", {"year": LONG}), DocumentType("music", {"year": INT, "gone": INT}), None):
        for _ in range(2):
            with pytest.raises(InvalidInput):
                entry_of(Put(doc_id("a"), wrong, json=b"{}", read_as=other), KIND, CODEC, 1)
            updates = (FieldUpdate("year", Assign(2**40)),)
            with pytest.raises(InvalidInput):
                entry_of(Update(doc_id("a"), updates, json=b"{}", read_as=other), KIND, CODEC, 1)
    for number in range(20):
        read_as = same if number % 2 else DocumentType("music", dict(same.fields))
        assert entry_of(Put(doc_id("a"), wrong, json=b"{}", read_as=read_as), KIND, CODEC, 1).body == b"{}"


def test_floats_are_shown_with_the_digits_they_have() -> None:
    fields = {"score": float(np.float32(0.1)), "weight": 0.1, "numbers": [float(np.float32(1 / 3)), -math.inf]}
    assert CODEC.encode(fields) == b'{"score":0.1,"weight":0.1,"numbers":[0.33333334,"-Infinity"]}'


def test_damaged_operations_are_reported() -> None:
    data = encode_entries([entry_of(put("a", year=1), KIND, CODEC, 1)])
    for cut in range(len(data)):
        with pytest.raises(Corruption, match="file: offset 5"):
            list(decode_entries(data[:cut], lambda: "file: offset 5"))
    with pytest.raises(Corruption, match="version 9"):
        list(decode_entries(b"\x09" + data[1:], lambda: "here"))


def test_the_worked_example_is_read_as_either_version() -> None:
    """Also what was written before tensors were in hex, and without empty values."""
    data = bytes.fromhex(
        "04 01 00 00 00 01 00 0d 00 0d 00 00 00 40 8c 7c ce 03 44 06 00 0c c1 75 b9 df d7 5c a0 89 5e c3 b0"
        "69 64 3a 6e 3a 6d 75 73 69 63 3a 3a 61 7b 22 79 65 61 72 22 3a 31 39 36 39 7d"
    )
    entry = entry_of(put("a", year=1969), KIND, CODEC, 1_763_633_000_123_456)
    assert encode_entries([entry]) == data
    for version in (2, 3, 4):
        (found,) = decode_entries(bytes([version]) + data[1:], lambda: "here")
        assert (found.kind, found.id, found.timestamp_us) == (EntryKind.PUT, entry.id, entry.timestamp_us)
        assert CODEC.decode(found.body) == {"year": 1969}
        assert found.form is (StoredForm.WHOLE if version == 4 else StoredForm.BARE)


def test_tensors_are_read_as_stored_now_and_before() -> None:
    kind = EMPTY.changed(1, [schema("t", Field("at", tensor_field(TensorType.parse("tensor<float>(x[2])"))))], {})
    codec = DocumentCodec(kind.types["t"])
    expected = {"at": parse_tensor("tensor<float>(x[2]):[0.1,-2]")}
    now = b'{"at":{"type":"tensor<float>(x[2])","values":"3DCCCCCDC0000000"}}'
    before = b'{"at":{"type":"tensor<float>(x[2])","values":[0.10000000149011612,-2.0]}}'
    assert codec.encode(expected) == now
    assert [codec.decode(data) for data in (now, before)] == [expected, expected]
    assert [codec.render(data, None, "short") for data in (now, before)] == [before, before]


def test_layouts_come_back_as_they_were() -> None:
    assert Layout.from_bytes(LAYOUT.to_bytes()) == LAYOUT
    again = Layout.from_bytes(LAYOUT.to_bytes()).changed(1, [BOOK, MUSIC], {})
    assert again == LAYOUT
    for variant in range(VARIANTS):  # fields of all types
        other = EMPTY.changed(1, [variant_schema(variant)], {})
        assert Layout.from_bytes(other.to_bytes()) == other
    with pytest.raises(OtherVersion, match="version 9"):
        Layout.from_bytes(LAYOUT.to_bytes().replace(b'"version":3', b'"version":9'))


def test_a_stored_number_that_is_to_be_a_text_has_our_form() -> None:
    """The type of its field has changed, and the body that it came in is gone."""
    found = CODEC.decode_kept(b'{"title":1.5,"lyrics":[0.0,1000.0,7]}')
    assert found == {"title": "1.5", "lyrics": ["0.0", "1000.0", "7"]}
