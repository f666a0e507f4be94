"""The data directory: what is where in it, and the lock that says whose it is.

config/                                              the config store: sessions, packages, what is active
content/<tenant>.<application>.<instance>/<cluster>/ `log` (operations) and `node` (checkpoints) of a content cluster
keys/                                                bearer keys, which commands make and revoke
logs/                                                what `vespa log` shows; `access`: the answers of containers
version                                              of what is here: see `data_version`
lock                                                 held, with its number in it, by the process that serves
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from paperwasp.admin.backup.placing import finish_restore
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.errors import Conflict, NotFound
from paperwasp.server.roles.data_version import check_version, write_version

_LOG: Final = logging.getLogger("paperwasp.service")


def keys_of(path: Path) -> Path:
    """The folder of the keys of a data directory, which may be used without the lock."""
    return path / "keys"


class DataLocked(Conflict):
    """Another process serves the data directory."""


class UnusableData(Conflict):
    """The data directory cannot be made, or not be written to."""


class DataDirectory:
    """The data directory, owned by this process while it is open."""

    def __init__(self, path: Path) -> None:
        """Errors: DataLocked, naming the process that has it; UnusableData; OtherVersion, with nothing changed."""
        self.path = path
        check_version(path)
        try:
            REAL_DISK.make_directory(path)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnusableData(f"The data directory '{path}' cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(self._lock, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            if owner == str(os.getpid()):
                said = "by another service of this process: close that one"
            else:
                said = f"by process {owner}: stop it"
            raise DataLocked(f"The data directory '{path}' is in use {said}, or use another data directory") from None
        self._say_whose_it_is()
        if finish_restore(path):
            check_version(path)
            _LOG.warning("A restore of the data directory '%s' had been broken off, and has been finished", path)

    def _say_whose_it_is(self) -> None:
        """Only a message needs it: a full disk, which may have no room for this, keeps nobody from starting."""
        number = f"{os.getpid()}\n".encode()
        with suppress(OSError):
            os.pwrite(self._lock, number, 0)
            os.ftruncate(self._lock, len(number))

    @property
    def config(self) -> Path:
        return self.path / "config"

    @property
    def content(self) -> Path:
        return self.path / "content"

    @property
    def keys(self) -> Path:
        return keys_of(self.path)

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def mark_opened(self) -> None:
        """Mark the directory as one of this version: all of it could be read."""
        write_version(self.path)

    def close(self) -> None:
        os.close(self._lock)


@contextmanager
def existing_data_directory(path: Path) -> Iterator[DataDirectory]:
    """A data directory that is there, owned while the block runs. Errors: NotFound; those of `DataDirectory`."""
    if not (path / "config").is_dir():
        raise NotFound(f"'{path}' is not a data directory: it has no folder 'config'")
    data = DataDirectory(path)
    try:
        yield data
    finally:
        data.close()
