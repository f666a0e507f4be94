"""The memory in which ONNX models run: that of one arena for all of the process, which has a bound.

What a model takes between its inputs and outputs may depend on their values, so that no trial can foresee it. Without a
bound one run could take the process down, and the runtime keeps for later runs what the largest of them took.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from paperwasp import limits

_NO_MEMORY: Final = ("Available memory of ", "Failed to allocate memory", "bad_alloc", "bad allocation")
"""Messages of the runtime where there is no more memory."""
_CONTROL_GROUP: Final = Path("/sys/fs/cgroup/memory.max")
_SHRINK: Final = ("memory.enable_memory_arena_shrinkage", "cpu:0")
_AS_ASKED: Final = 1
"""The arena grows by what is asked for, not by powers of two."""


def model_memory_bytes() -> int:
    """Return the memory that all runs of models in a process may take together, the weights of models aside."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        machine = min(machine, int(_CONTROL_GROUP.read_text()))
    return min(limits.ONNX_MEMORY_BYTES, int(machine * limits.ONNX_MEMORY_SHARE))


class Arena:
    """The arena. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_registered = False
        self._last_shrunk = time.monotonic()

    def use_in(self, options: Any) -> None:
        """Have a session with these options run in it."""
        with self._lock:
            if not self._is_registered:
                self._register()
                self._is_registered = True
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")

    def _register(self) -> None:
        import onnxruntime

        arena, memory = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
        asked = {"max_mem": model_memory_bytes(), "arena_extend_strategy": _AS_ASKED}
        onnxruntime.create_and_register_allocator(
            onnxruntime.OrtMemoryInfo("Cpu", arena, 0, memory), onnxruntime.OrtArenaCfg(asked)
        )

    def shrink_seldom(self, options: Any) -> None:
        """Have a run with these options give back at its end what no run uses, unless that was done a moment ago."""
        now = time.monotonic()
        with self._lock:
            if now - self._last_shrunk < limits.ONNX_MEMORY_KEPT_SECONDS:
                return
            self._last_shrunk = now
        options.add_run_config_entry(*_SHRINK)


ARENA: Final = Arena()


def is_about_memory(message: str) -> bool:
    """Tell whether the runtime says by this message that there is no memory."""
    return any(each in message for each in _NO_MEMORY)
