"""Models in ranking beside what runs them elsewhere: a forest beside lightgbm, a transformer beside onnxruntime alone.

Both are measured through the search of a content node, without what matching costs. One thread each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.ranking_node import beyond_matching, least_seconds, node_of, ratio_row
from bench.report import Report
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.schema.files import PackageFiles
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.query import Match, Query, Rank

MOST_FOREST_RATIO: Final = 1.0
MOST_ONNX_RATIO: Final = 1.1
FEATURES: Final = 30
TREES: Final = 500
LEAVES: Final = 31
TRAINED_ROWS: Final = 20_000
FOREST_DOCUMENTS: Final = 10_000
TOKENS: Final = 32
HIDDEN: Final = 384
LAYERS: Final = 6
HEADS: Final = 12
WORDS: Final = 1000
RERANKED: Final = 100

FIELDS: Final = " ".join(f"field f{n} type double {{ indexing: attribute }}" for n in range(FEATURES))
FOREST_SCHEMA: Final = f"""
schema row {{ document row {{ {FIELDS} }}
    rank-profile nothing {{ first-phase {{ expression: 0 }} }}
    rank-profile forest {{ first-phase {{ expression: lightgbm("m.json") }} }} }}
"""
ONNX_SCHEMA: Final = f"""
schema row {{ document row {{ field tokens type tensor<float>(d0[{TOKENS - 2}]) {{ indexing: attribute }} }}
    rank-profile nothing {{ first-phase {{ expression: 0 }} second-phase {{ expression: 1
        rerank-count: {RERANKED} }} }}
    rank-profile network {{
        onnx-model m {{ file: models/m.onnx }}
        function ids() {{ expression: tokenInputIds({TOKENS}, attribute(tokens)) }}
        first-phase {{ expression: 0 }}
        second-phase {{ expression: sum(onnx(m))
            rerank-count: {RERANKED} }} }} }}
"""


def forest(report: Report, repeats: int) -> None:
    """A row for 500 trees of 31 leaves over 10,000 documents."""
    import lightgbm

    random = np.random.default_rng(1)
    names = [f"attribute(f{n})" for n in range(FEATURES)]
    rows = random.normal(size=(TRAINED_ROWS, FEATURES))
    labels = rows[:, 0] * rows[:, 1] + np.sin(3 * rows[:, 2]) + rows[:, 3] + random.normal(size=TRAINED_ROWS) / 3
    trained = lightgbm.train(
        {"num_leaves": LEAVES, "verbose": -1, "min_data_in_leaf": 5},
        lightgbm.Dataset(rows, labels, feature_name=names, params={"verbose": -1}),
        TREES,
    )
    asked = random.normal(size=(FOREST_DOCUMENTS, FEATURES))

    def fields(number: int) -> Mapping[str, Any]:
        return {f"f{place}": float(value) for place, value in enumerate(asked[number])}

    files = PackageFiles({"models/m.json": json.dumps(trained.dump_model()).encode()})
    with node_of(FOREST_SCHEMA, fields, FOREST_DOCUMENTS, files) as node:
        ours = beyond_matching(node, Query(Match(TrueItem()), Rank("forest")), repeats)
    theirs = least_seconds(lambda: trained.predict(asked, num_threads=1), repeats)
    work = f"{TREES} trees of {LEAVES} leaves, {FOREST_DOCUMENTS:,} documents"
    report.add(ratio_row(work, ours, theirs, MOST_FOREST_RATIO, "lightgbm"))


def network(report: Report, repeats: int) -> None:
    """A row for a transformer over the 100 best documents."""
    import onnxruntime

    content = transformer()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    tokens = np.random.default_rng(2).integers(1, WORDS, (RERANKED, TOKENS - 2))
    ids = np.concatenate([np.full((RERANKED, 1), 101), tokens, np.full((RERANKED, 1), 102)], 1)

    type_ = TensorType.parse(f"tensor<float>(d0[{TOKENS - 2}])")

    def fields(number: int) -> Mapping[str, Any]:
        return {"tokens": Tensor(type_, ((),), tokens[number : number + 1].astype(np.float32))}

    with node_of(ONNX_SCHEMA, fields, RERANKED, PackageFiles({"models/m.onnx": content})) as node:
        ours = beyond_matching(node, Query(Match(TrueItem()), Rank("network")), repeats)
    theirs = least_seconds(lambda: session.run(None, {"ids": ids}), repeats)
    work = f"transformer of {LAYERS} layers, {HIDDEN} hidden, {TOKENS} tokens, {RERANKED} documents"
    report.add(ratio_row(work, ours, theirs, MOST_ONNX_RATIO, "onnxruntime"))


def transformer() -> bytes:
    """An encoder with random weights, whose output is a number for each text."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(3)
    nodes: list[Any] = []
    weights: dict[str, NDArray[Any]] = {}

    def weight(*shape: int) -> str:
        return constant((random.normal(size=shape) / 20).astype(np.float32))

    def constant(values: NDArray[Any]) -> str:
        name = f"w{len(weights)}"
        weights[name] = values
        return name

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"n{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def dense(x: str, wide: int, out: int) -> str:
        return op("Add", op("MatMul", x, weight(wide, out)), weight(out))

    def normed(x: str) -> str:
        return op("LayerNormalization", x, weight(HIDDEN), weight(HIDDEN))

    parted = constant(np.array([0, TOKENS, HEADS, HIDDEN // HEADS]))
    joined = constant(np.array([0, TOKENS, HIDDEN]))
    scale = constant(np.array((HIDDEN // HEADS) ** -0.5, np.float32))

    def heads(x: str, order: list[int]) -> str:
        return op("Transpose", op("Reshape", dense(x, HIDDEN, HIDDEN), parted), perm=order)

    def attention(x: str) -> str:
        likeness = op("MatMul", heads(x, [0, 2, 1, 3]), heads(x, [0, 2, 3, 1]))
        mixed = op("MatMul", op("Softmax", op("Mul", likeness, scale), axis=-1), heads(x, [0, 2, 1, 3]))
        return dense(op("Reshape", op("Transpose", mixed, perm=[0, 2, 1, 3]), joined), HIDDEN, HIDDEN)

    x = op("Gather", weight(WORDS, HIDDEN), "ids")
    for _ in range(LAYERS):
        x = normed(op("Add", x, attention(x)))
        x = normed(op("Add", x, dense(op("Relu", dense(x, HIDDEN, 4 * HIDDEN)), 4 * HIDDEN, HIDDEN)))
    first = op("Gather", x, constant(np.array(0)), axis=1)
    nodes.append(helper.make_node("Identity", [dense(first, HIDDEN, 1)], ["score"]))
    graph = helper.make_graph(
        nodes,
        "transformer",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", TOKENS])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["batch", 1])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    content: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return content
