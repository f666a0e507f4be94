"""ONNX models that run: in batches where that gives the same, shared, and tried in a process of their own."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import InternalError, LanguageError
from paperwasp.ranking.model_compiler import OnnxRun
from paperwasp.ranking.onnx import probe as onnx_probe
from paperwasp.ranking.onnx.file import read_onnx
from paperwasp.ranking.onnx.session import OnnxSession, SessionSettings, session_of
from tests.ranking.onnx.onnx_models import DOUBLE, embedding, external, product, repeated, share

WEIGHTS = np.arange(12, dtype=np.float64).reshape(4, 3)


class Counted:
    """A session that notes how many hits each run has."""

    def __init__(self, content: bytes) -> None:
        self.session = session_of("m.onnx", content, SessionSettings())
        self.runs: list[int] = []

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        self.runs.append(len(next(iter(inputs.values()))))
        return self.session.run(inputs)

    def takes_batches(self, shapes: Any) -> bool:
        return self.session.takes_batches(shapes)


def runner(content: bytes, type_: str) -> tuple[OnnxRun, Counted]:
    counted = Counted(content)
    types = {"y": TensorType.parse(type_)}
    return OnnxRun("m", read_onnx("m.onnx", content), types, lambda: counted), counted  # type: ignore[arg-type, return-value]


def rows(values: NDArray[Any], cells: str = "float") -> TensorBatch:
    type_ = TensorType.parse(f"tensor<{cells}>(d0[1],d1[{values.shape[1]}])")
    return TensorBatch.dense(type_, values[:, None, :])


def test_hits_are_one_run_where_the_first_dimension_is_free() -> None:
    run, counted = runner(product(), "tensor<float>(d0[1],d1[3])")
    values = np.random.default_rng(1).normal(size=(10, 4)).astype(np.float32)
    found = run.outputs([rows(values)])["y"]
    assert found.cells[:, 0, :] == pytest.approx(values @ WEIGHTS, rel=1e-5)
    assert counted.runs == [10]


@pytest.mark.parametrize(("optimizes", "level"), [(True, "ORT_ENABLE_ALL"), (False, "ORT_DISABLE_ALL")])
def test_a_model_may_be_left_as_it_is(optimizes: bool, level: str) -> None:
    """`optimize-model: false` of Vespa's schema language."""
    session = OnnxSession(product(), SessionSettings(optimizes=optimizes))
    assert session._session.get_session_options().graph_optimization_level.name == level


def test_many_hits_are_several_runs() -> None:
    run, counted = runner(product(), "tensor<float>(d0[1],d1[3])")
    hits = limits.ONNX_BATCH_HITS * 2 + 5
    values = np.arange(hits * 4, dtype=np.float32).reshape(hits, 4) % 7
    assert run.outputs([rows(values)])["y"].cells[:, 0, :] == pytest.approx(values @ WEIGHTS)
    assert counted.runs == [limits.ONNX_BATCH_HITS, limits.ONNX_BATCH_HITS, 5]


def test_hits_are_runs_of_their_own_where_the_first_dimension_is_one() -> None:
    run, counted = runner(product(batch=1), "tensor<float>(d0[1],d1[3])")
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert run.outputs([rows(values)])["y"].cells[:, 0, :] == pytest.approx(values @ WEIGHTS)
    assert counted.runs == [1, 1, 1]


def test_hits_are_runs_of_their_own_where_rows_hang_on_each_other() -> None:
    run, counted = runner(share(), "tensor<float>(d0[1],d1[2])")
    assert run.outputs([rows(np.array([[1, 2], [3, 4]]))])["y"].cells.tolist() == [[[1, 1]], [[1, 1]]]
    assert counted.runs == [1, 1]


def test_a_first_dimension_that_is_no_batch_is_left_whole() -> None:
    run, _ = runner(share(), "tensor<float>(d0[2],d1[2])")
    values = np.zeros((3, 2, 2), np.float32)
    batch = TensorBatch.dense(TensorType.parse("tensor<float>(d0[2],d1[2])"), values)
    assert run.outputs([batch])["y"].cells.tolist() == np.full((3, 2, 2), 0.5).tolist()


def test_what_is_the_same_for_all_hits_is_run_once() -> None:
    run, counted = runner(product(), "tensor<float>(d0[1],d1[3])")
    single = TensorBatch.dense(TensorType.parse("tensor<float>(d0[1],d1[4])"), np.ones((1, 1, 4), np.float32), True)
    found = run.outputs([single])["y"]
    assert (found.is_single, found.cells.tolist(), counted.runs) == (True, [[[18, 22, 26]]], [1])


@pytest.mark.parametrize("cells", ["double", "float", "int8", "bfloat16"])
def test_cells_become_those_of_the_model(cells: str) -> None:
    run, _ = runner(product(element=DOUBLE), "tensor(d0[1],d1[3])")
    numbers = [[1, 2, 3, 4], [0, 0, 0, 1]]
    values = np.array(numbers, np.int8) if cells == "int8" else np.array(numbers, np.float32)
    found = run.outputs([rows(values, cells)])["y"].cells
    assert (found.dtype, found[:, 0, :].tolist()) == (np.dtype(np.float64), (values @ WEIGHTS).tolist())


def test_a_hit_that_the_model_fails_for_has_zeros(caplog: pytest.LogCaptureFixture) -> None:
    run, counted = runner(embedding(), "tensor<float>(d0[1],d1[2])")
    found = run.outputs([rows(np.array([[1, 2], [3, 99], [4, 0.9]]))])["y"]
    assert found.cells[:, 0, :].tolist() == [[3, 5], [0, 0], [4, 16]]
    assert counted.runs == [3, 1, 1, 1]
    assert "onnx model m failed for a hit, which has zeros" in caplog.text


def test_sessions_are_shared_and_released() -> None:
    content = product()
    first = session_of("a.onnx", content, SessionSettings())
    assert session_of("b.onnx", content, SessionSettings()) is first
    assert session_of("a.onnx", content, SessionSettings(intraop_threads=2)) is not first
    assert session_of("a.onnx", content, SessionSettings(2, 2, True, gpu_device=0)) is not first
    watched = weakref.ref(first)
    del first
    gc.collect()
    assert watched() is None


def test_a_broken_model_is_told_by_its_path() -> None:
    with pytest.raises(InternalError, match=r"models/x\.onnx cannot be loaded: "):
        session_of("models/x.onnx", product()[:60], SessionSettings())


# Tried in a process of their own


def test_a_probe_tells_the_sizes_of_the_outputs() -> None:
    assert onnx_probe.probe("m.onnx", product(outputs=None), {"x": (1, 4)}) == {"y": [1, 3]}


@pytest.mark.parametrize(
    ("content", "shapes", "told"),
    [
        (product()[:60], {"x": (1, 4)}, r"m\.onnx does not run: .*"),
        (product(), {"x": (1, 5)}, r"m\.onnx does not run: .*invalid dimensions.*"),
        (external(), {"x": (1, 4)}, r"m\.onnx does not run: .*weights\.bin.*"),
        (b"", {}, r"m\.onnx does not run: .*"),
    ],
)
def test_a_model_that_does_not_run_is_refused(content: bytes, shapes: Any, told: str) -> None:
    with pytest.raises(LanguageError, match=told):
        onnx_probe.probe("m.onnx", content, shapes)


def test_a_model_that_ends_its_process_ends_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    child = tmp_path / "child.py"
    child.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setattr(onnx_probe, "_CHILD", child)
    with pytest.raises(LanguageError, match=r"m\.onnx: loading it or one run ended the process by signal 9"):
        onnx_probe.probe("m.onnx", b"other", {})


@pytest.fixture
def bounded() -> Iterator[None]:
    """Takes the bound of this thread away again."""
    yield
    end_work_at(0)


def test_a_run_ends_when_the_time_of_its_thread_is_over(bounded: None) -> None:
    """The model turns as often as the sum of its input says. Threads have times of their own."""
    session = session_of("m.onnx", repeated(), SessionSettings())
    few, many = np.full((1, 4), 5.0), np.full((1, 4), 1e17)

    def run(milliseconds: int) -> float:
        begun = time.monotonic_ns()
        end_work_at(begun + milliseconds * 1_000_000)
        try:
            session.run({"x": many})
        except OutOfTime:
            return (time.monotonic_ns() - begun) / 1_000_000
        finally:
            end_work_at(0)
        raise AssertionError("the run came to an end by itself")

    with ThreadPoolExecutor(3) as pool:
        for asked, taken in zip((50, 300, 100), pool.map(run, (50, 300, 100)), strict=True):
            assert asked <= taken < asked + 20_000
    end_work_at(time.monotonic_ns() + 60_000_000_000)
    assert session.run({"x": few})["y"].tolist() == [[5.0] * 4]
    end_work_at(0)
    assert session.run({"x": few})["y"].tolist() == [[5.0] * 4]
