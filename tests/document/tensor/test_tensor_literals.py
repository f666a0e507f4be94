"""Tensors as text: every form of the reference, what is wrong and where, and that values print as themselves."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.document.tensor import Tensor, TensorType, parse_tensor
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.errors import LanguageError, PaperwaspError

GOOD = [
    ("{ {x:foo}:5.0 }", None, "tensor(x{}):{{x:foo}:5.0}"),
    ("{ {x:foo, y:bar}:5.0, {x:foo, y:baz}:7.0 }", None, "tensor(x{},y{}):{{x:foo,y:bar}:5.0, {x:foo,y:baz}:7.0}"),
    ("tensor<float>(x[3]):{ {x:0}:3.0, {x:1}:5.0, {x:2}:7.0 }", None, "tensor<float>(x[3]):[3.0,5.0,7.0]"),
    (
        "tensor(key{}):{ {key:'key.1'}:3.0, {key:'key 2'}:5.0, {key:\"key's\"}:7.0 }",
        None,
        'tensor(key{}):{{key:"key.1"}:3.0, {key:"key 2"}:5.0, {key:"key\'s"}:7.0}',
    ),
    ("tensor<float>(x[3]):[3.0, 5.0, 7.0]", None, "tensor<float>(x[3]):[3.0,5.0,7.0]"),
    ("tensor(x[2],y[3]):[[1, 2, 3], [4, 5, 6]]", None, "tensor(x[2],y[3]):[[1.0,2.0,3.0],[4.0,5.0,6.0]]"),
    ("[1, 2, 3, 4, 5, 6]", "tensor(x[2],y[3])", "tensor(x[2],y[3]):[[1.0,2.0,3.0],[4.0,5.0,6.0]]"),
    ("0B22038405FF", "tensor<int8>(x[2],y[3])", "tensor<int8>(x[2],y[3]):[[11.0,34.0,3.0],[-124.0,5.0,-1.0]]"),
    ("3f800000bf800000", "tensor<float>(x[2])", "tensor<float>(x[2]):[1.0,-1.0]"),
    ("3F80", "tensor<bfloat16>(x[1])", "tensor<bfloat16>(x[1]):[1.0]"),
    ("{ key1:1.0, key2:2.0 }", "tensor<float>(key{})", "tensor<float>(key{}):{{key:key1}:1.0, {key:key2}:2.0}"),
    ("{key1: 01ff}", "tensor<int8>(key{},x[2])", "tensor<int8>(key{},x[2]):{{key:key1,x:0}:1.0, {key:key1,x:1}:-1.0}"),
    ('{"0":"01ff"}', "tensor<int8>(k{},x[2])", "tensor<int8>(k{},x[2]):{{k:0,x:0}:1.0, {k:0,x:1}:-1.0}"),
    ("{a:{b:[7,8]}}", "tensor(k{},l{},x[2])", "tensor(k{},l{},x[2]):{{k:a,l:b,x:0}:7.0, {k:a,l:b,x:1}:8.0}"),
    ("{}", "tensor(x{})", "tensor(x{}):{}"),
    ("{}", "tensor(x[2])", "tensor(x[2]):[0.0,0.0]"),
    ("3", "tensor()", "tensor():{{}:3.0}"),
    ("[nan, -Infinity, 1e3]", "tensor(x[3])", "tensor(x[3]):[nan,-inf,1000.0]"),
    ("tensor<float>(x[2]):[1,2]", "tensor(x[2])", "tensor(x[2]):[1.0,2.0]"),
    # What is written as JSON has numbers, and what nearly is.
    (" [ 1 , -2.5e-3,0 ] ", "tensor(x[3])", "tensor(x[3]):[1.0,-0.0025,0.0]"),
    ("[-0, -0.0, 0]", "tensor(x[3])", "tensor(x[3]):[-0.0,-0.0,0.0]"),
    ("[+1, .5, 5.]", "tensor(x[3])", "tensor(x[3]):[1.0,0.5,5.0]"),
    ("[1e400, -1e400, 1e-400]", "tensor(x[3])", "tensor(x[3]):[inf,-inf,0.0]"),
    ("[12345678901234567890123]", "tensor(x[1])", "tensor(x[1]):[1.2345678901234568e+22]"),
    ("[9007199254740993]", "tensor(x[1])", "tensor(x[1]):[9007199254740992.0]"),
    ("[0.1,]", "tensor(x[1])", "tensor(x[1]):[0.1]"),
]

BAD = [
    ("", None, "line 1, column 1: the value needs a type, as in tensor(x[2]):[1, 2]"),
    ("[1,2]", None, "line 1, column 1: the value needs a type, as in tensor(x[2]):[1, 2]"),
    ("[1,2]", "tensor(x[3])", "line 1, column 1: expected 3 value(s), found 2"),
    ("[]", "tensor(x[3])", "line 1, column 1: expected 3 value(s), found 0"),
    ("[1,true]", "tensor(x[2])", "line 1, column 4: expected a number, found 't'"),
    ('[1,"2"]', "tensor(x[2])", "line 1, column 4: expected a number, found '\"'"),
    ("[1,[2]]", "tensor(x[2])", "line 1, column 4: expected a number, found '['"),
    ("[[1,2]]", "tensor(x[2],y[2])", "line 1, column 1: expected 2 parts in brackets, found 1"),
    ("[[1,2],[3]]", "tensor(x[2],y[2])", "line 1, column 8: expected 2 value(s), found 1"),
    ("[1,\n two]", "tensor(x[2])", "line 2, column 2: expected a number, found 't'"),
    ("[1,2", "tensor(x[2])", "line 1, column 5: expected ',' or ']', found the end"),
    ("[1,2] 3", "tensor(x[2])", "line 1, column 7: expected the end, found '3'"),
    ("{a:1}", "tensor(x[2])", "line 1, column 1: expected '[', found '{'"),
    ("{{y:a}:1}", "tensor(x{})", "line 1, column 2: an address in tensor(x{}) names each of its dimensions"),
    ("{{x:a,x:b}:1}", "tensor(x{})", "line 1, column 2: dimension 'x' is twice in an address"),
    ("{{x:2}:1}", "tensor(x[2])", "line 1, column 2: index 2 is not in dimension x[2]"),
    ("{{x:a}:1}", "tensor(x[2])", "line 1, column 2: 'a' is no index of dimension x[2]"),
    ("tensor(x{}):{}", "tensor(y{})", "line 1, column 1: expected a tensor(y{}), found a tensor(x{})"),
    (
        "tensor<half>(x{}):{}",
        None,
        "line 1, column 1: unknown cell type 'half'; there are double, float, bfloat16, int8",
    ),
    ("[1]", "tensor(x[])", "line 1, column 1: a value of tensor(x[]) needs the sizes of all indexed dimensions"),
    ("[300]", "tensor<int8>(x[1])", "line 1, column 1: a cell of int8 is from -128 to 127"),
    ("0B22", "tensor<int8>(x[3])", "line 1, column 1: expected 3 value(s), found 2"),
    ('{a:"01}', "tensor<int8>(k{},x[1])", "line 1, column 4: expected '[', found '\"'"),
    ("{}", "tensor(x[999999999])", "line 1, column 1: a tensor has at most 67108864 cells"),
]


@pytest.mark.parametrize(("text", "type_", "shown"), GOOD)
def test_literals(text: str, type_: str | None, shown: str) -> None:
    value = parse_tensor(text, TensorType.parse(type_) if type_ else None)
    assert str(value) == shown
    assert parse_tensor(shown) == value


@pytest.mark.parametrize(("text", "type_", "problem"), BAD)
def test_what_is_wrong_is_said_with_its_place(text: str, type_: str | None, problem: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_tensor(text, TensorType.parse(type_) if type_ else None)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("text", "type_"), [("{}", "tensor(x[999999999])"), ("{{k:a,x:1}:1}", "tensor(k{},x[99999999])")]
)
def test_too_many_cells_are_refused_before_they_are_made(text: str, type_: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LanguageError, match="at most 67108864 cells"):
            parse_tensor(text, TensorType.parse(type_))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_cells_are_looked_up_by_labels_and_indexes() -> None:
    value = parse_tensor("tensor<float>(k{},x[2]):{a:[1,2],b:[3,4]}")
    assert value.labels == (("a",), ("b",))
    assert value.cells.shape == (2, 2)
    assert value.cells.dtype == np.float32
    assert value.cell(("b",), 1) == 4.0
    assert value.cell(("c",), 1) is None


def test_bfloat16_keeps_its_upper_bits() -> None:
    value = parse_tensor("tensor<bfloat16>(x[2]):[1.00390625,3.14159]")
    assert value.cells.tolist() == [[1.0, 3.140625]]


CELL_TYPES = {"double": st.floats(), "float": st.floats(width=32), "int8": st.integers(-128, 127)}
LABELS = st.one_of(st.sampled_from(["a", "b c", "1", "é", '"', "\\"]), st.text(min_size=1, max_size=3))


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    cells = draw(st.sampled_from(sorted(CELL_TYPES)))
    dimensions = draw(st.lists(st.sampled_from(["a{}", "b{}", "x[2]", "y[3]"]), unique=True, min_size=1))
    type_ = TensorType.parse(f"tensor<{cells}>({','.join(dimensions)})")
    size = math.prod(type_.shape)
    labels = st.tuples(*[LABELS] * len(type_.mapped))
    rows = draw(st.lists(labels, unique=True, max_size=3)) if type_.mapped else []
    numbers = st.lists(CELL_TYPES[cells], min_size=size, max_size=size)
    if not type_.mapped:
        return tensor_of({"values": words(draw(numbers))}, type_)
    return tensor_of({"blocks": [{"address": address(type_, row), "values": draw(numbers)} for row in rows]}, type_)


def address(type_: TensorType, row: tuple[str, ...]) -> dict[str, str]:
    return {d.name: label for d, label in zip(type_.mapped, row, strict=True)}


def words(values: list[float]) -> list[float | str]:
    return [
        value if math.isfinite(value) else {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan") for value in values
    ]


@given(tensors())
def test_values_print_as_literals_of_themselves(value: Tensor) -> None:
    assert parse_tensor(str(value)) == value


@given(
    st.text(alphabet="tensor<>(x[23]){}:,.-'\"a1fé \n", max_size=40),
    st.sampled_from([None, "tensor()", "tensor(x{})", "tensor<int8>(x[2])", "tensor(x{},y[2])", "tensor(x[2],y[2])"]),
)
def test_any_text_is_read_or_refused_with_its_place(text: str, type_: str | None) -> None:
    try:
        value = parse_tensor(text, TensorType.parse(type_) if type_ else None)
    except LanguageError as error:
        assert error.position is not None
    except PaperwaspError:
        pass
    else:
        assert parse_tensor(str(value)) == value


def test_a_literal_is_read_no_longer_than_there_is_time() -> None:
    end_work_at(1)
    try:
        with pytest.raises(OutOfTime):
            parse_tensor(f"[{','.join(['1'] * 100_000)}]", TensorType.parse("tensor(x[100000])"))
    finally:
        end_work_at(0)
