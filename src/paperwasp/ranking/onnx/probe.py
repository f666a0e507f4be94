"""Trying an ONNX model before it is trusted: loaded and run once, with zeros, in a process of its own.

The runtime may take memory and time without bound, and a defect in it would end the process: of the child, here. The
run tells the sizes of the outputs that the file leaves open. A model that would read its weights from other files is
refused before any runtime has seen it (`other_file`): their paths may lead anywhere. The child's folder is empty.

Vespa: https://docs.vespa.ai/en/ranking/onnx.html#using-vespa-analyze-onnx-model
Format: https://onnx.ai/onnx/repo-docs/ExternalData.html
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.core.clock import check_time, work_ends_at
from paperwasp.errors import LanguageError
from paperwasp.ranking.onnx.file import message_fields
from paperwasp.ranking.onnx.memory import model_memory_bytes

Shapes = Mapping[str, Sequence[int]]
_CHILD: Final = Path(__file__).with_name("child.py")
_FOUND: Final[Cache[tuple[object, ...], Shapes]] = Cache(entries=limits.ONNX_PROBES_KEPT)
"""The shapes of the outputs of models that were tried, so that deploying a package again does not try them again."""


class DoesNotRun(LanguageError):
    """The model was loaded, and its run with zeros of these shapes ended with an error: with others it may run."""


def probe(path: str, content: bytes, shapes: Shapes) -> Shapes:
    """Find the shapes of the model's outputs, by name, for inputs of these shapes.

    Errors: LanguageError with the path; of these DoesNotRun.
    """
    key = (sha256(content).digest(), *((name, tuple(shape)) for name, shape in sorted(shapes.items())))
    known = _FOUND.get(key)
    if known is None:
        if (other := other_file(content)) is not None:
            raise LanguageError(f"{path} does not run: its weights are in another file, '{other}'")
        known = _run_probe(path, content, shapes)
        _FOUND.put(key, known)
    return known


def _run_probe(path: str, content: bytes, shapes: Shapes) -> Shapes:
    seconds = limits.ONNX_PROBE_SECONDS + len(content) // limits.ONNX_PROBE_BYTES_A_SECOND
    arena_bytes = model_memory_bytes()
    asked = {
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "memory_bytes": limits.ONNX_PROBE_BYTES + 4 * len(content) + arena_bytes,
        "arena_bytes": arena_bytes,
        "cpu_seconds": seconds,
    }
    with TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(_CHILD)],
                input=json.dumps(asked).encode() + b"\n" + content,
                capture_output=True,
                cwd=folder,
                timeout=_at_most(seconds),
                check=False,
            )
        except subprocess.TimeoutExpired:
            check_time()
            raise LanguageError(f"{path}: loading it and one run took more than {seconds} s") from None
    if done.returncode < 0:
        raise LanguageError(f"{path}: loading it or one run ended the process by signal {-done.returncode}")
    if done.returncode:
        [*_, reason] = ["no reason given", *done.stderr.decode(errors="replace").strip().splitlines()]
        raise LanguageError(f"{path}: it could not be tried: {reason[:300]}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        failure = DoesNotRun if answer.get("is_loaded") else LanguageError
        raise failure(f"{path} does not run: {answer['error']}")
    found: Shapes = answer["shapes"]
    return found


def _at_most(seconds: float) -> float:
    """Return the time that the thread's work leaves of this. Errors: OutOfTime."""
    check_time()
    end_ns = work_ends_at()
    return min(seconds, max(0.001, (end_ns - time.monotonic_ns()) / 1e9)) if end_ns else seconds


# Weights in other files: of tensors in the graph, in nodes, in the graphs within nodes, and in functions

_MODEL, _GRAPH, _FUNCTION, _NODE, _ATTRIBUTE, _SPARSE, _TENSOR = range(7)

_INSIDE: Final[Mapping[int, Mapping[int, int]]] = {
    _MODEL: {7: _GRAPH, 25: _FUNCTION},
    _GRAPH: {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    _FUNCTION: {7: _NODE, 11: _ATTRIBUTE},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    _SPARSE: {1: _TENSOR, 2: _TENSOR},
}
"""Kind of message → number of a field → kind of the message in it, of onnx.proto."""
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14
_KEY, _VALUE = 1, 2


def other_file(content: bytes) -> str | None:
    """Find the name of a file that the model would read; None: it has all weights, or is damaged."""
    try:
        return next(_other_files(memoryview(content)), None)
    except ValueError:
        return None


def _other_files(model: memoryview) -> Iterator[str]:
    waiting: list[tuple[int, memoryview]] = [(_MODEL, model)]
    while waiting:
        kind, message = waiting.pop()
        if kind == _TENSOR:
            yield from _location(message)
            continue
        inside = _INSIDE[kind]
        for number, value in message_fields(message):
            if isinstance(value, memoryview) and number in inside:
                waiting.append((inside[number], value))


def _location(tensor: memoryview) -> Iterator[str]:
    is_external = False
    name = ""
    for number, value in message_fields(tensor):
        if number == _DATA_LOCATION:
            is_external = value == 1
        elif number == _EXTERNAL_DATA and isinstance(value, memoryview):
            is_external = True
            entry = dict(message_fields(value))
            if bytes(_bytes(entry.get(_KEY))) == b"location":
                name = bytes(_bytes(entry.get(_VALUE))).decode(errors="replace")
    if is_external:
        yield name[:300]


def _bytes(value: int | memoryview | None) -> memoryview | bytes:
    return value if isinstance(value, memoryview) else b""
