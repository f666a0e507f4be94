"""The use of disk and memory, and whether it leaves room for more documents.

A probe measures; a gate compares with the limits of a content cluster and refuses operations by which data could grow,
as long as one of them is exceeded. Reading goes on, and so does what makes room. Feeding opens by itself when usage has
fallen a little below the limit, so that it does not open and close with every document.

Usage is the share that this service has of what it could have: of disk, its own bytes of those and the free ones; of
memory, what it has allocated of that and the available memory, within the limit of its control group.

Vespa: https://docs.vespa.ai/en/writing/feed-block.html
Differs: in Vespa, usage is the share of the whole disk, whoever uses it. Here a disk that is full of other things does
not end feeding until less than a reserve is free.

Threads: one thread at a time configures the gate and reports usage to it; any thread may check it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.coordination.messages.documents import ApplyChanges
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Operation, Put, Remove, Update
from paperwasp.document.plain_fields import operation_of
from paperwasp.document.updates import Add, AddCells, Assign, FieldUpdate, ModifyCells
from paperwasp.errors import InvalidInput, NoSpace

_LOG: Final = logging.getLogger("paperwasp.content")
_GROWING: Final = (Add, AddCells, ModifyCells)
_CLUSTER: Final = "tuning/resource-limits"
_NODE: Final = "engine/proton/resource-limits"
_NODE_HEADROOM: Final = 0.01
"""The share that Vespa keeps between the limit of a node and that of its cluster, where only the node's is set."""


class Share(Struct, frozen=True):
    """The bytes of a resource that the service uses, and the bytes that are free for it besides."""

    own_bytes: int
    free_bytes: int

    @property
    def ratio(self) -> float:
        """From 0 to 1."""
        total = self.own_bytes + self.free_bytes
        return self.own_bytes / total if total > 0 else 0.0


class Usage(Struct, frozen=True):
    """One measurement. Memory is None where the system does not say."""

    disk: Share
    memory: Share | None


Probe = Callable[[], Usage]


class ResourceLimits(Struct, frozen=True):
    """The shares from which on feeding is blocked, and the most bytes of a put or an update."""

    disk: float = limits.DISK_LIMIT
    memory: float = limits.MEMORY_LIMIT
    document_bytes: int = limits.DOCUMENT_BYTES


def limits_of(tuning: Mapping[str, str], document_bytes: int = limits.DOCUMENT_BYTES) -> ResourceLimits:
    """The limits that the tuning of a content cluster says (`services_model.Content.tuning`).

    Vespa has a limit for the cluster and one for the node, which blocks by itself. One node is the cluster here, so
    that the lower one counts.
    """
    return ResourceLimits(
        _limit(tuning, "disk", limits.DISK_LIMIT),
        _limit(tuning, "memory", limits.MEMORY_LIMIT),
        document_bytes,
    )


def _limit(tuning: Mapping[str, str], resource: str, default: float) -> float:
    cluster, node = tuning.get(f"{_CLUSTER}/{resource}"), tuning.get(f"{_NODE}/{resource}")
    if node is None:
        return default if cluster is None else float(cluster)
    return max(0.0, float(node) - _NODE_HEADROOM) if cluster is None else min(float(cluster), float(node))


class FeedGate:
    """Lets operations through to a content node, but not those that need room where there is none, or are too large."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._node = "on node 0 [localhost]"
        self._limits = ResourceLimits()
        self.usage: Usage | None = None
        """The last measurement."""
        self._exhausted: frozenset[str] = frozenset()
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        """Why feeding is blocked; None: it is not."""
        return self._reason

    def lets_through(self, changes: ApplyChanges) -> bool:
        """Return whether `check` refuses none of the changes."""
        return self._reason is None and max(changes.sizes_bytes) <= self._limits.document_bytes

    def check(self, operation: Operation | PlainChange, size_bytes: int = 0) -> None:
        """Check an operation that came in a body of this size. Errors: NoSpace; InvalidInput for one that is too large.

        Vespa: the distributor looks at the size of the message of a put or an update before anything is written, and
        its error says not to try again (pull request 33609).
        """
        if self._reason is not None and _can_grow(operation):
            raise NoSpace(self._reason)
        if size_bytes > self._limits.document_bytes and not isinstance(operation, Remove):
            raise InvalidInput(
                f"The operation has {size_bytes} bytes, more than the {self._limits.document_bytes} that content "
                f"cluster '{self._cluster_id}' takes (max-document-size)"
            )

    def check_any(self) -> None:
        """Check that documents may be indexed again. Errors: NoSpace."""
        if self._reason is not None:
            raise NoSpace(self._reason)

    def configure(self, new: ResourceLimits, host: str = "localhost", distribution_key: int = 0) -> None:
        """Set other limits; feeding that the old ones blocked is judged by the next measurement.

        Host and distribution key of the node are part of the error that refuses an operation.
        """
        self._node = f"on node {distribution_key} [{host}]"
        if new != self._limits:
            self._limits, self._exhausted = new, frozenset()

    def observe(self, usage: Usage) -> None:
        """Block feeding, or allow it again, by the measured usage."""
        self.usage = usage
        found = dict(self._exhaustions(usage))
        before, self._exhausted = self._exhausted, frozenset(found)
        if not found:
            if self._reason is not None:
                _LOG.info("Feeding is no longer blocked in content cluster '%s'", self._cluster_id)
            self._reason = None
            return
        exhausted = ", ".join(found[resource] for resource in sorted(found))
        exhaustion = f"in content cluster '{self._cluster_id}': {exhausted}"
        if self._reason is None or before != self._exhausted:
            _LOG.warning("Feeding is blocked due to resource exhaustion: %s", exhaustion)
        self._reason = f"ReturnCode(NO_SPACE, External feed is blocked due to resource exhaustion: {exhaustion})"

    def metrics(self) -> dict[str, float]:
        """Vespa's names → values, of the last measurement."""
        values: dict[str, float] = {}
        if self.usage is not None:
            values["content.proton.resource_usage.disk"] = self.usage.disk.ratio
            if self.usage.memory is not None:
                values["content.proton.resource_usage.memory"] = self.usage.memory.ratio
        values["content.proton.resource_usage.feeding_blocked"] = float(self._reason is not None)
        values["cluster-controller.resource_usage.nodes_above_limit"] = float(self._reason is not None)
        return values

    def _exhaustions(self, usage: Usage) -> Iterator[tuple[str, str]]:
        """Each resource of which too much is used, and in words how much."""
        for resource, share, limit in (
            ("disk", usage.disk, self._limits.disk),
            ("memory", usage.memory, self._limits.memory),
        ):
            is_blocked = resource in self._exhausted
            effective = max(0.0, limit - limits.RESOURCE_HYSTERESIS) if is_blocked else limit
            if share is not None and share.ratio > effective:
                lowered = f", effective limit lowered to {effective:.1%} until feed unblocked" if is_blocked else ""
                full = f"is {share.ratio:.1%} full (the configured limit is {limit:.1%}{lowered})"
                yield resource, f"{resource} {self._node} {full}"
        reserve = limits.DISK_RESERVE_BYTES
        needed = reserve + reserve // 4 if "disk reserve" in self._exhausted else reserve
        if usage.disk.free_bytes < needed:
            left = f"has {usage.disk.free_bytes >> 20} MiB left (at least {needed >> 20} MiB are needed)"
            yield "disk reserve", f"disk {self._node} {left}"


def _can_grow(operation: Operation | PlainChange) -> bool:
    if isinstance(operation, PlainChange):
        operation = operation_of(operation)
    if isinstance(operation, Update):
        return any(_adds(update) for update in operation.updates)
    return isinstance(operation, Put)


def _adds(update: FieldUpdate) -> bool:
    """Vespa lets through what takes away, and what sets or computes a number in its place."""
    action = update.action
    if update.path or isinstance(action, _GROWING):
        return True
    return isinstance(action, Assign) and not (action.value is None or isinstance(action.value, int | float))


class SystemProbe:
    """Measures what a folder holds, and what this process has allocated."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self) -> Usage:
        """Costs a look at every file of the folder."""
        system = os.statvfs(self._directory)
        return Usage(Share(_size_bytes(self._directory), system.f_bavail * system.f_frsize), _memory())


def _size_bytes(directory: Path) -> int:
    """The bytes on disk below a folder, files with several names once. Files may come and go while it is counted."""
    counted: set[int] = set()
    size_bytes = 0
    folders = [str(directory)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    found = entry.stat(follow_symlinks=False)
                    if found.st_ino not in counted:
                        counted.add(found.st_ino)
                        size_bytes += found.st_blocks * 512
    return size_bytes


def _memory() -> Share | None:
    """The share of anonymous memory, which the system cannot free by itself; None where the system does not tell."""
    own = _kibibytes(Path("/proc/self/status"), "RssAnon:")
    available = _kibibytes(Path("/proc/meminfo"), "MemAvailable:")
    if own is None or available is None:
        return None
    return Share(own, min([available, *_control_group_rooms()]))


def _kibibytes(file: Path, name: str) -> int | None:
    """A line `name  123 kB`, in bytes; None where there is none."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return None


_CONTROL_GROUPS: Final = (
    # Version 2, and version 1: folder; limit; use; and the name of the part of the use that can be given up at once.
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def _control_group_rooms() -> Iterator[int]:
    """The bytes that limits of control groups leave, as seen at their root: that is where a container sees its own."""
    for folder, limit_file, use_file, reclaimable in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):
            limit = int((folder / limit_file).read_text())
            used = int((folder / use_file).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            yield max(0, limit - used + int(stat.get(reclaimable, 0)))
