"""The commands `backup` and `restore`: where the files come from, and bars that show how far they are."""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson
from msgspec import Struct
from rich.console import Console

from paperwasp.admin.backup.archive import (
    backup_bytes,
    check_destination,
    is_archive,
    known_files,
    restore_backup,
    verify_backup,
    write_backup,
)
from paperwasp.base.file_snapshot import Manifest, Note, SourceFile, packed
from paperwasp.client.connection import ANYBODY, Access, Unreachable
from paperwasp.client.terminal import byte_bar
from paperwasp.errors import InvalidInput
from paperwasp.limits.backup import BACKUP_TIMEOUT_SECONDS

_SNAPSHOT: Final = "/backup/v1/snapshot"


class Backup(Struct, frozen=True):
    """Where a backup goes, and an earlier one, a folder, whose equal files are linked."""

    destination: Path
    earlier: Path | None = None

    def check(self) -> None:
        """Errors: Conflict, InvalidInput where it cannot be written."""
        check_destination(self.destination)
        if self.earlier is not None and is_archive(self.destination):
            raise InvalidInput("--since links files of an earlier backup, so that both must be folders")


def back_up_service(backup: Backup, config_url: str, access: Access = ANYBODY) -> Manifest:
    """Has a running service send all of its files. Errors: Unreachable; what the service answers; DamagedBackup."""
    backup.check()
    known = known_files(backup.earlier) if backup.earlier is not None else {}
    with closing(_connection(config_url, access)) as connection:
        try:
            body = orjson.dumps({"known": list(known)}) if known else b""
            connection.request("POST", _SNAPSHOT, body, access.make_headers())
            answer = connection.getresponse()
        except (http.client.HTTPException, OSError) as error:
            raise Unreachable(f"No answer from {config_url}: {error}. Is `paperwasp serve` running?") from None
        if answer.status != 200:
            raise InvalidInput(f"{config_url} made no backup: {_reason(answer)}")
        total_bytes = int(answer.headers.get("Paperwasp-Bytes", "0"))
        with _bar("Backing up", total_bytes) as note:
            return write_backup(_Answer(answer), backup.destination, known, note)


def back_up_files(backup: Backup, files: list[SourceFile]) -> Manifest:
    """Backs up files of a data directory that nobody serves; closes them. Errors: DamagedBackup; Conflict; OSError."""
    backup.check()
    known = known_files(backup.earlier) if backup.earlier is not None else {}
    stream = io.BufferedReader(_Pieces(packed(files, frozenset(known))))
    with _bar("Backing up", sum(file.size_bytes for file in files)) as note:
        return write_backup(stream, backup.destination, known, note)


def verify(backup: Path) -> Manifest:
    """Reads all of a backup. Errors: DamagedBackup, UnknownBackup, NotFound."""
    with _bar("Verifying", backup_bytes(backup)) as note:
        return verify_backup(backup, note)


def restore(backup: Path, directory: Path, *, replace: bool, check: Callable[[Path], None]) -> Manifest:
    """Restores into a data directory whose lock the caller has. Errors: those of `restore_backup`."""
    with _bar("Restoring", backup_bytes(backup)) as note:
        return restore_backup(backup, directory, replace=replace, note=note, check=check)


def describe(manifest: Manifest) -> str:
    """Describe the content of a backup in a line of output."""
    size = f"{manifest.size_bytes / 1e6:.1f} MB" if manifest.size_bytes >= 100_000 else f"{manifest.size_bytes} bytes"
    return f"{len(manifest.files)} files, {size}, of {manifest.created}"


def _connection(url: str, access: Access) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"'{url}' is not an address like http://127.0.0.1:19071")
    if parts.scheme == "https":
        tls = access.make_tls()
        return http.client.HTTPSConnection(
            parts.hostname, parts.port or 443, timeout=BACKUP_TIMEOUT_SECONDS, context=tls
        )
    return http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=BACKUP_TIMEOUT_SECONDS)


def _reason(answer: http.client.HTTPResponse) -> str:
    try:
        return str(orjson.loads(answer.read())["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError, http.client.HTTPException, OSError):
        return f"status {answer.status}"


def _bar(what: str, total_bytes: int) -> AbstractContextManager[Note]:
    return byte_bar(what, total_bytes, Console(stderr=True))


class _Pieces(io.RawIOBase):
    """Pieces as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def readable(self) -> bool:
        return True


class _Answer:
    """The body of an answer as a file. What breaks it off is its end: the backup then lacks its manifest."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._answer.read(size if size >= 0 else None)
        except (http.client.HTTPException, OSError):
            return b""
