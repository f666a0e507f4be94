"""Files of constants: the JSON forms of tensors, compressed ones, and what is wrong with them."""

from __future__ import annotations

import json
from contextlib import suppress

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.tensor import TensorType
from paperwasp.document.tensor.json_format import read_constant, tensor_of
from paperwasp.errors import LanguageError

FORMS = [
    ("tensor(x{})", {"cells": [{"address": {"x": "a"}, "value": 2.0}]}, "tensor(x{}):{{x:a}:2.0}"),
    ("tensor(x{})", {"cells": {"a": 2}}, "tensor(x{}):{{x:a}:2.0}"),
    ("tensor(x{})", {"a": 2}, "tensor(x{}):{{x:a}:2.0}"),
    ("tensor(x{})", [{"address": {"x": 7}, "value": 1}], "tensor(x{}):{{x:7}:1.0}"),
    ("tensor(x[2])", {"type": "tensor<float>(x[2])", "values": [1, 2]}, "tensor(x[2]):[1.0,2.0]"),
    ("tensor(x[2])", [1, 2], "tensor(x[2]):[1.0,2.0]"),
    ("tensor(x[2])", {"cells": [{"address": {"x": "1"}, "value": 2}]}, "tensor(x[2]):[0.0,2.0]"),
    ("tensor(x[2])", ["nan", None], "tensor(x[2]):[nan,nan]"),
    ("tensor(x[2],y[2])", [[1, 2], [3, 4]], "tensor(x[2],y[2]):[[1.0,2.0],[3.0,4.0]]"),
    ("tensor<int8>(x[2])", "01FF", "tensor<int8>(x[2]):[1.0,-1.0]"),
    ("tensor(k{},x[2])", {"blocks": {"a": [1, 2]}}, "tensor(k{},x[2]):{{k:a,x:0}:1.0, {k:a,x:1}:2.0}"),
    (
        "tensor(k{},x[2])",
        {"blocks": [{"address": {"k": "a"}, "values": [1, 2]}]},
        "tensor(k{},x[2]):{{k:a,x:0}:1.0, {k:a,x:1}:2.0}",
    ),
    ("tensor(k{},l{},x[1])", {"a": {"b": [5]}}, "tensor(k{},l{},x[1]):{{k:a,l:b,x:0}:5.0}"),
]

PROBLEMS = [
    ("tensor(x{})", [1], "a tensor(x{}) is an object, not an array"),
    ("tensor(x{})", {"a": "b"}, "a: expected a number, found a string"),
    ("tensor(x{})", {"a": True}, "a: expected a number, found a boolean"),
    ("tensor(x[2])", {"cells": 1}, "cells: expected an array or an object, not a number"),
    ("tensor(x{})", {"cells": [{"address": {"y": "a"}, "value": 1}]}, "cells[0].address: expected x; found y"),
    ("tensor(x{})", {"cells": [1]}, "cells[0]: expected an object with address and value"),
    ("tensor(x{})", {"cells": {}, "more": 1}, "more: expected type, cells, values or blocks"),
    ("tensor(x{})", {"type": "tensor(y{})", "cells": {}}, "type: expected tensor(x{}), found tensor(y{})"),
    ("tensor(x{})", {"values": [1]}, "values: a tensor(x{}) has mapped dimensions: use cells or blocks"),
    ("tensor(x[2])", {"values": [1]}, "values: expected 2 value(s), found 1"),
    ("tensor(x[2])", {"values": [1, "b"]}, "values[1]: expected a number, found a string"),
    ("tensor(x[2])", {"cells": [{"address": {"x": "2"}, "value": 1}]}, "cells[0]: index 2 is not in dimension x[2]"),
    ("tensor(x[2],y[2])", {"values": [[1, 2], [3]]}, "values[1]: expected 2 value(s), found 1"),
    ("tensor(x[2],y[2])", {"values": [[[1]], 2]}, "values[0]: arrays are nested deeper than there are dimensions"),
    ("tensor(k{},x[2])", {"blocks": {"a": [1]}}, "blocks.a: expected 2 value(s), found 1"),
    (
        "tensor(k{},x[2])",
        {"blocks": [{"address": {"k": []}, "values": 1}]},
        "blocks[0].address.k: expected a label, found an array",
    ),
]


@pytest.mark.parametrize(("type_", "value", "shown"), FORMS)
def test_forms(type_: str, value: object, shown: str) -> None:
    assert str(tensor_of(value, TensorType.parse(type_))) == shown


@pytest.mark.parametrize(("type_", "value", "problem"), PROBLEMS)
def test_problems_name_the_path(type_: str, value: object, problem: str) -> None:
    with pytest.raises(LanguageError) as raised:
        tensor_of(value, TensorType.parse(type_))
    assert str(raised.value) in (problem, problem.replace("values[0]: arrays", "values[0][0]: arrays"))


DENSE = TensorType.parse("tensor(x[2])")


def test_files() -> None:
    for path, content in (("c.json", b"[1,2]"), ("c.json.lz4", lz4.frame.compress(b"[1,2]"))):
        assert str(read_constant(path, content, DENSE)) == "tensor(x[2]):[1.0,2.0]"


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        ("c.json", b"[1,", "c.json, line 1, column 4: "),
        ("c.json", b'{"values":[1]}', "c.json: values: expected 2 value(s), found 1"),
        ("c.json", b"[" * 100_000, "c.json, line 1"),
        ("c.tbf", b"", "c.tbf: byte 0: it is cut off"),
        ("c.tbf", b"\x02\x01\x01x\x01" + bytes(8), "c.tbf: expected tensor(x[2]), found tensor(x[1])"),
        ("c.txt", b"", "a file of a constant ends in .json, .json.lz4 or .tbf, and 'c.txt' does not"),
        ("c.json.lz4", b"no such thing", "c.json.lz4 is no LZ4 file"),
        ("c.json.lz4", b"", "c.json.lz4 is cut off"),
        ("c.json.lz4", lz4.frame.compress(b"[1,2]")[:-5], "c.json.lz4 is cut off"),
    ],
)
def test_files_that_are_wrong(path: str, content: bytes, problem: str) -> None:
    with pytest.raises(LanguageError) as raised:
        read_constant(path, content, DENSE)
    assert str(raised.value).startswith(problem)


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.limits.TENSOR_FILE_BYTES", 1 << 20)
    with pytest.raises(LanguageError, match="inflates to more than 1048576 bytes"):
        read_constant("c.json.lz4", lz4.frame.compress(b" " * (1 << 24)), DENSE)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["cells", "values", "blocks", "type", "address", "value", "x", "a"]), inner, max_size=3
        ),
    ),
    max_leaves=12,
)


@given(
    JSON, st.sampled_from(["tensor()", "tensor(x{})", "tensor(x[2])", "tensor(a{},x[2])", "tensor<int8>(x[2],y[1])"])
)
def test_any_json_is_read_or_refused(value: object, type_: str) -> None:
    for given_value in (value, {"cells": value}, {"blocks": [{"address": {"a": "l"}, "values": value}]}):
        with suppress(LanguageError):
            tensor_of(given_value, TensorType.parse(type_))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    compressed = lz4.frame.compress(b"[1,2]")[:20] + content
    for path, tail in (("c.json", content), ("c.json.lz4", compressed), ("c.tbf", content)):
        with suppress(LanguageError):
            read_constant(path, tail, DENSE)


def test_numbers_of_all_kinds() -> None:
    assert tensor_of(json.loads("[1e400, -0.0]"), DENSE).cells.tolist() == [[float("inf"), -0.0]]
    with pytest.raises(LanguageError, match="too large"):
        tensor_of([10**400, "x"], DENSE)
