"""The access logs of the containers of this process: which there are, and where they are written."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from paperwasp.admin.monitoring.access_log import AccessLog
from paperwasp.admin.monitoring.log_files import Compression, LogFiles
from paperwasp.base.patterns import compile_later

if TYPE_CHECKING:
    from paperwasp.application.services_model import Container

Logged = Literal["auto", "on", "off"]
"""Whether answers are logged: as `<accesslog>` of services.xml says, always, or never."""
_NOT_IN_NAMES: Final = compile_later("[^a-zA-Z0-9_-]")
_DEFAULT_APPLICATION: Final = "default.default.default"


class AccessLogs:
    """Opens and closes the logs of container clusters. Any threads."""

    def __init__(self, directory: Path, logged: Logged = "auto") -> None:
        self._directory = directory
        self._logged = logged
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str], tuple[Compression, AccessLog]] = {}

    def log_of(self, application: str, container: Container) -> AccessLog | None:
        """The log of a container, opened if need be; None: its answers are not logged."""
        key, settings = (application, container.id), container.access_log
        if self._logged == "off" or (self._logged == "auto" and settings is None):
            self.close(*key)
            return None
        compression: Compression = settings.compression if settings is not None else "zstd"
        with self._lock:
            before, log = self._open.get(key, (None, None))
            if log is not None and before == compression:
                return log
            opened = AccessLog(LogFiles(self._directory, _name(*key), compression))
            self._open[key] = compression, opened
        if log is not None:
            log.close()
        return opened

    def close(self, application: str, cluster: str) -> None:
        """Closes the log of a container, where there is one."""
        with self._lock:
            _, log = self._open.pop((application, cluster), (None, None))
        if log is not None:
            log.close()

    def keep(self, application: str, clusters: Collection[str]) -> None:
        """Closes the logs of containers that the application has no more."""
        for owner, cluster in list(self._open):
            if owner == application and cluster not in clusters:
                self.close(owner, cluster)

    def close_all(self) -> None:
        for application, cluster in list(self._open):
            self.close(application, cluster)


def _name(application: str, cluster: str) -> str:
    """`JsonAccessLog.default`: Vespa's name, with the application before the cluster where it is not the default."""
    parts = [cluster] if application == _DEFAULT_APPLICATION else [*application.split("."), cluster]
    return "JsonAccessLog." + "__".join(_NOT_IN_NAMES.sub("_", part) for part in parts)
