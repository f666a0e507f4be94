"""The C library divides its memory into as many arenas as the service says, and no more."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from paperwasp.base.env import limit_arenas

if sys.argv[1] != "0":
    limit_arenas(int(sys.argv[1]))
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
barrier = threading.Barrier(8)

def allocate():
    barrier.wait()
    libc.malloc(50_000)
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="of glibc")
def test_arenas_are_as_many_as_are_allowed() -> None:
    counts = {}
    for most in ("0", "1", "2"):
        said = subprocess.run([sys.executable, "-c", PROGRAM, most], capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said.stderr
        counts[most] = said.stdout.count("<heap nr=")
    assert counts["1"] == 1 and counts["2"] == 2 and counts["0"] > 2, counts
