"""The machine: Python and the libraries, memory, cores, limits of the system that matter, the disk under a data
directory, and the ports that a service would listen on.

Where the system does not tell something (no `/proc`), nothing is found of it.
"""

from __future__ import annotations

import importlib
import os
import re
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.base.env import cores, sync_data
from paperwasp.base.patterns import compile_later
from paperwasp.server.doctor.findings import Area, Finding

_MACHINE: Final = Area("machine")
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
        return _MACHINE.error("Python", shown, "Use CPython 3.11 or later of 64 bits on a little-endian processor")
    return _MACHINE.ok("Python", shown)


def _libraries() -> Iterator[Finding]:
    """The libraries that the distribution says it needs."""
    try:
        needed = [one for one in metadata.requires("paperwasp") or () if "extra ==" not in one]
    except metadata.PackageNotFoundError:
        yield _MACHINE.warning("libraries", "paperwasp is not installed: its libraries are not known", "pip install it")
        return
    problems = [problem for one in needed if (problem := _problem_of(one))]
    if problems:
        yield _MACHINE.error("libraries", "; ".join(problems), "Install paperwasp again: pip install --force-reinstall")
    else:
        yield _MACHINE.ok("libraries", f"{len(needed)} are installed, in versions that will do")


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
        return _MACHINE.error("kernels", str(error), "Install the wheel for this processor and Python, or build it")
    return _MACHINE.ok("kernels", "the compiled kernels, NumPy and RocksDB load")


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
    """Compare the memory of the machine with the 4 GB that the service is made for."""
    if total is None or available is None:
        return
    shown = f"{total / _ONE_GIB:.1f} GiB, {available / _ONE_GIB:.1f} GiB of it available"
    share = f"feeding is blocked at {limits.MEMORY_LIMIT:.0%} of memory"
    if total < limits.doctor.MEMORY_LEAST_BYTES:
        yield _MACHINE.error("memory", f"{shown}; {share}", "Give the service 4 GB of memory, at least 1")
    elif total < limits.doctor.MEMORY_BYTES * 0.9:  # a machine of 4 GB shows less
        yield _MACHINE.warning("memory", f"{shown}; {share}", "Give the service 4 GB of memory")
    elif available < limits.doctor.MEMORY_LEAST_BYTES:
        yield _MACHINE.warning("memory", f"{shown}; {share}", "Stop what else takes memory, or add some")
    else:
        yield _MACHINE.ok("memory", shown)


def check_cores(most: float) -> Finding:
    """Queries and feeding share one interpreter; kernels, syncing and checkpoints use others."""
    shown = f"{most:g} for this process"
    if most < limits.doctor.CORES:
        return _MACHINE.warning("cores", shown, "Give it two: checkpoints and large queries delay others on one")
    return _MACHINE.ok("cores", shown)


def check_open_files(most: int) -> Finding:
    """The hard limit: the service raises its own to what it needs."""
    shown = "no limit" if most == resource.RLIM_INFINITY else f"{most} at most"
    if most != resource.RLIM_INFINITY and most < limits.OPEN_FILES:
        remedy = f"Allow {limits.OPEN_FILES}: ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile= of docker"
        return _MACHINE.warning("open files", shown, remedy)
    return _MACHINE.ok("open files", shown)


def check_settings(system: Path) -> Iterator[Finding]:
    """Settings of the kernel that make large mapped files fail, or memory grow."""
    huge = _chosen(_text(system / "sys/kernel/mm/transparent_hugepage/enabled"))
    defrag = _chosen(_text(system / "sys/kernel/mm/transparent_hugepage/defrag"))
    if huge == "always" and defrag == "always":
        remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag"
        message = "always, and made at once: memory grows by 2 MiB at a time, and requests wait while it is moved"
        yield _MACHINE.warning("transparent huge pages", message, remedy)
    elif huge:
        yield _MACHINE.ok("transparent huge pages", f"{huge}, defrag {defrag or 'unknown'}")
    if overcommit := _text(system / "proc/sys/vm/overcommit_memory"):
        if overcommit == "2":
            message = "strict (2): files are mapped and models tried with more address space than memory"
            yield _MACHINE.warning("overcommit", message, "sysctl vm.overcommit_memory=0")
        else:
            yield _MACHINE.ok("overcommit", f"vm.overcommit_memory is {overcommit}")
    if (mapped := _text(system / "proc/sys/vm/max_map_count")).isdigit():
        if int(mapped) < limits.doctor.MAPPED_FILES:
            message = f"vm.max_map_count is {mapped}: a large index maps many files"
            yield _MACHINE.warning("mapped files", message, f"sysctl vm.max_map_count={limits.doctor.MAPPED_FILES}")
        else:
            yield _MACHINE.ok("mapped files", f"{mapped} at most")


def check_clock(now: float) -> Finding:
    """Documents expire, and removals are forgotten, by the clock."""
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if time.gmtime(now).tm_year < limits.doctor.YEAR_LEAST:
        return _MACHINE.error("clock", shown, "Set the clock: operations get their times from it")
    return _MACHINE.ok("clock", shown)


def _text(path: Path) -> str:
    """Empty where there is no such file."""
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _chosen(text: str) -> str:
    """`always [madvise] never` → madvise."""
    return text.partition("[")[2].partition("]")[0]


# The disk under a data directory: room, file system, and how long a sync takes, for which operations wait.


_DISK: Final = Area("disk")
_OF_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "lustre"})
_OF_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")
Note = Callable[[int], None]


def check_disk(directory: Path, note: Note = lambda _: None) -> Iterator[Finding]:
    """The findings. `directory` may not be there yet. `note` gets the number of syncs that are done."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.is_dir())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield _DISK.error("rights", f"'{existing}' cannot be written", "Run as its owner, or change its owner")
    system = os.statvfs(existing)
    yield check_room(system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize, system.f_favail)
    yield from check_file_system(_file_system(existing))
    if os.access(existing, os.W_OK | os.X_OK):
        try:
            yield judge_syncs(measure_syncs(existing, note))
        except OSError as error:
            yield _DISK.error("sync", f"a file cannot be written and synced: {error.strerror}", "Look at the disk")


def check_room(free: int, total: int, files: int) -> Finding:
    """Bytes that are free, and how many more files there may be."""
    shown = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free"
    if free < limits.DISK_RESERVE_BYTES:
        least = limits.DISK_RESERVE_BYTES >> 20
        return _DISK.error("room", f"{shown}: feeding is blocked below {least} MiB", "Make room")
    if free < limits.doctor.DISK_FREE_BYTES:
        return _DISK.warning("room", f"{shown}: checkpoints need as much as the documents take", "Make room")
    if 0 < files < limits.OPEN_FILES:
        return _DISK.warning("room", f"{shown}, and {files} more files", "Make room for more files (inodes)")
    return _DISK.ok("room", shown)


def check_file_system(kind: str) -> Iterator[Finding]:
    """Locks and renames must be those of one machine, and what is synced must stay."""
    if kind in _OF_NETWORK or kind.startswith("fuse"):
        message = f"{kind}: whether locks, renames and syncs hold depends on its server"
        yield _DISK.warning("file system", message, "Use a local file system: ext4 or xfs")
    elif kind in _OF_MEMORY:
        yield _DISK.warning("file system", f"{kind}: all is gone with the machine", "Use ext4 or xfs on a disk")
    elif kind == "overlay":
        yield _DISK.warning("file system", f"{kind}: data goes with the container", "Put the data in a volume")
    elif kind:
        yield _DISK.ok("file system", kind)


def _file_system(directory: Path) -> str:
    """Its kind, of the longest mount point above the directory; empty where the system does not tell."""
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return ""
    device = os.stat(directory).st_dev  # noqa: PTH116 — the number is what mountinfo shows
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == wanted]
    return found[-1] if found else ""


def measure_syncs(directory: Path, note: Note = lambda _: None) -> list[float]:
    """The seconds of appending a block and syncing it, as the operation log does, some times over."""
    seconds: list[float] = []
    end = time.monotonic() + limits.doctor.SYNC_SECONDS
    with tempfile.TemporaryFile(prefix=".doctor-", dir=directory) as file:
        for _ in range(limits.doctor.SYNCS):
            started = time.perf_counter()
            file.write(bytes(limits.doctor.SYNC_BYTES))
            file.flush()
            sync_data(file.fileno())
            seconds.append(time.perf_counter() - started)
            note(1)
            if time.monotonic() > end:
                break
    return seconds


def judge_syncs(seconds: Sequence[float]) -> Finding:
    """By the median. A thousand operations that wait together share one sync; one that waits alone has its own."""
    median, longest = statistics.median(seconds), max(seconds)
    shown = f"{median * 1000:.2f} ms (longest {longest * 1000:.1f}), {1 / median:.0f} a second"
    if median < limits.doctor.SYNC_UNLIKELY_SECONDS:
        message = f"{shown}: faster than disks are, so it may not sync at all"
        return _DISK.warning("sync", message, "Make sure that the disk, or what it stands for, keeps what is synced")
    if median > limits.doctor.SYNC_BAD_SECONDS:
        return _DISK.error("sync", f"{shown}: every batch of operations waits so long", "Use an SSD")
    if median > limits.doctor.SYNC_GOOD_SECONDS:
        message = f"{shown}: clients that send one operation at a time get no more"
        return _DISK.warning("sync", message, "Use an SSD, or feed with more operations in flight")
    return _DISK.ok("sync", shown)


# The ports that a service would listen on: free, or who has them.


_PORTS: Final = Area("ports")
_LISTENS: Final = "0A"


def check_port(host: str, port: int, what: str, *, is_served: bool) -> Finding:
    """`is_served`: a service of ours answers there."""
    if is_served:
        return _PORTS.ok(str(port), f"{what}: paperwasp listens")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except PermissionError:
            return _PORTS.error(str(port), f"{what}: this user may not listen there", "Use a port from 1024 on")
        except OSError as error:
            owner = owner_of(port)
            message = f"{what}: {'taken by ' + owner if owner else error.strerror or 'taken'}"
            return _PORTS.error(str(port), message, "End that, or give the service another port (serve --help)")
    return _PORTS.ok(str(port), f"{what}: free")


def owner_of(port: int) -> str:
    """The process that listens there, by name and number; empty where that cannot be seen."""
    inodes = set(_listening(port))
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) in inodes:
                        return f"{(process / 'comm').read_text().strip()} (process {process.name})"
    return ""


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield f"socket:[{fields[9]}]"
