"""The command `serve`: runs the service."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
import time
from enum import StrEnum
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from paperwasp import limits
from paperwasp.admin.monitoring.log_lines import formatter
from paperwasp.base.env import limit_arenas, process_seconds
from paperwasp.base.records import replace
from paperwasp.base.threads import is_any_busy
from paperwasp.cli.options import (
    DEFAULT_DATA,
    AllowPython,
    Authenticate,
    AuthenticateDeployments,
    ConfigCertificate,
    ConfigClients,
    ConfigKey,
    QueryExpressions,
    QueryMemory,
    shown_places,
)
from paperwasp.http.tls_files import PemFile, TlsSettings

if TYPE_CHECKING:
    from paperwasp.server.roles.containers import Containers

# Options for logs and telemetry.


class Logged(StrEnum):
    """Whether answers are logged."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Form(StrEnum):
    """The formats of a log's lines: those of `admin.monitoring.log_lines`."""

    TEXT = "text"
    JSON = "json"
    VESPA = "vespa"


class Level(StrEnum):
    """Levels of Python's logging."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


AccessLog = Annotated[
    Logged, typer.Option(help="Log every answer to DATA_DIR/logs/access, as JSON; auto: where services.xml says so.")
]
LogFormat = Annotated[
    Form, typer.Option(help="How to log to standard error: for people, a JSON object a line, or with Vespa's fields.")
]
LogLevel = Annotated[Level, typer.Option(help="The least that is logged to standard error.")]


def _check_endpoint(endpoint: str | None) -> str | None:
    if endpoint is not None and find_spec("opentelemetry") is None:
        raise typer.BadParameter(
            "this needs more: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
        )
    return endpoint


OtlpEndpoint = Annotated[
    str | None,
    typer.Option(
        callback=_check_endpoint,
        help="Send traces and metrics to this OpenTelemetry collector (http://localhost:4318).",
    ),
]


def log_to_standard_error(form: Form, level: Level) -> None:
    """Has the process log there."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(form.value, socket.gethostname()))
    handler.setLevel(level.value.upper())
    logging.getLogger().addHandler(handler)


_MOST_PORT: Final = 65_535


def serve(
    application: Annotated[
        Path | None, typer.Argument(help="An application package to deploy: a folder with services.xml, or its zip.")
    ] = None,
    data_dir: Annotated[Path, typer.Option(help="Where documents and applications are kept.")] = DEFAULT_DATA,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=_MOST_PORT, help="For documents and queries; 0 takes a free one.")
    ] = 8080,
    config_port: Annotated[
        int, typer.Option(min=0, max=_MOST_PORT, help="For deployments; 0 takes a free one.")
    ] = 19071,
    repair: Annotated[
        bool, typer.Option("--repair", help="Start in spite of a damaged operation log; what follows is put aside.")
    ] = False,
    allow_python_components: AllowPython = False,
    query_expressions: QueryExpressions = True,
    query_memory: QueryMemory = None,
    authenticate: Authenticate = False,
    authenticate_deployments: AuthenticateDeployments = False,
    config_tls_certificate: ConfigCertificate = None,
    config_tls_key: ConfigKey = None,
    config_tls_clients: ConfigClients = None,
    access_log: AccessLog = Logged.AUTO,
    log_format: LogFormat = Form.TEXT,
    log_level: LogLevel = Level.WARNING,
    otlp_endpoint: OtlpEndpoint = None,
) -> None:
    """Run the service in the foreground. Ctrl-C or SIGTERM stops it cleanly; a restart has everything back."""
    started = time.monotonic()
    if port == config_port != 0:
        raise typer.BadParameter(f"{port} is the port of both --port and --config-port")
    config_tls = _config_tls(config_tls_certificate, config_tls_key, config_tls_clients)
    log_to_standard_error(log_format, log_level)
    limit_arenas(limits.MEMORY_ARENAS)
    from paperwasp.base.service_manager import READY, notify
    from paperwasp.server.process import ServerProcess, Settings, serve_until_signal

    def say_ready(service: ServerProcess) -> None:
        address, *others = _addresses(host, service.containers)
        typer.echo(
            f"Ready in {process_seconds() or time.monotonic() - started:.2f} s: documents and queries on {address}, "
            f"deployments on http{'s' if config_tls else ''}://{host}:{service.config_server.port}, data in {data_dir}"
        )
        _tell_if_open(host, service.config_server.port, authenticate_deployments)
        sys.stdout.writelines(f"{other}\n" for other in others)
        sys.stdout.flush()
        notify(READY)

    settings = Settings(data_dir, host, port, config_port, repair, allow_python_components)
    settings = replace(settings, query_expressions=query_expressions, authenticates=authenticate)
    settings = replace(settings, query_memory_bytes=_query_memory_bytes(query_memory))
    settings = replace(settings, authenticates_deployments=authenticate_deployments, config_tls=config_tls)
    settings = replace(settings, access_log=access_log.value, otlp_endpoint=otlp_endpoint)
    with shown_places(application):
        asyncio.run(serve_until_signal(settings, application, say_ready))
    if is_any_busy():  # a component that does not return; what it returned to would be half gone
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def _addresses(host: str, containers: Containers) -> list[str]:
    """Where documents and queries go: to the port of the command line, or the first that services.xml names where no
    container has that; then a line about each container cluster on another port."""
    front = f"{containers.front_scheme}://{host}:{containers.front_port}"
    addresses = {role: f"{containers.scheme(role)}://{host}:{port}" for role, (port, _) in containers.serving().items()}
    if addresses and front not in addresses.values():
        front = next(iter(addresses.values()))
    lines = [
        f"Container cluster '{cluster}' of application {application} on {address}"
        for (application, cluster), address in addresses.items()
        if address != front
    ]
    return [front, *lines]


def _query_memory_bytes(text: str | None) -> int:
    """Errors: BadParameter."""
    if text is None:
        return limits.QUERY_MEMORY_BYTES
    from paperwasp.application.grammar import QUERY_MEMORY, is_query_memory, size_bytes

    found = size_bytes(text)
    if found is None or not is_query_memory(found):
        raise typer.BadParameter(f"'{text}' is not {QUERY_MEMORY}", param_hint="--query-memory")
    return found


def _tell_if_open(host: str, config_port: int, authenticates: bool) -> None:
    """Says that others may deploy, where they reach the config port and it asks nobody who it is."""
    if not authenticates and is_reached_by_others(host):
        typer.echo(
            f"Whoever reaches port {config_port} may deploy and delete everything: "
            "keep it from others, or start with --authenticate-deployments (docs/reference/security.md)"
        )


def is_reached_by_others(host: str) -> bool:
    """Whether others than this machine reach the address."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _config_tls(certificate: Path | None, key: Path | None, clients: Path | None) -> TlsSettings | None:
    """The TLS of the config port; None: it has none. Errors: BadParameter."""
    if certificate is None or key is None:
        if certificate is not None or key is not None or clients is not None:
            raise typer.BadParameter("TLS on the config port needs both --config-tls-certificate and --config-tls-key")
        return None
    return TlsSettings(
        PemFile(str(certificate)),
        PemFile(str(key)),
        None if clients is None else PemFile(str(clients)),
        verify=ssl.CERT_NONE if clients is None else ssl.CERT_OPTIONAL,
    )
