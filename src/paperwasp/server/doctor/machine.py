"""The machine: Python and the libraries, memory, cores, and limits of the system that matter to the service.

Where the system does not tell something (no `/proc`), nothing is found of it.
"""

from __future__ import annotations

import importlib
import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.base.env import cores
from paperwasp.base.patterns import compile_later
from paperwasp.server.doctor.findings import Area, Finding

_AREA: Final = Area("machine")
_PYTHON: Final = (3, 11)
_REQUIREMENT: Final = compile_later(r"^([\w.-]+)[^;<>=]*(?:>=([\d.]+))?")
_ONE_GIB: Final = 1 << 30
_SYSTEM: Final = Path("/")


def check_machine(system: Path = _SYSTEM) -> Iterator[Finding]:
    """The findings. `system`: where `/proc` and `/sys` are."""
    yield _python(sys.version_info[:3])
    yield from _libraries()
    yield _kernels()
    yield from check_memory(*_memory(system))
    yield check_cores(cores(system))
    yield check_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield from check_settings(system)
    yield check_clock(time.time())


def _python(version: tuple[int, ...]) -> Finding:
    shown = f"Python {'.'.join(map(str, version))}, {sys.implementation.name}, {sys.maxsize.bit_length() + 1} bits"
    if version < _PYTHON or sys.maxsize < 2**32 or sys.byteorder != "little":
        return _AREA.error("Python", shown, "Use CPython 3.11 or later of 64 bits on a little-endian processor")
    return _AREA.ok("Python", shown)


def _libraries() -> Iterator[Finding]:
    """The libraries that the distribution says it needs."""
    try:
        needed = [one for one in metadata.requires("paperwasp") or () if "extra ==" not in one]
    except metadata.PackageNotFoundError:
        yield _AREA.warning("libraries", "paperwasp is not installed: its libraries are not known", "pip install it")
        return
    problems = [problem for one in needed if (problem := _problem_of(one))]
    if problems:
        yield _AREA.error("libraries", "; ".join(problems), "Install paperwasp again: pip install --force-reinstall")
    else:
        yield _AREA.ok("libraries", f"{len(needed)} are installed, in versions that will do")


def _problem_of(requirement: str) -> str | None:
    match = _REQUIREMENT.match(requirement.replace(" ", ""))
    assert match is not None
    name, least = match.groups()
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} {found} is older than {least}" if least and _numbers(found) < _numbers(least) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _kernels() -> Finding:
    try:
        for name in ("numpy", "orjson", "rocksdict", "paperwasp.core._core"):
            importlib.import_module(name)
    except ImportError as error:
        return _AREA.error("kernels", str(error), "Install the wheel for this processor and Python, or build it")
    return _AREA.ok("kernels", "the compiled kernels, NumPy and RocksDB load")


def _memory(system: Path) -> tuple[int | None, int | None]:
    """All memory that the process may have, and what is available of it, in bytes."""
    known: dict[str, int] = {}
    with suppress(OSError, ValueError):
        for line in (system / "proc/meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            known[name] = int(rest.split()[0]) * 1024
    total, available = known.get("MemTotal"), known.get("MemAvailable")
    for limit_file, use_file in (
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            limit = int((system / limit_file).read_text())
            if total is not None and limit < total:
                total = limit
                available = min(available or limit, limit - int((system / use_file).read_text()))
    return total, available


def check_memory(total: int | None, available: int | None) -> Iterator[Finding]:
    """What there is, beside the 4 GB that the service is made for."""
    if total is None or available is None:
        return
    shown = f"{total / _ONE_GIB:.1f} GiB, {available / _ONE_GIB:.1f} GiB of it available"
    share = f"feeding is blocked at {limits.MEMORY_LIMIT:.0%} of memory"
    if total < limits.doctor.MEMORY_LEAST_BYTES:
        yield _AREA.error("memory", f"{shown}; {share}", "Give the service 4 GB of memory, at least 1")
    elif total < limits.doctor.MEMORY_BYTES * 0.9:  # a machine of 4 GB shows less
        yield _AREA.warning("memory", f"{shown}; {share}", "Give the service 4 GB of memory")
    elif available < limits.doctor.MEMORY_LEAST_BYTES:
        yield _AREA.warning("memory", f"{shown}; {share}", "Stop what else takes memory, or add some")
    else:
        yield _AREA.ok("memory", shown)


def check_cores(most: float) -> Finding:
    """Queries and feeding share one interpreter; kernels, syncing and checkpoints use others."""
    shown = f"{most:g} for this process"
    if most < limits.doctor.CORES:
        return _AREA.warning("cores", shown, "Give it two: checkpoints and large queries delay others on one")
    return _AREA.ok("cores", shown)


def check_open_files(most: int) -> Finding:
    """The hard limit: the service raises its own to what it needs."""
    shown = "no limit" if most == resource.RLIM_INFINITY else f"{most} at most"
    if most != resource.RLIM_INFINITY and most < limits.OPEN_FILES:
        remedy = f"Allow {limits.OPEN_FILES}: ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile= of docker"
        return _AREA.warning("open files", shown, remedy)
    return _AREA.ok("open files", shown)


def check_settings(system: Path) -> Iterator[Finding]:
    """Settings of the kernel that make large mapped files fail, or memory grow."""
    huge = _chosen(_text(system / "sys/kernel/mm/transparent_hugepage/enabled"))
    defrag = _chosen(_text(system / "sys/kernel/mm/transparent_hugepage/defrag"))
    if huge == "always" and defrag == "always":
        remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag"
        message = "always, and made at once: memory grows by 2 MiB at a time, and requests wait while it is moved"
        yield _AREA.warning("transparent huge pages", message, remedy)
    elif huge:
        yield _AREA.ok("transparent huge pages", f"{huge}, defrag {defrag or 'unknown'}")
    if overcommit := _text(system / "proc/sys/vm/overcommit_memory"):
        if overcommit == "2":
            message = "strict (2): files are mapped and models tried with more address space than memory"
            yield _AREA.warning("overcommit", message, "sysctl vm.overcommit_memory=0")
        else:
            yield _AREA.ok("overcommit", f"vm.overcommit_memory is {overcommit}")
    if (mapped := _text(system / "proc/sys/vm/max_map_count")).isdigit():
        if int(mapped) < limits.doctor.MAPPED_FILES:
            message = f"vm.max_map_count is {mapped}: a large index maps many files"
            yield _AREA.warning("mapped files", message, f"sysctl vm.max_map_count={limits.doctor.MAPPED_FILES}")
        else:
            yield _AREA.ok("mapped files", f"{mapped} at most")


def check_clock(now: float) -> Finding:
    """Documents expire, and removals are forgotten, by the clock."""
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if time.gmtime(now).tm_year < limits.doctor.YEAR_LEAST:
        return _AREA.error("clock", shown, "Set the clock: operations get their times from it")
    return _AREA.ok("clock", shown)


def _text(path: Path) -> str:
    """Empty where there is no such file."""
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _chosen(text: str) -> str:
    """`always [madvise] never` → madvise."""
    return text.partition("[")[2].partition("]")[0]
