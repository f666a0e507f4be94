"""The service, put together: which roles there are, how they find each other, in which order they start and stop.

    lock the data directory → bind both ports → config store → follow it: serve what is active
        (for each application: its content clusters, its containers) → config server → listen → ready
    stop taking deployments → containers finish what is in flight → follow no more → content nodes (apply, checkpoint)
        → unlock

Ports are bound first, so that a taken one is known before anything is touched, and listen last: who can connect
is served.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.admin.access import KnownKeys, Refusals
from paperwasp.admin.monitoring.api import MetricsSource
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.base.env import SYSTEM
from paperwasp.configserver import ApplicationId, ConfigServer, ConfigServerApp, ReindexedChunk, ServiceLog
from paperwasp.configserver.app import DeployGuard
from paperwasp.container.gate.keys import Accounts
from paperwasp.container.metrics import kind_of
from paperwasp.content.addresses import address_of
from paperwasp.coordination.config_store import ConfigStore, FileConfigStore
from paperwasp.coordination.messenger import EmbeddedMessenger, Messenger
from paperwasp.http.log_limit import SameSeldom
from paperwasp.http.messages import Request
from paperwasp.http.server import HttpServer
from paperwasp.http.tls_files import ReloadedTls, TlsSettings
from paperwasp.limits.monitoring import TELEMETRY_EXPORT_SECONDS
from paperwasp.server.roles.access_logs import AccessLogs, Logged
from paperwasp.server.roles.applications import Applications
from paperwasp.server.roles.backup_files import open_served
from paperwasp.server.roles.config_follower import ConfigFollower
from paperwasp.server.roles.containers import Containers
from paperwasp.server.roles.content_clusters import ContentClusters
from paperwasp.server.roles.data_directory import DataDirectory
from paperwasp.server.roles.listener import NoServer, Server
from paperwasp.server.roles.ports import PortRecord

if TYPE_CHECKING:
    from paperwasp.admin.monitoring.telemetry import Telemetry
    from paperwasp.coordination.operation_log import OpenLog, OperationLog

_log = logging.getLogger(__name__)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_PROCESS: Final = "local"
"""The name of this process in the config store, which no other one has."""
_ANY_HOST: Final = (None, "0.0.0.0", "::", "")


class Settings(Struct, frozen=True):
    """The settings of the command line. A port of 0 takes any free one."""

    data_directory: Path
    host: str | None = "127.0.0.1"
    """None: no port is opened, and requests come from this process only."""
    port: int = 8080
    config_port: int = 19071
    repair: bool = False
    """Go on after damage to the operation log: what follows the damage is put aside."""
    allow_python_components: bool = False
    """Whether applications may have components that are written in Python, which do here whatever they want."""
    query_expressions: bool = True
    """Whether queries may bring ranking expressions, where services.xml does not say otherwise."""
    query_memory_bytes: int = limits.QUERY_MEMORY_BYTES
    """The memory for the tensors of a query, where services.xml does not say."""
    authenticates: bool = False
    """Whether clients of containers that do not say otherwise must tell who they are."""
    authenticates_deployments: bool = False
    """Whether whoever speaks to the config server must have a key of scope deploy, or a certificate that it trusts."""
    config_tls: TlsSettings | None = None
    """Of the config server's port."""
    access_log: Logged = "auto"
    """Whether the answers of containers are logged."""
    otlp_endpoint: str | None = None
    """Where a collector of OpenTelemetry takes traces and metrics; None: nothing is sent."""


class Backends(Struct, frozen=True):
    """The config store, messenger and operation logs of a process. Nothing else knows which these are."""

    store: ConfigStore
    messenger: Messenger
    open_log: OpenLog
    close: Callable[[], None] = lambda: None


def embedded_backends(data: DataDirectory) -> Backends:
    """Files in the data directory, and calls within the process. Errors: Corruption."""
    return Backends(FileConfigStore(data.config), EmbeddedMessenger(), open_file_log)


def piped_backends(data: DataDirectory) -> Backends:
    """As `embedded_backends`, but every message goes as bytes through another process. Errors: Corruption."""
    from paperwasp.coordination.messages.envelope import Codec
    from paperwasp.coordination.messages.operations import CONVERSIONS as ABOUT_DOCUMENTS
    from paperwasp.coordination.pipe_messenger import PipeMessenger
    from paperwasp.search.query_messages import CONVERSIONS as ABOUT_QUERIES

    messenger = PipeMessenger(Codec((*ABOUT_DOCUMENTS, *ABOUT_QUERIES)))
    return Backends(FileConfigStore(data.config), messenger, open_file_log, messenger.close)


def open_file_log(directory: Path, repair: bool) -> OperationLog:
    """The operation log in that folder. Errors: Corruption."""
    from paperwasp.coordination.operation_log import FileOperationLog

    return FileOperationLog(directory, repair=repair)


class ServerProcess:
    """Everything in one process. Make it, `start` it in an event loop, `stop` it."""

    def __init__(self, settings: Settings, connect: Callable[[DataDirectory], Backends] = embedded_backends) -> None:
        """Locks, binds, recovers; may take a while. `connect` chooses what its data and messages go through.

        Errors: DataLocked, PortTaken, Corruption, …
        """
        self._otlp_endpoint = settings.otlp_endpoint
        self._telemetry: Telemetry | None = None
        with ExitStack() as closing:
            data = DataDirectory(settings.data_directory)
            closing.callback(data.close)
            backends = connect(data)
            closing.callback(backends.close)
            store, messenger = backends.store, backends.messenger
            accounts = Accounts(KnownKeys(data.keys), Refusals(), SYSTEM, settings.authenticates)
            access_logs = AccessLogs(data.logs / "access", settings.access_log)
            closing.callback(access_logs.close_all)
            self.containers = Containers(messenger, settings.host, settings.port, accounts, access_logs)
            closing.callback(self.containers.close)
            content = ContentClusters(data.content, messenger, backends.open_log, settings.repair)
            closing.callback(content.stop)
            self.applications = Applications(content, self.containers, _shown(settings.host))
            self.config = ConfigServer(
                store,
                partial(_model_of, settings=settings),
                reindex_chunk=partial(_reindex, messenger),
                scratch=data.path,
            )
            self._follower = ConfigFollower(
                _PROCESS, self.config.sessions, self.config.models, self.config.convergence, self.applications
            )
            closing.callback(self._follower.close)
            closing.callback(self.config.close)
            log = ServiceLog(data.logs, _shown(settings.host))
            closing.callback(log.close)
            guard = DeployGuard(accounts.keys, accounts.refusals) if settings.authenticates_deployments else None
            self._config_app = ConfigServerApp(
                self.config,
                restart=self.applications.restart,
                logs=log,
                open_files=partial(open_served, data, store, content),
                guard=guard,
            )
            closing.callback(self._config_app.close)
            self.config_server = _config_server(self._config_app, settings)
            closing.callback(self.config_server.close)
            if settings.config_tls is not None:
                self.config_server.secure(ReloadedTls(settings.config_tls))
            self.containers.configure_ports(PortRecord(store), {self.config_server.port: "the config server"})
            closing.enter_context(_logging_to(log))
            self._follower.start()
            self.config.restore()
            data.mark_opened()
            self._closing = closing.pop_all()

    def deploy(self, application: Path) -> int:
        """Deploys the package in a folder or archive, and logs what there is to tell of it; gives its generation.

        Errors: what is wrong with it.
        """
        from paperwasp.application.package import load_package

        return self.deploy_archive(load_package(application).to_zip())

    def deploy_archive(self, archive: bytes) -> int:
        """As `deploy`, of a zipped package."""
        prepared, error = self.config.deployments.prepare_and_activate(archive)
        for finding in prepared.findings:
            _log.log(logging.getLevelNamesMapping()[finding.level], "%s", finding)
        if error is not None:
            raise error
        return prepared.session.id

    def start(self) -> None:
        """Listens on all ports. When it returns, they accept connections. Call it in the event loop."""
        if self._otlp_endpoint is not None:
            self._start_telemetry(self._otlp_endpoint)
        self.config_server.start()
        self.containers.start()
        self.config.start()
        self._follower.look_from_time_to_time(self.config.catch_up_all)

    def _start_telemetry(self, endpoint: str) -> None:
        """Sends traces and metrics from now on. In the event loop."""
        from paperwasp.admin.monitoring.telemetry import Reading, Telemetry

        async def read() -> list[Reading]:
            sources: list[tuple[dict[str, str], MetricsSource]] = [({}, self._config_app.state)]
            for (application, cluster), app in self.containers.apps().items():
                sources.append(({"application": application, "cluster": cluster}, app.state))
            return [Reading(names, await source.values(), source.histograms()) for names, source in sources]

        loop = asyncio.get_running_loop()

        def wait() -> list[Reading]:
            return asyncio.run_coroutine_threadsafe(read(), loop).result(TELEMETRY_EXPORT_SECONDS)

        self._telemetry = Telemetry(endpoint, lambda method, path: kind_of(Request(method, path)), wait)
        self.containers.send_to(self._telemetry)

    async def stop(self) -> None:
        """Finishes what is in flight, checkpoints, closes."""
        await _within(self.config_server.stop())
        await asyncio.to_thread(self._config_app.close)
        await _within(self.containers.stop())
        if self._telemetry is not None:
            await asyncio.to_thread(self._telemetry.close)
        await asyncio.to_thread(self._closing.close)


def _config_server(app: ConfigServerApp, settings: Settings) -> Server:
    """Errors: PortTaken, Conflict."""
    if settings.host is None:
        return NoServer(settings.config_port)
    server = HttpServer(app.handle, settings.host, settings.config_port, observe=app.observe)
    app.count_traffic(server.port, server.traffic)
    return server


async def _within(work: Coroutine[object, object, None]) -> None:
    """Waits for the end of the work, but not for ever."""
    await asyncio.wait([asyncio.ensure_future(work)], timeout=limits.STOP_SECONDS)


def allow_open_files() -> None:
    """Lets the process have as many descriptors as the system allows it, up to what it may need. Warns of fewer."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.OPEN_FILES if most == resource.RLIM_INFINITY else min(limits.OPEN_FILES, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        allowed = wanted
    if allowed != resource.RLIM_INFINITY and allowed < limits.OPEN_FILES:
        _log.warning(
            "The system allows %d open files; %d are recommended (ulimit -n): with fewer, many connections at once, "
            "or a large index, may fail",
            allowed,
            limits.OPEN_FILES,
        )


def _shown(host: str | None) -> str:
    return "localhost" if host in _ANY_HOST else str(host)


def _model_of(package: ApplicationPackage, application: ApplicationId, *, settings: Settings) -> ApplicationModel:
    from paperwasp.application.build import build_model
    from paperwasp.application.preprocess import DeployProperties
    from paperwasp.server.schema_check import check_schema

    properties = DeployProperties(instance=application.instance)
    return build_model(
        package,
        check_schema,
        datetime.now(UTC).date(),
        properties,
        allow_python=settings.allow_python_components,
        authenticates=settings.authenticates,
        query_expressions=settings.query_expressions,
        query_memory_bytes=settings.query_memory_bytes,
    )


def _reindex(
    messenger: Messenger, application: ApplicationId, cluster_id: str, document_type: str, token: bytes, documents: int
) -> ReindexedChunk:
    """Indexes the next documents of a type again. Errors: those of the content cluster; Timeout."""
    from paperwasp.coordination.messages.documents import ReindexRequest

    request = ReindexRequest(document_type, token, documents)
    address = address_of(str(application), cluster_id)
    response: ReindexedChunk = messenger.call(address, request, limits.REINDEXING_CALL_SECONDS)
    return response


@contextmanager
def _logging_to(handler: logging.Handler) -> Iterator[None]:
    """Context in which the log of the process goes to `handler` too, with the information of our own loggers."""
    logging.getLogger("paperwasp").setLevel(logging.INFO)
    root, front, same_seldom = logging.getLogger(), logging.getLogger("paperwasp.http"), SameSeldom()
    root.addHandler(handler)
    front.addFilter(same_seldom)
    try:
        yield
    finally:
        front.removeFilter(same_seldom)
        root.removeHandler(handler)


def _settle_heap() -> None:
    """Keeps all objects of this moment out of later garbage collections: most of them stay as long as the process.
    Later ones come less often than they would: nearly all that is made for a request goes without them."""
    gc.collect()
    gc.freeze()
    gc.collect()  # of nothing: a full one is due when a quarter more has come than the last has left
    gc.set_threshold(limits.GARBAGE_OBJECTS, limits.GARBAGE_ROUNDS, limits.GARBAGE_ROUNDS)


async def serve_until_signal(
    settings: Settings, application: Path | None, ready: Callable[[ServerProcess], None]
) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once. Deploys `application` first, if given."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        stop.set()

    allow_open_files()
    service = ServerProcess(settings)
    try:
        if application is not None:
            service.deploy(application)
        for number in _SIGNALS:
            loop.add_signal_handler(number, on_signal)
        _settle_heap()
        if not service.config.applications.running:  # the code for applications is loaded with the first of them
            service.applications.after_next_change = _settle_heap
        service.start()
        ready(service)
        await stop.wait()
    finally:
        await service.stop()
