"""The checkpoint of a content node, with all of its files, read and compared with their checksums."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson

from paperwasp.base.records import dataclass
from paperwasp.cluster.log_format import Mark
from paperwasp.content.bitmaps import lids_of
from paperwasp.content.checkpoint import read_manifest
from paperwasp.content.documents import type_of_id
from paperwasp.content.layout import Layout
from paperwasp.content.node_files import files_of
from paperwasp.errors import Corruption, PaperwaspError
from paperwasp.storage.attributes.array_file import read_arrays
from paperwasp.storage.documents.document_store import DocumentStore, StoredForm
from paperwasp.storage.index.files import check_file

Note = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CheckedCheckpoint:
    """What a checkpoint holds."""

    name: str
    applied: tuple[Mark, ...]
    timestamp_us: int
    documents: int
    """By its live rows."""
    files: int
    size_bytes: int
    layout: Layout
    bare: Counter[str]
    """By document type, how many documents earlier versions stored without their empty values."""


def checkpoint_directory(node: Path) -> Path | None:
    """The folder of the checkpoint that counts; None where there is none. Errors: Corruption."""
    current = node / "checkpoints" / "CURRENT"
    try:
        name = current.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    directory = node / "checkpoints" / name
    if not name.isdecimal() or not (directory / "manifest.json").is_file():
        raise Corruption(f"{current}: offset 0: names {name!r}, which is not a checkpoint")
    return directory


def check_checkpoint(node: Path, directory: Path, note: Note) -> CheckedCheckpoint:
    """Reads all files of a checkpoint. Errors: Corruption by file and offset; FileNotFoundError."""
    manifest = read_manifest(directory)
    layout = Layout.from_bytes(orjson.dumps(manifest["layout"]))
    sizes = [_check_arrays(directory / file, note) for *_, file in manifest["columns"]]
    rows = directory / "rows.arrays"
    sizes.append(_check_arrays(rows, note))
    index = node / manifest["index_directory"]
    for file in files_of(manifest["index"]):
        check_file(index, file)
        sizes.append(file["size_bytes"])
        note(file["size_bytes"])
    live = read_arrays(rows)["live"]
    documents = len(lids_of(live))
    bare: Counter[str] = Counter()
    stored, stored_bytes = _check_store(directory / "store", note, bare)
    if stored != documents:
        raise Corruption(
            f"{directory / 'store'}: holds {stored} documents; the checkpoint has {documents} rows of them"
        )
    return CheckedCheckpoint(
        name=directory.name,
        applied=tuple(Mark(*mark) for mark in manifest["applied"]),
        timestamp_us=manifest["timestamp_us"],
        documents=documents,
        files=len(sizes) + sum(1 for _ in (directory / "store").iterdir()),
        size_bytes=sum(sizes) + stored_bytes,
        layout=layout,
        bare=bare,
    )


def _check_arrays(path: Path, note: Note) -> int:
    try:
        read_arrays(path)
    except (KeyError, ValueError) as error:
        raise Corruption(f"{path}: offset 0: a damaged header: {error}") from None
    size_bytes = path.stat().st_size
    note(size_bytes)
    return size_bytes


def _check_store(directory: Path, note: Note, bare: Counter[str]) -> tuple[int, int]:
    """How many documents there are, and bytes on disk; counts those that are `bare`. RocksDB compares the checksum of
    each block that is read.

    It writes small files beside those that it opens: so it is given a folder of links to them. Errors: Corruption.
    """
    with tempfile.TemporaryDirectory(prefix="paperwasp-doctor-") as folder:
        for file in directory.iterdir():
            if file.suffix == ".json":
                shutil.copyfile(file, Path(folder, file.name))
            else:
                Path(folder, file.name).symlink_to(file.absolute())
        try:
            with closing(DocumentStore(Path(folder), read_only=True)) as store:
                documents, size_bytes = 0, store.size_bytes()
                for _, document in store.scan():
                    documents += 1
                    if document.form is StoredForm.BARE:
                        bare[type_of_id(document.id)] += 1
        except PaperwaspError as error:
            message = error.message.replace(folder, str(directory))
            raise Corruption(message if isinstance(error, Corruption) else f"{directory}: {message}") from error
    note(size_bytes)
    return documents, size_bytes
