"""What `serve` says of itself: the options for logs and telemetry."""

from __future__ import annotations

import logging
import socket
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated

import typer

from paperwasp.operations.monitoring.log_formats import formatter


class Logged(StrEnum):
    """Whether answers are logged."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Form(StrEnum):
    """The forms of `monitoring.log_formats`."""

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
