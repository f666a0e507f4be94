"""The files of a content cluster that a backup holds: its log, and the checkpoint that counts.

What is derived is left out: the working store, which a start makes again from the checkpoint, and the row store.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from paperwasp.base.file_snapshot import SourceFile, below, close_all, held, open_file, open_folder
from paperwasp.coordination.log_end import NAME as END_NAME
from paperwasp.errors import Corruption

_TRIES: Final = 3
"""While the files are opened one checkpoint may be replaced by the next, and no second one is begun."""


def open_node_files(node: Path) -> list[SourceFile]:
    """The checkpoint that counts, with names below `node`; nothing where there is none.

    To be called while no checkpoint is begun: on the writer's thread, or while no service runs. A checkpoint that is
    under way may end meanwhile. Errors: Corruption where files are missing.
    """
    missing = ""
    for _ in range(_TRIES):
        current = _current(node)
        if current is None:
            return []
        try:
            files = _open_checkpoint(node, current)
        except FileNotFoundError as error:
            missing = str(error.filename)
            continue
        if _current(node) == current:
            return files
        close_all(files)
    raise Corruption(f"{missing or node}: a file of the checkpoint is missing")


def open_stopped_cluster(directory: Path) -> list[SourceFile]:
    """The files of a content cluster that nobody serves, with names below its folder."""
    log = directory / "log"
    files = [open_file(path.name, path) for path in sorted(log.glob("*.log"))]
    if (end := log / END_NAME).is_file():
        files.append(held(END_NAME, end.read_bytes()))
    return [*below("log", files), *below("node", open_node_files(directory / "node"))]


def _current(node: Path) -> bytes | None:
    try:
        return (node / "checkpoints" / "CURRENT").read_bytes()
    except FileNotFoundError:
        return None


def _open_checkpoint(node: Path, current: bytes) -> list[SourceFile]:
    """Errors: FileNotFoundError."""
    name = current.decode(errors="replace")
    files = [held("checkpoints/CURRENT", current)]
    try:
        files += open_folder(f"checkpoints/{name}", node / "checkpoints" / name)
        for index_file in index_files(node, name):
            files.append(open_file(index_file, node / index_file))
    except BaseException:
        close_all(files)
        raise
    return files


def index_files(node: Path, checkpoint: str) -> list[str]:
    """The names below `node` of the files of the index that a checkpoint's manifest names. Errors: FileNotFoundError;
    Corruption."""
    path = node / "checkpoints" / checkpoint / "manifest.json"
    try:
        manifest = orjson.loads(path.read_bytes().partition(b"\n")[2])
        return [f"{manifest['index_directory']}/{file['name']}" for file in files_of(manifest["index"])]
    except (KeyError, TypeError, ValueError) as error:
        raise Corruption(f"{path}: offset 0: the manifest is damaged: {error}") from None


def files_of(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The descriptions of all files of a saved index, also of one from when segments were parts, and one file had all
    words."""
    segments = state["segments"] if "segments" in state else state["parts"]
    words = state["words"] if "words" in state else [state["lexicon"]]
    return [*words, *(file for segment in segments for file in segment["files"] if file is not None)]
