"""The service, put together: which roles there are, how they find each other, in which order they start and stop.

    lock the data directory → bind both ports → config store → config server restores what was active
        (for each content cluster: log, node, its address) → listen → ready
    stop listening, finish what is in flight → config server → content nodes (apply, checkpoint) → unlock

Ports are bound first, so that a taken one is known before anything is touched, and listen last: who can connect
is served.

The data directory: `config/` (config store), `content/<cluster>/log` and `content/<cluster>/node`, `lock`.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.application import ApplicationPackage, build_model, load_package
from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.cluster.config_store import FileConfigStore
from paperwasp.cluster.messenger import EmbeddedMessenger, Messenger
from paperwasp.cluster.operation_log import FileOperationLog
from paperwasp.cluster.worker_pool import WorkerPool
from paperwasp.configserver.app import ConfigServerApp
from paperwasp.configserver.application_api import ContainerAddress
from paperwasp.configserver.server import EMPTY_MODEL, Activation, ConfigServer
from paperwasp.container.app import ContainerApp, body_limit_bytes, error_response
from paperwasp.container.server import HttpServer
from paperwasp.container.state import Running
from paperwasp.content.node import ContentNode
from paperwasp.content.search import Profiles, search
from paperwasp.content.service import ContentService, address_of
from paperwasp.errors import Conflict
from paperwasp.features import compile_profiles

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_ANY_HOST: Final = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says. A port of 0 takes any free one."""

    data_directory: Path
    host: str = "127.0.0.1"
    port: int = 8080
    config_port: int = 19071
    repair: bool = False
    """Go on after damage to the operation log: what follows the damage is put aside."""


class DataLocked(Conflict):
    """Another process serves the data directory."""


class DataDirectory:
    """The data directory, owned by this process while it is open."""

    def __init__(self, path: Path) -> None:
        """Errors: DataLocked, naming the process that has it."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(self._lock, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            hint = "stop it, or use another data directory"
            raise DataLocked(f"The data directory '{path}' is in use by process {owner}: {hint}") from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()}\n".encode())

    def close(self) -> None:
        os.close(self._lock)


class _Cluster:
    """One content cluster of this process: its log, its node, its address."""

    def __init__(self, directory: Path, cluster_id: str, messenger: Messenger, pool: WorkerPool, repair: bool) -> None:
        self.directory = directory
        self._id = cluster_id
        self._messenger = messenger
        self._profiles = Profiles()
        self._log = FileOperationLog(directory / "log", repair=repair)
        try:
            self._node = ContentNode(directory / "node", self._log, repair=repair)
        except BaseException:
            self._log.close()
            raise
        ContentService(self._node, pool, partial(search, profiles=self._profiles)).serve(messenger, cluster_id)

    def configure(self, generation: int, cluster: ContentCluster) -> None:
        self._node.configure(generation, cluster.schemas)
        self._profiles.keep_only(cluster.schemas)

    def stop(self) -> None:
        """Takes no more messages, applies what waits, writes a checkpoint."""
        self._messenger.withdraw(address_of(self._id))
        self._node.stop()
        self._log.close()


class ContentClusters:
    """The content clusters of the active application. One thread at a time."""

    def __init__(self, directory: Path, messenger: Messenger, repair: bool = False) -> None:
        self._directory = directory
        self._messenger = messenger
        self._repair = repair
        self._pool = WorkerPool("query")
        self._clusters: dict[str, _Cluster] = {}
        self._active: tuple[int, ApplicationModel] = (0, EMPTY_MODEL)

    def configure(self, generation: int, model: ApplicationModel) -> None:
        """Opens clusters that are new, and makes all serve these schemas; on an error, all serve what they did."""
        try:
            for cluster in model.content_clusters:
                self._configure(generation, cluster)
        except BaseException:
            before, previous = self._active
            for cluster in previous.content_clusters:
                self._configure(before, cluster)
            raise
        self._active = (generation, model)

    def _configure(self, generation: int, cluster: ContentCluster) -> None:
        if cluster.id not in self._clusters:
            directory = self._directory / cluster.id
            self._clusters[cluster.id] = _Cluster(directory, cluster.id, self._messenger, self._pool, self._repair)
        self._clusters[cluster.id].configure(generation, cluster)

    def remove(self, cluster_ids: tuple[str, ...]) -> None:
        """Deletes these clusters with their documents; those that are gone already are no error."""
        for cluster_id in cluster_ids:
            cluster = self._clusters.pop(cluster_id, None)
            if cluster is not None:
                cluster.stop()
            shutil.rmtree(self._directory / cluster_id, ignore_errors=True)

    def stop(self) -> None:
        for cluster in self._clusters.values():
            cluster.stop()
        self._pool.close()


class Service:
    """Everything in one process. Make it, `start` it in an event loop, `stop` it."""

    def __init__(self, settings: Settings) -> None:
        """Locks, binds, recovers; may take a while. Errors: DataLocked, PortTaken, Corruption, …"""
        with ExitStack() as closing:
            closing.callback(DataDirectory(settings.data_directory).close)
            messenger = EmbeddedMessenger()
            self._container = ContainerApp(messenger)
            self.container_server = self._listen(settings)
            closing.callback(self.container_server.close)
            self._content = ContentClusters(settings.data_directory / "content", messenger, settings.repair)
            closing.callback(self._content.stop)
            self.config = ConfigServer(FileConfigStore(settings.data_directory / "config"), _model_of, self._activate)
            address = ContainerAddress(_shown(settings.host), self.container_server.port)
            config_app = ConfigServerApp(self.config, address)
            closing.callback(config_app.close)
            self.config_server = HttpServer(config_app.handle, settings.host, settings.config_port)
            closing.callback(self.config_server.close)
            self.config.restore()
            self._closing = closing.pop_all()

    def _listen(self, settings: Settings) -> HttpServer:
        return HttpServer(
            self._container.handle,
            settings.host,
            settings.port,
            error_response=error_response,
            body_limit_bytes=body_limit_bytes,
            observe=self._container.metrics.observe,
        )

    def _activate(self, activation: Activation) -> None:
        """Makes this the application that clients meet. On a deployment thread, or before the start."""
        if activation.model is EMPTY_MODEL:
            self._container.configure(None)
            self._content.configure(activation.generation, EMPTY_MODEL)
            self._content.remove(activation.removed_clusters)
            return
        self._content.configure(activation.generation, activation.model)
        name = activation.application.application
        self._container.configure(Running(activation.generation, activation.model, name))

    def deploy(self, application: Path) -> int:
        """Deploys the package in a folder or archive; gives its generation. Errors: what is wrong with it."""
        prepared, error = self.config.prepare_and_activate(load_package(application).to_zip())
        if error is not None:
            raise error
        return prepared.session.id

    def start(self) -> None:
        """Listens on both ports. When it returns, both accept connections. Call it in the event loop."""
        self.config_server.start()
        self.container_server.start()

    async def stop(self) -> None:
        """Finishes what is in flight, checkpoints, closes."""
        servers = [asyncio.ensure_future(server.stop()) for server in (self.container_server, self.config_server)]
        await asyncio.wait(servers, timeout=limits.STOP_SECONDS)
        await asyncio.to_thread(self._closing.close)


def _shown(host: str) -> str:
    return "localhost" if host in _ANY_HOST else host


def _model_of(package: ApplicationPackage) -> ApplicationModel:
    return build_model(package, compile_profiles)


async def serve_until_signal(settings: Settings, application: Path | None, ready: Callable[[Service], None]) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once. Deploys `application` first, if given."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        stop.set()

    service = Service(settings)
    try:
        if application is not None:
            service.deploy(application)
        for number in _SIGNALS:
            loop.add_signal_handler(number, on_signal)
        gc.collect()
        gc.freeze()  # what was made up to here stays: no collection need look at it again
        service.start()
        ready(service)
        await stop.wait()
    finally:
        await service.stop()
