"""A backup of the whole service over HTTP: `POST /backup/v1/snapshot` answers with the files of one moment.

The service only reads and sends; where the backup is written is the affair of who asks, with rights of its own. The
request may name files that it has by their SHA-256, `{"known": ["…"]}`. Format: docs/internals/formats/backup.md.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from paperwasp.base.file_snapshot import SourceFile, close_all, packed
from paperwasp.base.threads import ThreadPool
from paperwasp.errors import InvalidInput, Overload
from paperwasp.http.messages import Answer, Request, StreamedResponse
from paperwasp.http.routing import Router
from paperwasp.limits.backup import BACKUP_KNOWN_FILES

SNAPSHOT: Final = "/backup/v1/snapshot"
OpenFiles = Callable[[], list[SourceFile]]
"""All files of the service as of one moment, open."""


class BackupApi:
    """The handler of `/backup/v1/snapshot`. One backup at a time: each keeps many files open."""

    def __init__(self, open_files: OpenFiles) -> None:
        self._open_files = open_files
        self._busy = threading.Lock()

    def bind(self, router: Router) -> None:
        router.add("POST", SNAPSHOT, self.snapshot)

    async def snapshot(self, request: Request, names: Mapping[str, str]) -> Answer:
        """All files, as a stream. Errors: InvalidInput; Overload while another backup is sent; Conflict."""
        known = _known(request.body)
        if not self._busy.acquire(blocking=False):
            raise Overload("Another backup of this service is being made: try again when it is done")
        sending = _Sending(known, self._busy.release)
        files = await sending.open(self._open_files)
        size_bytes = sum(file.size_bytes for file in files)
        headers = {"Paperwasp-Files": str(len(files)), "Paperwasp-Bytes": str(size_bytes)}
        return StreamedResponse(200, sending, "application/x-tar", headers)


class _Sending(AsyncGenerator[bytes, None]):
    """The pieces of one backup, each read on a thread of its own, which also closes the files: at the end, or when the
    client is gone, also before the first piece.

    What cannot be read ends the answer early, without a manifest.
    """

    def __init__(self, known: frozenset[str], at_end: Callable[[], None]) -> None:
        self._known = known
        self._at_end = at_end
        self._thread = ThreadPool("configserver-backup", 1)
        self._files: list[SourceFile] = []
        self._pieces: Iterator[bytes] = iter(())
        self._is_closed = False

    async def open(self, open_files: OpenFiles) -> list[SourceFile]:
        """Opens the files; after an error all is closed. Errors: those of `open_files`."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._open, open_files)
        except BaseException:
            await self.aclose()
            raise

    def _open(self, open_files: OpenFiles) -> list[SourceFile]:
        self._files = open_files()
        self._pieces = packed(self._files, self._known)
        return self._files

    async def asend(self, value: None) -> bytes:
        """The next piece."""
        piece = await asyncio.get_running_loop().run_in_executor(self._thread, next, self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def athrow(self, kind: Any, value: Any = None, traceback: Any = None) -> bytes:
        """Ends the backup. Errors: the given one."""
        await self.aclose()
        raise kind if value is None else value

    async def aclose(self) -> None:
        """Closes the files when what is being read has been read."""
        if not self._is_closed:
            self._is_closed = True
            self._thread.submit(self._close)
            self._thread.shutdown(wait=False)

    def _close(self) -> None:
        close_all(self._files)
        self._at_end()


def _known(body: bytes) -> frozenset[str]:
    """Errors: InvalidInput."""
    if not body:
        return frozenset()
    try:
        content = orjson.loads(body)
        known = content["known"]
        if not isinstance(known, list) or not all(isinstance(one, str) for one in known):
            raise TypeError
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise InvalidInput(
            'The body of a request for a backup is {"known": ["SHA-256 of a file", …]}, or empty'
        ) from None
    if len(known) > BACKUP_KNOWN_FILES:
        raise InvalidInput(f"{len(known)} files are known; at most {BACKUP_KNOWN_FILES}")
    return frozenset(known)
