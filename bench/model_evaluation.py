"""A small network evaluated over HTTP, beside onnxruntime called in this process with the same numbers.

One connection, one request after the other, by the clock: what the target is about is the time beyond the run itself.
"""

from __future__ import annotations

import io
import json
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from bench.connection import Connection
from bench.deploy import config_port, deploy_zip
from bench.report import Report, Row
from bench.service import data_directory, paperwasp

MOST_BEYOND_US: Final = 1000
INPUTS: Final = 32
HIDDEN: Final = 64
OUTPUTS: Final = 8
_SERVICES: Final = """<services version="1.0">
    <container id="default" version="1.0"><model-evaluation/></container>
</services>"""

Floats = NDArray[np.float32]
_Given = TypeVar("_Given")


@dataclass(frozen=True)
class Options:
    requests_count: int = 3000
    rounds: int = 3


def run(report: Report, options: Options) -> None:
    """A row for the median of all requests but the first quarter. Errors: AssertionError where an answer is wrong."""
    import onnxruntime

    model = network()
    alone = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = np.random.default_rng(3).normal(size=(options.requests_count, 1, INPUTS)).astype(np.float32)
    with data_directory() as data, paperwasp(data, None) as server:
        deploy_zip(config_port(server), _package(model))
        connection = Connection(server.port)
        paths = [_path(row) for row in rows]
        for row, path in zip(rows[:100], paths, strict=False):
            found, expected = json.loads(connection.answer(path)), alone.run(None, {"x": row})[0]
            if not np.allclose(found, expected, rtol=1e-5, atol=1e-6):
                raise AssertionError(f"the network gives {expected.tolist()}, and the service answers {found}")
        ours = min(_median_us(connection.answer, paths) for _ in range(options.rounds))
        before = server.cpu_seconds()
        _median_us(connection.answer, paths)
        cpu_us = (server.cpu_seconds() - before) / len(paths) * 1e6
        theirs = min(_median_us(lambda row: alone.run(None, {"x": row}), list(rows)) for _ in range(options.rounds))
        connection.close()
    beyond = ours - theirs
    report.add(
        Row(
            f"network of {INPUTS}, {HIDDEN} and {OUTPUTS} numbers over HTTP: p50 beyond onnxruntime's",
            f"{beyond:.0f} µs of {ours:.0f}",
            f"onnxruntime {theirs:.0f} µs",
            target=f"≤ {MOST_BEYOND_US} µs",
            met=beyond <= MOST_BEYOND_US,
        )
    )
    report.add(Row("… server CPU", f"{cpu_us:.0f} µs"))


def network() -> bytes:
    """Two dense layers with relu between them, whose first dimension is open."""
    random = np.random.default_rng(4)
    weights = {
        "a": random.normal(size=(INPUTS, HIDDEN)).astype(np.float32),
        "b": random.normal(size=(HIDDEN, OUTPUTS)).astype(np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "a"], ["wide"]),
            helper.make_node("Relu", ["wide"], ["positive"]),
            helper.make_node("MatMul", ["positive", "b"], ["y"]),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", OUTPUTS])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = made.SerializeToString()
    return content


def _package(model: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("services.xml", _SERVICES)
        archive.writestr("models/small.onnx", model)
    return packed.getvalue()


def _path(row: Floats) -> str:
    given = urllib.parse.urlencode({"x": json.dumps(row.tolist()), "format.tensors": "short-value"})
    return f"/model-evaluation/v1/small/y/eval?{given}"


def _median_us(work: Callable[[_Given], object], given: Sequence[_Given]) -> float:
    times = []
    for each in given:
        start = time.perf_counter_ns()
        work(each)
        times.append((time.perf_counter_ns() - start) / 1e3)
    return sorted(times[len(times) // 4 :])[len(times) * 3 // 8]
