"""ONNX models that run: one session for each model and its settings, shared by all that rank with it.

A session is made when the first hit is to be ranked, and released with the profiles that use it. Only what a deployment
has accepted is run here: `onnx_file` reads what is in a file without the runtime, and `onnx_probe` tries it elsewhere.

Vespa: https://docs.vespa.ai/en/ranking/onnx.html
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core.clock import OutOfTime, work_ends_at
from paperwasp.errors import InternalError
from paperwasp.ranking.onnx.memory import ARENA, is_about_memory, model_memory_bytes

Arrays = Mapping[str, NDArray[Any]]

DTYPES: Final[Mapping[str, type[np.generic]]] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}
"""Element types of the runtime that inputs may have."""
_SILENT: Final = 4
"""The log level of the runtime at which it logs only fatal errors: others are raised as exceptions."""
_CUDA: Final = "CUDAExecutionProvider"
_NEAR: Final = 1e-4
"""How far the values of a row may be apart when it is computed together with others and alone."""


class RunFailed(InternalError):
    """The model did not work with these inputs."""


class TooMuchMemory(RunFailed):
    """The run would take more memory than models may."""


class SessionSettings(Struct, frozen=True):
    """The settings of a model's runs. A device that is not there is the CPU."""

    intraop_threads: int = 1
    interop_threads: int = 1
    parallel: bool = False
    """True where independent operations run beside each other."""
    gpu_device: int | None = None
    spins: bool = True
    """True where threads without work wait for more with their processor busy, for a while."""
    optimizes: bool = True
    """True where the runtime may change the graph of the model before it runs it."""


DEFAULT_SETTINGS: Final = SessionSettings()


class OnnxSession:
    """One loaded model. Runs in any number of threads."""

    def __init__(self, content: bytes, settings: SessionSettings) -> None:
        """Errors: those of the runtime."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, settings.intraop_threads)
        options.inter_op_num_threads = max(1, settings.interop_threads)
        mode = onnxruntime.ExecutionMode
        options.execution_mode = mode.ORT_PARALLEL if settings.parallel else mode.ORT_SEQUENTIAL
        options.log_severity_level = _SILENT
        if not settings.optimizes:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if not settings.spins:
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        ARENA.use_in(options)
        self._run_options = onnxruntime.RunOptions
        self._session = onnxruntime.InferenceSession(content, options, providers=_providers(settings))
        self._dtypes = {each.name: DTYPES[each.type] for each in self._session.get_inputs()}
        self.outputs: Final = [each.name for each in self._session.get_outputs()]
        self._batches: dict[tuple[Any, ...], bool] = {}

    def run(self, inputs: Arrays) -> Arrays:
        """Return the outputs by name. Errors: RunFailed, of these TooMuchMemory; OutOfTime."""
        with np.errstate(all="ignore"):
            fed = {name: np.asarray(values, self._dtypes[name], order="C") for name, values in inputs.items()}
        options = self._run_options()
        options.log_severity_level = _SILENT
        ARENA.shrink_seldom(options)
        try:
            with WATCH.ending(options, work_ends_at()):
                found = self._session.run(None, fed, options)
        except Exception as error:  # the runtime has no class for all of its own
            if options.terminate:
                raise OutOfTime from None
            if is_about_memory(str(error)):
                most = f"{model_memory_bytes():,} bytes that all models together may (ONNX_MEMORY_BYTES)"
                raise TooMuchMemory(f"it takes more memory than the {most}") from None
            raise RunFailed(
                f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
            ) from None
        return dict(zip(self.outputs, found, strict=True))

    def takes_batches(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Tell whether several hits may be one run, below each other in the first dimension: this is tried with two
        invented ones, and remembered. `shapes`: those of the inputs of one hit, 1 in front."""
        key = tuple(sorted((name, tuple(shape)) for name, shape in shapes.items()))
        known = self._batches.get(key)
        if known is None:
            known = self._batches[key] = self._try_batch(shapes)
        return known

    def _try_batch(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        rows = [{name: np.full(shape, value) for name, shape in shapes.items()} for value in (0, 1)]
        both = {name: np.concatenate([row[name] for row in rows]) for name in shapes}
        try:
            alone, together = [self.run(row) for row in rows], self.run(both)
        except RunFailed:
            return False
        return all(_agree(values, [row[name] for row in alone]) for name, values in together.items())


def _agree(together: NDArray[Any], alone: Sequence[NDArray[Any]]) -> bool:
    if any(row.ndim == 0 or row.shape[0] != 1 for row in alone) or together.shape != (2, *alone[0].shape[1:]):
        return False
    return bool(np.allclose(together, np.concatenate(alone), rtol=_NEAR, atol=_NEAR, equal_nan=True))


def has_gpu() -> bool:
    """Tell whether the runtime that is installed can use a GPU."""
    import onnxruntime

    return _CUDA in onnxruntime.get_available_providers()


def _providers(settings: SessionSettings) -> list[Any]:
    if settings.gpu_device is not None and settings.gpu_device >= 0 and has_gpu():
        return [(_CUDA, {"device_id": settings.gpu_device}), "CPUExecutionProvider"]
    return ["CPUExecutionProvider"]


_SESSIONS: Final[WeakValueDictionary[tuple[bytes, SessionSettings], OnnxSession]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()


def session_of(path: str, content: bytes, settings: SessionSettings) -> OnnxSession:
    """The session of a model, loaded if nobody has it. Errors: InternalError with the file's path."""
    key = (sha256(content).digest(), settings)
    with _LOCK:
        found = _SESSIONS.get(key)
        if found is None:
            try:
                found = _SESSIONS[key] = OnnxSession(content, settings)
            except Exception as error:
                raise InternalError(f"{path} cannot be loaded: {str(error)[:300]}") from None
        return found


# Runs whose time is over


class Stoppable(Protocol):
    """The options of a run."""

    terminate: bool
    """Set: the run ends with an error as soon as it can."""


class RunWatch:
    """The runs under way that have an end.

    How long a run takes may depend on its inputs, and the runtime looks at no clock: it ends a run between two
    operations of the model when another thread says so. One thread watches all runs, from the first with an end on.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._runs: dict[int, tuple[int, Stoppable]] = {}
        self._next_ns = 0
        """When the thread looks again, on the clock of `end_ns`; 0: when it is notified."""
        self._is_started = False

    @contextmanager
    def ending(self, run: Stoppable, end_ns: int) -> Iterator[None]:
        """Within it the run is stopped at `end_ns`, of time.monotonic_ns; 0: never."""
        if end_ns == 0:
            yield
            return
        with self._changed:
            self._runs[id(run)] = end_ns, run
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._watch, name="onnx-watch", daemon=True).start()
            elif self._next_ns == 0 or end_ns < self._next_ns:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._runs[id(run)]

    def _watch(self) -> None:
        with self._changed:
            while True:
                now_ns = time.monotonic_ns()
                for end_ns, run in self._runs.values():
                    if end_ns <= now_ns:
                        run.terminate = True
                self._next_ns = min((end_ns for end_ns, _ in self._runs.values() if end_ns > now_ns), default=0)
                self._changed.wait((self._next_ns - now_ns) / 1e9 if self._next_ns else None)


WATCH: Final = RunWatch()
