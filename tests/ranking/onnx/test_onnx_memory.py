"""ONNX models that take much memory while they run: refused at a bound, which holds for the process, and given back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from onnx import helper

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.ranking.onnx import memory as onnx_memory
from paperwasp.ranking.onnx import probe as onnx_probe
from tests.ranking.onnx.onnx_models import FLOAT, model

MIB = 1 << 20
_PROCESS = """
import json, sys
import numpy as np
from paperwasp import limits
limits.ONNX_MEMORY_BYTES, limits.ONNX_MEMORY_KEPT_SECONDS = 128 << 20, float(sys.argv[1])
from paperwasp.errors import TooLarge
from paperwasp.ranking.onnx.file import read_onnx
from paperwasp.ranking.model_compiler import OnnxRun
from paperwasp.ranking.onnx.session import RunFailed, SessionSettings, session_of
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType

def resident(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10

content = sys.stdin.buffer.read()
session = session_of("m.onnx", content, SessionSettings())
run = OnnxRun("m", read_onnx("m.onnx", content), {"y": TensorType.parse("tensor<float>(d0[1])")}, lambda: session)
session.run({"x": np.ones(1)})
before = resident("VmRSS")
found = []
for cells in (20e6, 200e6, 2e11, 2e18, 20e6, 1e6):
    try:
        found.append(run.outputs([TensorBatch.dense(TensorType.parse("tensor<float>(d0[1])"), np.full((1, 1), cells),
                                                    True)])["y"].cells.ravel().tolist())
    except TooLarge as error:
        found.append(error.message)
print(json.dumps([found, resident("VmHWM") - before, resident("VmRSS") - before]))
"""
"""A process of its own: the bound is set with the first model that is loaded."""


def _ones(beside: int = 0) -> bytes:
    """A model that makes a tensor of ones, as long as its input says, and returns its sum."""
    nodes = [
        helper.make_node("Cast", ["x"], ["said"], to=7),
        helper.make_node("Add", ["said", "beside"], ["n"]),
        helper.make_node("Expand", ["one", "n"], ["ones"]),
        helper.make_node("ReduceSum", ["ones"], ["y"], keepdims=1),
    ]
    weights: dict[str, Any] = {"one": np.ones(1, np.float32), "beside": np.array([beside], np.int64)}
    return model(nodes, {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])}, weights)


def _in_a_process(kept_seconds: float) -> Any:
    command = [sys.executable, "-c", _PROCESS, str(kept_seconds)]
    done = subprocess.run(command, input=_ones(), capture_output=True, check=True)
    return json.loads(done.stdout)


def test_a_run_that_takes_too_much_is_an_error_and_the_process_goes_on() -> None:
    """80 MB are within the bound; 800 MB, 800 GB and more are not, and nothing of them is allocated."""
    found, most_bytes, kept_bytes = _in_a_process(0.0)
    (small, *large, small_again, smaller) = found
    assert (small, small_again, smaller) == ([20e6], [20e6], [1e6])
    assert len(large) == 3
    for message in large:
        assert message.startswith("onnx model m: it takes more memory than the 134,217,728 bytes that all models")
    assert 70 * MIB < most_bytes < 200 * MIB
    assert kept_bytes < 40 * MIB


def test_what_a_run_took_is_kept_for_a_moment() -> None:
    _, _, kept_bytes = _in_a_process(3600.0)
    assert kept_bytes > 70 * MIB


def test_a_deployment_refuses_what_would_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    content = _ones(20_000_000)
    monkeypatch.setattr(limits, "ONNX_MEMORY_BYTES", 64 * MIB)
    with pytest.raises(LanguageError, match=r"^m\.onnx does not run: it takes too much memory$"):
        onnx_probe.probe("m.onnx", content, {"x": [1]})
    monkeypatch.undo()
    assert onnx_probe.probe("m.onnx", content, {"x": [1]})["y"] == [1]


def test_the_bound_is_a_share_of_a_small_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    monkeypatch.setattr(onnx_memory, "_CONTROL_GROUP", tmp_path / "memory.max")
    assert onnx_memory.model_memory_bytes() == 1 << 29
    (tmp_path / "memory.max").write_text("max\n")
    assert onnx_memory.model_memory_bytes() > 1 << 29
