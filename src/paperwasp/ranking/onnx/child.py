"""The process in which a model that nobody trusts yet is loaded and run once: a script that imports nothing of ours.

Input: a line of JSON with `shapes` (input → sizes), `memory_bytes`, `arena_bytes` (of these for what lies
between inputs and outputs) and `cpu_seconds`, then the model. Output: JSON with
`shapes` (output → sizes), or `error`, with `is_loaded` where it is the run that failed.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any


def main() -> None:
    source = sys.stdin.buffer
    asked = json.loads(source.readline())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (asked["cpu_seconds"], asked["cpu_seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (asked["memory_bytes"], asked["memory_bytes"]))
    answer: dict[str, Any] = {}
    try:
        session = _load(source.read(), asked["arena_bytes"])
        answer["is_loaded"] = True
        answer["shapes"] = _run_on_zeros(session, asked["shapes"])
    except MemoryError:
        answer = {"error": "it takes too much memory"}
    except Exception as error:
        text = str(error)
        if any(each in text for each in _NO_MEMORY):
            answer = {"error": "it takes too much memory"}
        else:
            answer["error"] = (text.splitlines() or [type(error).__name__])[0][:300]
    sys.stdout.write(json.dumps(answer))


_NO_MEMORY = ("Available memory of ", "Failed to allocate memory", "bad_alloc", "bad allocation")
"""Messages of onnxruntime where there is no memory; with other inputs there would be none either."""


def _load(content: bytes, arena_bytes: int) -> Any:
    """The session of a model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    arena, memory = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
    asked = onnxruntime.OrtArenaCfg({"max_mem": arena_bytes, "arena_extend_strategy": 1})
    onnxruntime.create_and_register_allocator(onnxruntime.OrtMemoryInfo("Cpu", arena, 0, memory), asked)
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _run_on_zeros(session: Any, shapes: dict[str, list[int]]) -> dict[str, list[int]]:
    """Runs a model with inputs of these shapes that are all zero; returns the shapes of its outputs by name."""
    import numpy as np

    types = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}
    fed = {}
    for each in session.get_inputs():
        element = each.type.removeprefix("tensor(").removesuffix(")")
        fed[each.name] = np.zeros(shapes[each.name], types.get(element) or np.dtype(element))
    found = session.run(None, fed)
    names = [each.name for each in session.get_outputs()]
    return {name: list(values.shape) for name, values in zip(names, found, strict=True)}


if __name__ == "__main__":
    main()
