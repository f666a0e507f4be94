"""Tensors in Vespa's typed binary format, written here byte by byte after value_codec.cpp."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from paperwasp import limits
from paperwasp.document.tensor import Tensor, TensorType
from paperwasp.document.tensor.binary_format import convert, read_tensor, write_tensor
from paperwasp.document.tensor.literal import parse_tensor


def doubles(*values: float) -> bytes:
    return struct.pack(f">{len(values)}d", *values)


FORMS = [
    (b"\x00\x01" + doubles(3), "tensor():{{}:3.0}"),
    (b"\x02\x00" + doubles(3), "tensor():{{}:3.0}"),
    (b"\x02\x01\x01x\x02" + doubles(1, 2), "tensor(x[2]):[1.0,2.0]"),
    (b"\x02\x02\x01x\x01\x01y\x02" + doubles(1, 2), "tensor(x[1],y[2]):[[1.0,2.0]]"),
    (b"\x02\x01\x01x\x80\x00\x00\x02" + doubles(1, 2), "tensor(x[2]):[1.0,2.0]"),
    (b"\x06\x01\x01\x01x\x02" + struct.pack(">2f", 1.5, -2), "tensor<float>(x[2]):[1.5,-2.0]"),
    (b"\x06\x02\x01\x01x\x02\x3f\x80\xc0\x00", "tensor<bfloat16>(x[2]):[1.0,-2.0]"),
    (b"\x06\x03\x01\x01x\x03\x01\xff\x80", "tensor<int8>(x[3]):[1.0,-1.0,-128.0]"),
    (b"\x01\x01\x01x\x02\x01a" + doubles(1) + b"\x02bc" + doubles(2), "tensor(x{}):{{x:a}:1.0, {x:bc}:2.0}"),
    (b"\x01\x01\x01x\x00", "tensor(x{}):{}"),
    (b"\x01\x02\x01x\x01y\x01\x01a\x00" + doubles(1), 'tensor(x{},y{}):{{x:a,y:""}:1.0}'),
    (
        b"\x07\x01\x01\x01k\x01\x01x\x02\x01\x01a" + struct.pack(">2f", 1, 2),
        "tensor<float>(k{},x[2]):{{k:a,x:0}:1.0, {k:a,x:1}:2.0}",
    ),
]


@pytest.mark.parametrize(("content", "shown"), FORMS)
def test_forms(content: bytes, shown: str) -> None:
    found = read_tensor(content)
    assert str(found) == shown
    for end in range(len(content)):
        with pytest.raises(ValueError, match="byte "):
            read_tensor(content[:end])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x08", "byte 0: 8 is no tag of a tensor"),
        (b"\x06\x04", "byte 2: 4 is no type of cells"),
        (b"\x06\x01\x00", "byte 3: a number has cells of double, not float"),
        (b"\x00\x00", "byte 2: a tensor() has one subspace, not 0"),
        (b"\x02\x01\x01x\x00", "byte 5: a dimension has no size"),
        (
            b"\x02\x01\x01x\xff\xff\xff\xff" + bytes(16),
            "byte 8: 16 bytes follow, which are no 1 subspaces of tensor(x[",
        ),
        (b"\x01\x01\x01x\xff\xff\xff\xff" + bytes(16), "byte 8: 16 bytes follow, which are no 2147483647 subspaces"),
        (b"\x02\x7f\x01x\x01", "byte 2: a tensor has at most 64 dimensions"),
        (b"\x02\x01\x03x,y\x01", "byte 6: 'x,y' is no name of a dimension"),
        (b"\x02\x01\x00\x01", "byte 3: '' is no name of a dimension"),
        (b"\x02\x02\x01x\x01\x01x\x01", "the dimensions of a tensor type are ordered by name, each once"),
        (b"\x01\x01\x01x\x01\x01\xff" + doubles(1), "byte 5: a text is not UTF-8"),
        (b"\x01\x01\x01x\x02" + (b"\x01a" + doubles(1)) * 2, "byte 17: the subspace a is there twice"),
        (b"\x02\x00" + doubles(3) + b"x", "byte 10: something follows the tensor"),
    ],
)
def test_content_that_is_wrong(content: bytes, told: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_tensor(content)
    assert str(raised.value).startswith(told)


def test_the_number_of_cells_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TENSOR_CELLS", 1)
    with pytest.raises(ValueError, match="no 1 subspaces"):
        read_tensor(b"\x02\x01\x01x\x02" + doubles(1, 2))


def test_cells_become_those_of_the_type() -> None:
    tensor = parse_tensor("{a:1.7,b:2}", TensorType.parse("tensor(x{})"))
    found = convert(tensor, TensorType.parse("tensor<float>(x{})"))
    assert found == Tensor(TensorType.parse("tensor<float>(x{})"), (("a",), ("b",)), np.array([1.7, 2], np.float32))
    with pytest.raises(ValueError, match=r"expected tensor\(y\{\}\), found tensor\(x\{\}\)"):
        convert(tensor, TensorType.parse("tensor(y{})"))


@pytest.mark.parametrize(
    "text",
    [
        "tensor():{{}:-0.5}",
        "tensor<float>(x[2],y[2]):[[1,2],[3,4]]",
        "tensor<bfloat16>(a{},x[2]):{one:[1,-0.5],'größe, {}':[3,4]}",
        "tensor<int8>(a{},b{}):{{a:x,b:y}:7,{a:z,b:y}:-128}",
        "tensor(a{}):{}",
        f"tensor<int8>(x[300]):[{','.join(['5'] * 300)}]",
    ],
)
def test_what_is_written_is_read_again(text: str) -> None:
    tensor = parse_tensor(text)
    again = read_tensor(write_tensor(tensor))
    assert (again, again.labels) == (tensor, tensor.labels)
