"""ONNX models for tests that run, made node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

FLOAT, INT64, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE
Shape = Sequence[int | str | None]


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[int, Shape]],
    outputs: Mapping[str, tuple[int, Shape]],
    weights: Mapping[str, NDArray[np.generic]] | None = None,
) -> bytes:
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
        [numpy_helper.from_array(values, name) for name, values in (weights or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = made.SerializeToString()
    return content


def product(batch: int | str = "batch", outputs: int | str | None = 3, element: int = FLOAT) -> bytes:
    """y = x · W, where x has four numbers, and W counts from 0: columns 0,3,6,9; 1,4,7,10; 2,5,8,11."""
    weights = np.arange(12).reshape(4, 3).astype(helper.tensor_dtype_to_np_dtype(element))
    return model(
        [helper.make_node("MatMul", ["x", "W"], ["y"])],
        {"x": (element, [batch, 4])},
        {"y": (element, [batch, outputs])},
        {"W": weights},
    )


def share() -> bytes:
    """y = x / sum of x over the first dimension: rows hang on each other."""
    return model(
        [helper.make_node("Softmax", ["x"], ["y"], axis=0)], {"x": (FLOAT, ["n", 2])}, {"y": (FLOAT, ["n", 2])}
    )


def embedding(words: int = 10) -> bytes:
    """y = the row of a table, word n being n and n squared, summed over the tokens: fails for what is no word."""
    table = np.stack([np.arange(words), np.arange(words) ** 2], 1).astype(np.float32)
    return model(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"]),
            helper.make_node("ReduceSum", ["rows", "axes"], ["y"], keepdims=0),
        ],
        {"ids": (INT64, ["batch", "tokens"])},
        {"y": (FLOAT, ["batch", 2])},
        {"table": table, "axes": np.array([1], np.int64)},
    )


def external() -> bytes:
    """The weights are in another file."""
    weights = TensorProto(name="W", data_type=FLOAT, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["y"])],
        "test",
        [helper.make_tensor_value_info("x", FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", FLOAT, [1, 3])],
        [weights],
    )
    content: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return content


def loop() -> NodeProto:
    """y = x, after `count` turns that change nothing, if `yes`."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Identity", ["value"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", FLOAT, [1, 4]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, [1, 4]),
        ],
    )
    return helper.make_node("Loop", ["count", "yes", "x"], ["y"], body=body)


def repeated() -> bytes:
    """y = x, after as many turns of a loop as the numbers of x are together."""
    return model(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
            helper.make_node("Cast", ["sum"], ["count"], to=INT64),
            loop(),
        ],
        {"x": (FLOAT, [1, 4])},
        {"y": (FLOAT, [1, 4])},
        {"yes": np.array(True)},
    )
