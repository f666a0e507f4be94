"""The examples of docs/reference/documents.md, run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from paperwasp.document.apply_updates import updated_fields
from paperwasp.document.converters import converter_of
from paperwasp.document.shown import render_of, render_tensors
from paperwasp.document.tensor.json_output import FORMS
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    INT,
    SINGLE_TYPES,
    STRING,
    DataType,
    DocumentType,
    TensorFieldType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    weighted_set_of,
)
from paperwasp.document.update_json import UpdateReader

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "documents.md").read_text()
PERSON = struct_of("person", {"name": STRING, "age": INT})
NAMED = {
    **SINGLE_TYPES,
    **{
        str(kind): kind
        for kind in (
            PERSON, array_of(INT), array_of(STRING), array_of(PERSON), array_of(array_of(INT)), map_of(INT, STRING),
            map_of(STRING, STRING), map_of(STRING, INT), map_of(STRING, PERSON), weighted_set_of(STRING),
            weighted_set_of(INT), reference_to("artist"),
        )
    },
}  # fmt: skip
CODE = re.compile(r"`([^`]*)`")


def rows(heading: str) -> list[list[list[str]]]:
    """The rows of the first table after a heading: of each cell, what is written as code."""
    part = re.split(r"^##+ ", PAGE.split(f"{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[CODE.findall(cell) for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def type_of(name: str) -> DataType:
    return tensor_field(TensorType.parse(name)) if name.startswith("tensor") else NAMED[name]


def stored(value: Any, data_type: DataType) -> bytes:
    render = render_of(data_type)
    return orjson.dumps(render(value) if render else value, option=orjson.OPT_SERIALIZE_NUMPY)


TYPES = rows("## Field types")
UPDATES = [*rows("## Updates"), *rows("### Field paths")]
TENSORS = rows("## Tensors in other forms")


@pytest.mark.parametrize(
    ("name", "taken", "shown"),
    [(row[0][0], *pair) for row in TYPES for pair in zip(row[1], row[2], strict=True)],
)
def test_field_types(name: str, taken: str, shown: str) -> None:
    data_type = type_of(name)
    written = stored(converter_of(data_type)(orjson.loads(taken)), data_type)
    assert orjson.loads(written) == orjson.loads(shown)
    assert stored(converter_of(data_type)(orjson.loads(written)), data_type) == written


@pytest.mark.parametrize(("name", "before", "update", "after"), [[cell[0] for cell in row] for row in UPDATES])
def test_updates(name: str, before: str, update: str, after: str) -> None:
    data_type = type_of(name)
    convert = converter_of(data_type)
    fields = {} if before == "null" else {"f": convert(orjson.loads(before))}
    found = UpdateReader(DocumentType("test", {"f": data_type})).read(orjson.loads(update))
    result = updated_fields(fields, found, {"f": data_type}, frozenset())
    assert result == ({} if after == "null" else {"f": convert(orjson.loads(after))})


@pytest.mark.parametrize(("form", "shown"), [[cell[0] for cell in row] for row in TENSORS])
def test_forms_of_tensors(form: str, shown: str) -> None:
    data_type = type_of("tensor<int8>(x{},y[2])")
    assert isinstance(data_type, TensorFieldType)
    data = stored(converter_of(data_type)({"a": [1, -1]}), data_type)
    found = render_tensors(b'{"f":' + data + b"}", {"f": data_type}, form)
    assert orjson.loads(found) == {"f": orjson.loads(shown)}


def test_the_page_has_all_of_them() -> None:
    assert {row[0][0] for row in TYPES} >= SINGLE_TYPES.keys()
    assert {row[0][0] for row in TENSORS} == set(FORMS)
    assert len(UPDATES) > 30
