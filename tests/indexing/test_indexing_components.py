"""What scripts call: components by their protocols, the hash, and what is told where one is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import INT, DataType
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import Finding, InvalidInput, Overload, PaperwaspError, Timeout, Unavailable
from paperwasp.indexing import check_scripts, processor_of
from paperwasp.indexing.components import BUILT_IN, Components, Context
from paperwasp.schema.model import Schema
from tests.indexing.indexing_scripts import ID, NOW, Lengths, Words, deployment, schema_of
from tests.oracles.siphash import siphash


class Echo:
    """Generates what it is told."""

    def check(self, type: DataType) -> None:
        if type == INT:
            raise ValueError("no numbers")

    def generate(self, prompt: str, type: DataType, context: Context) -> Any:
        return f"{prompt} for {context.destination}"


COMPONENTS = Components({"mine": Lengths()}, BUILT_IN.chunkers, {"echo": Echo()})
VECTOR, VECTORS = "tensor<float>(x[2])", "tensor<float>(p{},x[2])"
TOKENS, WEIGHTS = "tensor<float>(p{},t{},x[2])", "tensor<float>(p{},t{})"
EITHER = "either be a dense 1d tensor, a mapped 1d tensor, a mapped 2d tensor, an array of dense 1d tensors, or a mixed"


def made(schema: Schema, **fields: Any) -> Any:
    processor = processor_of(schema, COMPONENTS, NOW)
    assert processor is not None
    return processor.derived(ID, fields).get("out")


@pytest.mark.parametrize(
    ("script", "cells"),
    [("embed mine", [[4, 0]]), ("embed", [[4, 0]]), ("embed mine query", [[4, 5]]), ("embed mine 'a b'", [[4, 3]])],
)
def test_embed(script: str, cells: list[list[int]]) -> None:
    schema = schema_of(VECTOR, f"input a | {script} | attribute")
    assert not list(check_scripts(schema, COMPONENTS))
    assert made(schema, a="text").cells.tolist() == cells
    assert made(schema) is None


def test_embed_each_text_of_an_array() -> None:
    found = made(schema_of(VECTORS, "input texts | embed mine | attribute"), texts=["a", "bb"])
    assert (found.labels, found.cells.tolist()) == ((("0",), ("1",)), [[1, 0], [2, 0]])


@pytest.mark.parametrize(("outer", "inner"), [("p", "t"), ("t", "p")])
def test_the_argument_names_the_dimension_of_the_elements(outer: str, inner: str) -> None:
    """Of two mapped dimensions, the first or the last by name; a text without words has no cells."""
    components = Components({"words": Words()}, BUILT_IN.chunkers, {})
    for type_, cells in ((TOKENS, [[1, 1], [3, 2], [2, 1]]), (WEIGHTS, [1, 3, 2])):
        schema = schema_of(type_, f"input texts | embed words {outer} | attribute")
        assert not list(check_scripts(schema, components))
        processor = processor_of(schema, components, NOW)
        assert processor is not None
        found = processor.derived(ID, {"texts": ["a cat", "", "it"]})["out"]
        labels = [{outer: place, inner: word} for place, word in (("0", "a"), ("0", "cat"), ("2", "it"))]
        assert found.labels == tuple((each["p"], each["t"]) for each in labels)
        assert found.cells.tolist() == cells
        empty = processor.derived(ID, {"texts": []})["out"]
        assert empty.labels == () and len(empty.cells) == 0


class Bits:
    """Embeds a text as a cell of 1 for each place of its letter "x", of the dimension that is needed."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Nothing."""

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        (size,) = type.shape
        cells = [np.array([[float(text[place : place + 1] == "x") for place in range(size)]]) for text in texts]
        return [Tensor(type, ((),), each) for each in cells]


@pytest.mark.parametrize("packing", ["pack_bits", "binarize | pack_bits", "binarize 0.5 | pack_bits"])
def test_embed_into_bits(packing: str) -> None:
    """What is packed is embedded with eight times the cells. Vespa: PackBitsExpression.setOutputType."""
    components = Components({"bits": Bits()}, BUILT_IN.chunkers, {})
    for type_, script in (("tensor<int8>(x[2])", "input a"), ("tensor<int8>(p{},x[2])", "input a | chunk sentence")):
        schema = schema_of(type_, f"{script} | embed bits | {packing} | attribute | index")
        assert not list(check_scripts(schema, components))
        processor = processor_of(schema, components, NOW)
        assert processor is not None
        assert processor.derived(ID, {"a": "x------xx"})["out"].cells.tolist() == [[-127, -128]]


def test_chunk_then_embed() -> None:
    found = made(schema_of(VECTORS, "input a | chunk sentence | embed mine | attribute"), a="One. Two!")
    assert found.cells.tolist() == [[4, 0], [5, 0]]


def test_generate() -> None:
    assert made(schema_of("string", "input a | generate echo | summary"), a="x") == "x for music.out"


def test_what_a_component_refuses_is_told() -> None:
    with pytest.raises(InvalidInput, match="Could not index field 'out': a bad text"):
        made(schema_of(VECTOR, "input a | embed mine | attribute"), a="bad")


@pytest.mark.parametrize("kind", [InvalidInput, Overload, Timeout, Unavailable])
def test_the_field_is_told_of_what_happens_elsewhere(
    kind: type[PaperwaspError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def generate(self: Echo, prompt: str, type: DataType, context: Context) -> Any:
        raise kind("it is down")

    monkeypatch.setattr(Echo, "generate", generate)
    with pytest.raises(kind) as raised:
        made(schema_of("string", "input a | generate echo | summary"), a="x")
    assert type(raised.value) is kind
    assert raised.value.message == f"In document '{ID.text}': Could not index field 'out': it is down"


@pytest.mark.parametrize(
    ("type_", "script", "message"),
    [
        (
            VECTOR,
            "input a | embed e5",
            "The 'embed' expression for field 'out' refers to an embedder with id 'e5'. No component with that id is",
        ),
        (VECTOR, "input a | embed", "For expression 'embed': No embedder has been configured"),
        ("string", "input a | generate g", "For expression 'generate g': No generator has been configured"),
    ],
)
def test_a_component_that_is_not_there_is_told_at_the_deployment(type_: str, script: str, message: str) -> None:
    assert deployment(type_, f"{script} | attribute").removeprefix("! ").startswith(message)


@pytest.mark.parametrize(
    ("type_", "script", "message"),
    [
        (VECTOR, "input a | embed other", "refers to an embedder with id 'other'. No component with that id is"),
        ("string", "input a | embed mine", "embed makes a tensor, but type string is needed"),
        (VECTOR, "input n | embed mine", "This requires either a string or array<string> input type, but got int"),
        ("int", "input a | generate echo", "For expression 'generate echo': no numbers"),
        (
            VECTOR,
            "input texts | embed mine",
            "Input is an array, so output must be a rank 2 or 3 tensor with at least one mapped dimension, but got "
            "tensor<float>(x[2])",
        ),
        ("tensor<float>(p{})", "input texts | embed mine", "Input is an array, so output must be a rank 2 or 3 tensor"),
        (
            TOKENS,
            "input a | embed mine p",
            "Input is a string, so output must be a rank 1 tensor, or a rank 2 tensor with one mapped dimension, but "
            "got tensor<float>(p{},t{},x[2])",
        ),
        (
            TOKENS,
            "input texts | embed mine",
            "When the embedding target field is a 3d tensor the name of the tensor dimension that corresponds to the "
            "input array elements must be given as a second argument to embed, e.g: ... | embed colbert paragraph",
        ),
        (TOKENS, "input texts | embed mine p t", "When the embedding target field is a 3d tensor the name of"),
        (
            TOKENS,
            "input texts | embed mine x",
            "The dimension 'x' given to embed is not a sparse dimension of the target type tensor<float>(p{},t{},x[2])",
        ),
        (
            WEIGHTS,
            "input texts | embed mine",
            "When the embedding target field is a 2d mapped tensor the name of the tensor dimension that corresponds "
            "to the input array elements must be given as a second argument to embed, e.g: ... | embed splade",
        ),
        (WEIGHTS, "input texts | embed mine q", "The dimension 'q' given to embed is not a sparse dimension of the"),
        *(
            (f"tensor<float>({dimensions})", "input texts | embed mine p", f"The embedding target field must {EITHER}")
            for dimensions in ("x[2],y[2]", "p{},x[2],y[2]", "p{},q{},r{}", "p{},q{},r{},x[2]")
        ),
    ],
)
def test_what_does_not_fit_is_told_at_the_deployment(type_: str, script: str, message: str) -> None:
    (finding,) = check_scripts(schema_of(type_, f"{script} | attribute"), COMPONENTS)
    assert message in finding.message and finding.level == "ERROR"
    assert type(finding) is Finding


@pytest.mark.parametrize("is_update", [False, True])
def test_a_component_is_given_the_time_that_is_left(is_update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    left = iter([2.5, 0.0])

    def generate(self: Echo, prompt: str, type: DataType, context: Context) -> Any:
        given.append(context.timeout_seconds)
        return "made"

    monkeypatch.setattr(Echo, "generate", generate)
    processor = processor_of(schema_of("string", "input a | generate echo | summary"), COMPONENTS, NOW)
    assert processor is not None

    def run() -> object:
        if is_update:
            return processor.update(ID, (FieldUpdate("a", Assign("x")),), left.__next__)
        return processor.put(ID, {"a": "x"}, left.__next__)

    run()
    with pytest.raises(Timeout, match="Could not index field 'out': the operation's time is over"):
        run()
    assert given == [2.5]


def test_siphash() -> None:
    """The vectors of the reference implementation: the bytes 0, 1, … and so many of them."""
    expected = {0: 0x726FDB47DD0E0E31, 1: 0x74F839C593DC67FD, 7: 0xAB0200F58B01D137, 8: 0x93F5F5799A932462}
    expected[15] = 0xA129CA6149BE45E5
    assert {length: siphash(bytes(range(length))) for length in expected} == expected
    assert {length: _core.siphash(bytes(range(length))) for length in expected} == expected


@given(st.binary(max_size=300))
def test_siphash_is_that_of_its_twin(data: bytes) -> None:
    assert _core.siphash(data) == siphash(data)
