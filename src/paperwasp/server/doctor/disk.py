"""The disk under a data directory: room, file system, and how long a sync takes, for which operations wait."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.base.env import sync_data
from paperwasp.server.doctor.findings import Area, Finding

_AREA: Final = Area("disk")
_OF_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "lustre"})
_OF_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")
Note = Callable[[int], None]


def check_disk(directory: Path, note: Note = lambda _: None) -> Iterator[Finding]:
    """The findings. `directory` may not be there yet. `note` gets the number of syncs that are done."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.is_dir())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield _AREA.error("rights", f"'{existing}' cannot be written", "Run as its owner, or change its owner")
    system = os.statvfs(existing)
    yield check_room(system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize, system.f_favail)
    yield from check_file_system(_file_system(existing))
    if os.access(existing, os.W_OK | os.X_OK):
        try:
            yield judge_syncs(measure_syncs(existing, note))
        except OSError as error:
            yield _AREA.error("sync", f"a file cannot be written and synced: {error.strerror}", "Look at the disk")


def check_room(free: int, total: int, files: int) -> Finding:
    """Bytes that are free, and how many more files there may be."""
    shown = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free"
    if free < limits.DISK_RESERVE_BYTES:
        least = limits.DISK_RESERVE_BYTES >> 20
        return _AREA.error("room", f"{shown}: feeding is blocked below {least} MiB", "Make room")
    if free < limits.doctor.DISK_FREE_BYTES:
        return _AREA.warning("room", f"{shown}: checkpoints need as much as the documents take", "Make room")
    if 0 < files < limits.OPEN_FILES:
        return _AREA.warning("room", f"{shown}, and {files} more files", "Make room for more files (inodes)")
    return _AREA.ok("room", shown)


def check_file_system(kind: str) -> Iterator[Finding]:
    """Locks and renames must be those of one machine, and what is synced must stay."""
    if kind in _OF_NETWORK or kind.startswith("fuse"):
        message = f"{kind}: whether locks, renames and syncs hold depends on its server"
        yield _AREA.warning("file system", message, "Use a local file system: ext4 or xfs")
    elif kind in _OF_MEMORY:
        yield _AREA.warning("file system", f"{kind}: all is gone with the machine", "Use ext4 or xfs on a disk")
    elif kind == "overlay":
        yield _AREA.warning("file system", f"{kind}: data goes with the container", "Put the data in a volume")
    elif kind:
        yield _AREA.ok("file system", kind)


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
        return _AREA.warning("sync", message, "Make sure that the disk, or what it stands for, keeps what is synced")
    if median > limits.doctor.SYNC_BAD_SECONDS:
        return _AREA.error("sync", f"{shown}: every batch of operations waits so long", "Use an SSD")
    if median > limits.doctor.SYNC_GOOD_SECONDS:
        message = f"{shown}: clients that send one operation at a time get no more"
        return _AREA.warning("sync", message, "Use an SSD, or feed with more operations in flight")
    return _AREA.ok("sync", shown)
