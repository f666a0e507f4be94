"""How far the operation log had come: a file beside the log that names the place up to which appends have returned.

The log alone cannot tell that its end was lost: a file that was cut between two records looks like one that never had
more. So after every append that was synced, the end is written here, in place. It never says more than is durable, for
it is written later than the log is synced; after a power cut it may say less, since it is only synced where a file of
the log begins or the log is closed. Format: docs/internals/formats/operation-log.md. One thread writes.
"""

from __future__ import annotations

import logging
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from paperwasp.base.env import sync_data
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.errors import LogDamage

_LOGGER: Final = logging.getLogger(__name__)
NAME: Final = "END"
_MAGIC: Final = b"PWASPEND"
_END: Final = struct.Struct("<8sQQ")
_CRC: Final = struct.Struct("<I")
_SIZE_BYTES: Final = _END.size + _CRC.size


class LogEnd(NamedTuple):
    """A place in the log: the number of a file, and how many of its bytes were acknowledged."""

    number: int
    size_bytes: int

    def encode(self) -> bytes:
        content = _END.pack(_MAGIC, self.number, self.size_bytes)
        return content + _CRC.pack(crc32(content))


def read_log_end(directory: Path) -> LogEnd | None:
    """The end of the log in a folder, up to which it had acknowledged; None without a file. Errors: Corruption."""
    path = directory / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    content = data[: _END.size]
    if len(data) != _SIZE_BYTES or data[_END.size :] != _CRC.pack(crc32(content)):
        raise LogDamage(f"{path}: offset 0: the checksum differs, so how far the log had come is not known")
    magic, number, size_bytes = _END.unpack(content)
    if magic != _MAGIC:
        raise LogDamage(f"{path}: offset 0: this is not the end of an operation log")
    return LogEnd(number, size_bytes)


class LogEndFile:
    """Writes the end of one log."""

    def __init__(self, directory: Path, end: LogEnd) -> None:
        """Durable when it returns. Errors: OSError."""
        self._path = directory / NAME
        if not self._path.is_file() or self._path.stat().st_size != _SIZE_BYTES:
            REAL_DISK.write_whole(self._path, end.encode())
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        self._has_failed = False
        self.write(end)  # in place, which needs no room
        self.sync()

    def write(self, end: LogEnd) -> bool:
        """Survives the end of the process from now on. A failure costs the knowledge only, is logged once, and gives
        False."""
        try:
            os.pwrite(self._descriptor, end.encode(), 0)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                _LOGGER.warning("%s: the end of the operation log cannot be noted: %s", self._path, error)
            self._has_failed = True
        return not self._has_failed

    def sync(self) -> bool:
        """Survives the end of the system, too; False: it may not."""
        try:
            sync_data(self._descriptor)
        except OSError:
            return False
        return True

    def close(self) -> None:
        self.sync()
        os.close(self._descriptor)
