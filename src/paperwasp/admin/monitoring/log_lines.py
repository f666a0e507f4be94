"""Writes the lines of a log: for people, as JSON, or with Vespa's fields.

    text    2026-11-23 17:00:00,123 WARNING paperwasp.http: the message
    json    {"time":"2026-11-23T17:00:00.123456Z","level":"WARNING","logger":"paperwasp.http","message":"…", …}
    vespa   1795453200.123456 <tab> host <tab> process/thread <tab> service <tab> component <tab> level <tab> message

One record is one line in `json` and `vespa`, whatever is in its message.
Vespa: https://docs.vespa.ai/en/reference/operations/log-files.html
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final, Literal, get_args

import orjson

LogFormat = Literal["text", "json", "vespa"]
LOG_FORMATS: Final = get_args(LogFormat)
_LEVELS: Final = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))
_LOWEST: Final = "debug"
_SERVICES: Final = ("container", "configserver", "content", "client")
"""The packages that are services; all others log for the process as a whole."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def vespa_line(record: logging.LogRecord, host: str, most_characters: int | None = None) -> str:
    """A record with Vespa's fields and its end. A tab, a line's end or a backslash in the message is escaped."""
    message = _whole_message(record)
    level = next((name for least, name in _LEVELS if record.levelno >= least), _LOWEST)
    process = f"{record.process}/{(record.thread or 0) % 100_000}"
    shown = message[:most_characters].translate(_ESCAPES)
    fields = (f"{record.created:.6f}", host, process, service_of(record), record.name, level, shown)
    return "\t".join(fields) + "\n"


def service_of(record: logging.LogRecord) -> str:
    """The service that a record is of."""
    package = [*record.name.split("."), ""][1]
    return package if package in _SERVICES else "paperwasp"


def formatter(form: LogFormat, host: str) -> logging.Formatter:
    """Return the formatter that makes lines of that form."""
    if form == "json":
        return _JsonFormatter()
    return _VespaFormatter(host) if form == "vespa" else logging.Formatter(_TEXT)


_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _VespaFormatter(logging.Formatter):
    def __init__(self, host: str) -> None:
        super().__init__()
        self._host = host

    def format(self, record: logging.LogRecord) -> str:
        return vespa_line(record, self._host).removesuffix("\n")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        shown = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "service": service_of(record),
            "logger": record.name,
            "message": _sendable(record.getMessage()),
            "process": record.process,
            "thread": record.threadName,
        }
        if record.exc_info:
            shown["exception"] = _sendable(self.formatException(record.exc_info))
        return orjson.dumps(shown).decode()


def _whole_message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if record.exc_info:
        message = f"{message}\n{logging.Formatter().formatException(record.exc_info)}"
    return message


def _sendable(text: str) -> str:
    """The text, with `?` for what no UTF-8 can say."""
    return text.encode("utf-8", "replace").decode()
