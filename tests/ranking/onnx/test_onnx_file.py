"""What is read of ONNX files, and that damaged ones give clean errors: cut at every byte, and changed at random."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.onnx.file import OnnxSignature, OnnxValue, read_onnx
from tests.chance import SEED
from tests.ranking.onnx.onnx_bytes import DOUBLE, FLOAT, INT64, STRING, field, onnx_model

MODEL = onnx_model(
    {"input_ids": (INT64, ["batch", "sequence"]), "w": (FLOAT, [3, 4]), "scale": (DOUBLE, [])},
    {"out.0": (FLOAT, ["batch", 384]), "other": (FLOAT, None)},
    weights=["w"],
)


def test_inputs_and_outputs() -> None:
    assert read_onnx("m.onnx", MODEL) == OnnxSignature(
        inputs=(OnnxValue("input_ids", "float", ("batch", "sequence")), OnnxValue("scale", "double", ())),
        outputs=(OnnxValue("out.0", "float", ("batch", 384)), OnnxValue("other", "float", None)),
    )


def test_names_as_expressions_write_them() -> None:
    assert [value.identifier for value in read_onnx("m.onnx", MODEL).outputs] == ["out_0", "other"]


def test_types_hang_on_sizes_that_inputs_give() -> None:
    signature = read_onnx("m.onnx", MODEL)
    sizes = signature.inputs[0].bind(TensorType.parse("tensor<float>(d0[1],d1[128])"))
    assert sizes == {"batch": 1, "sequence": 128}
    assert str(signature.outputs[0].type(sizes)) == "tensor<float>(d0[1],d1[384])"
    assert signature.outputs[0].type({}) is None
    assert signature.outputs[1].type(sizes) is None


@pytest.mark.parametrize(
    ("type_", "problem"),
    [
        ("tensor(x{})", "a dense tensor is expected, and tensor(x{}) has mapped dimensions"),
        ("tensor(x[3])", "2 dimension(s) are expected, and tensor(x[3]) has 1"),
        ("tensor(x[3],y[5])", "size 4 is expected, and tensor(x[3],y[5]) has y[5]"),
    ],
)
def test_inputs_that_do_not_fit(type_: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        OnnxValue("a", "float", (3, 4)).bind(TensorType.parse(type_))
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it has no graph"),
        (b"no such thing", "it is "),
        (b'{"json": 1}', "it is "),
        (field(7, b""), "it has no outputs"),
        (onnx_model({}, {"o": (STRING, [1])}), "'o' holds no numbers"),
        (onnx_model({}, {"": (FLOAT, [1])}), "an input or output has no name"),
        (onnx_model({}, {"o": (FLOAT, [1] * 65)}), "'o' has more than 64 dimensions"),
        (onnx_model({f"i{n}": (FLOAT, [1]) for n in range(1001)}, {"o": (FLOAT, [1])}), "it has more than 1000"),
        (MODEL + MODEL, "it has no graph"),
    ],
)
def test_what_is_no_model(content: bytes, problem: str) -> None:
    with pytest.raises(LanguageError) as raised:
        read_onnx("models/m.onnx", content)
    assert str(raised.value).startswith(f"models/m.onnx is no ONNX model: {problem}")


def test_a_file_cut_at_any_byte_is_read_or_refused() -> None:
    refused = 0
    for size in range(len(MODEL)):
        try:
            read_onnx("m.onnx", MODEL[:size])
        except LanguageError:
            refused += 1
    assert refused > len(MODEL) * 0.8


def test_a_damaged_file_is_read_or_refused() -> None:
    seed = SEED
    chance = random.Random(seed)
    for _ in range(3000):
        damaged = bytearray(MODEL)
        for _ in range(chance.randrange(1, 5)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            read_onnx("m.onnx", bytes(damaged))
        except LanguageError as error:
            assert "m.onnx" in str(error), f"seed {seed}"


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused_as_a_model(content: bytes) -> None:
    for wrapped in (content, field(7, content), field(7, field(12, content))):
        try:
            read_onnx("m.onnx", wrapped)
        except LanguageError as error:
            assert "is no ONNX model" in str(error)
