"""Models that would read other files are found, wherever in them the reference is."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from paperwasp.ranking.onnx.probe import other_file
from tests.ranking.onnx.onnx_models import FLOAT, external, model, product


def outside(location: str = "../w.bin") -> TensorProto:
    tensor = TensorProto(name="W", data_type=FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="offset", value="0")
    tensor.external_data.add(key="location", value=location)
    return tensor


def in_a_graph() -> onnx.GraphProto:
    made = helper.make_tensor_value_info("y", FLOAT, [1])
    return helper.make_graph([helper.make_node("Identity", ["W"], ["y"])], "inner", [], [made], [outside()])


def with_node(node: onnx.NodeProto) -> bytes:
    return model([node], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])})


def in_a_function() -> bytes:
    node = helper.make_node("Constant", [], ["y"], value=outside())
    function = helper.make_function("own", "f", [], ["y"], [node], [helper.make_opsetid("", 17)])
    made = onnx.load_model_from_string(with_node(helper.make_node("f", [], ["y"], domain="own")))
    made.functions.append(function)
    return bytes(made.SerializeToString())


def in_a_sparse_tensor() -> bytes:
    made = onnx.load_model_from_string(product())
    made.graph.sparse_initializer.add(values=outside(), dims=[1])
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    "content",
    [
        with_node(helper.make_node("Constant", [], ["y"], value=outside())),
        with_node(helper.make_node("If", ["x"], ["y"], then_branch=in_a_graph(), else_branch=in_a_graph())),
        in_a_function(),
        in_a_sparse_tensor(),
    ],
    ids=["a constant", "a graph in a node", "a function", "a sparse tensor"],
)
def test_the_file_is_found(content: bytes) -> None:
    assert other_file(content) == "../w.bin"


def test_a_model_that_has_all() -> None:
    assert other_file(external()) == "weights.bin"
    assert other_file(product()) is None
    assert other_file(b"\xff\xff") is None
