"""The files that a backup of a data directory holds, of a running service or a stopped one.

A moment of a running service is put together from moments of its parts, so that it is one which a crash could have
left, and a start goes on from there:

* Each content cluster's log and checkpoint are of one moment between two batches of its writer.
* Meanwhile no application was deployed, or it is tried again.
* How far documents were indexed again is from before that: some may be indexed once more, and none is left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from paperwasp.admin.backup.placing import KEPT
from paperwasp.base.file_snapshot import SourceFile, below, close_all, open_file, open_folder
from paperwasp.content.checkpoints.node_files import open_stopped_cluster
from paperwasp.coordination.config_store import ConfigStore
from paperwasp.errors import Conflict
from paperwasp.limits.backup import BACKUP_CAPTURE_SECONDS, BACKUP_CAPTURES
from paperwasp.server.roles.content_clusters import ContentClusters
from paperwasp.server.roles.data_directory import DataDirectory

_CONTENT: Final = "content"
_CONFIG: Final = "config"
_PROGRESS: Final = "keys/reindexing%"
"""Keys that change by themselves."""


def open_served(data: DataDirectory, store: ConfigStore, content: ContentClusters) -> list[SourceFile]:
    """The files of the service in this process. Errors: Conflict while applications are being deployed."""
    for attempt in range(BACKUP_CAPTURES):
        if attempt:
            time.sleep(BACKUP_CAPTURE_SECONDS)
        if files := _open_between_deployments(data.path, store, content):
            return files
    raise Conflict("Applications are being deployed, so that there is no moment to take a backup of: try again")


def open_stopped(data: DataDirectory) -> list[SourceFile]:
    """The files of a data directory that nobody serves, and whose lock the caller has. Errors: Corruption; OSError."""
    files = _open_others(data.path)
    try:
        if data.config.is_dir():
            files += open_folder(_CONFIG, data.config)
        for directory in sorted(path for path in data.content.glob("*/*") if path.is_dir()):
            name = directory.relative_to(data.path).as_posix()
            files += below(name, open_stopped_cluster(directory))
    except BaseException:
        close_all(files)
        raise
    return files


def _open_between_deployments(path: Path, store: ConfigStore, content: ContentClusters) -> list[SourceFile]:
    """Nothing where an application was deployed meanwhile."""
    files = below(_CONFIG, store.open_files())
    before = _chosen(files)
    try:
        files += _open_others(path)
        files += below(_CONTENT, content.open_files())
    except FileNotFoundError:
        close_all(files)
        if _has_changed(store, before):
            return []
        raise
    except BaseException:
        close_all(files)
        raise
    if not _has_changed(store, before):
        return files
    close_all(files)
    return []


def _has_changed(store: ConfigStore, before: dict[str, bytes]) -> bool:
    now = store.open_files()
    close_all(now)
    return _chosen(below(_CONFIG, now)) != before


def _chosen(files: Sequence[SourceFile]) -> dict[str, bytes]:
    """The decisions in the config store, by key, without the state of what goes on by itself."""
    return {file.name: file.content for file in files if not file.name.startswith(f"{_CONFIG}/{_PROGRESS}")}


def _open_others(path: Path) -> list[SourceFile]:
    """The other files of the data directory: keys of access, and what later versions add."""
    files: list[SourceFile] = []
    try:
        for entry in sorted(path.iterdir()):
            if entry.name in KEPT | {_CONTENT, _CONFIG} or entry.name.startswith(".") or entry.is_symlink():
                continue
            files += open_folder(entry.name, entry) if entry.is_dir() else [open_file(entry.name, entry)]
    except BaseException:
        close_all(files)
        raise
    return files
