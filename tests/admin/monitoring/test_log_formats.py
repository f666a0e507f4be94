"""Lines of logs in three forms: whatever is logged, a record is one line, and says who logged it."""

from __future__ import annotations

import logging
import sys

import orjson
import pytest

from paperwasp.admin.monitoring.log_files import LOG_FORMATS, LogFormat, formatter


def _record(message: str, *, fails: bool = False, name: str = "paperwasp.content.node") -> logging.LogRecord:
    error = None
    if fails:
        try:
            raise ValueError("a\nb")
        except ValueError:
            error = sys.exc_info()
    made = logging.LogRecord(name, logging.WARNING, "file.py", 1, message, (), error)
    made.created, made.process, made.thread, made.threadName = 1000.25, 12, 345, "writer"
    return made


def test_json() -> None:
    assert orjson.loads(formatter("json", "h").format(_record("two\nlines"))) == {
        "time": "1970-01-01T00:16:40.250000Z",
        "level": "WARNING",
        "service": "content",
        "logger": "paperwasp.content.node",
        "message": "two\nlines",
        "process": 12,
        "thread": "writer",
    }


def test_vespa() -> None:
    """Authority: Vespa's page on log files: seconds, host, process/thread, service, component, level, message."""
    line = formatter("vespa", "host1").format(_record("a\tb"))
    assert line == "1000.250000\thost1\t12/345\tcontent\tpaperwasp.content.node\twarning\ta\\tb"


def test_text() -> None:
    assert formatter("text", "h").format(_record("hello")).endswith("WARNING paperwasp.content.node: hello")


@pytest.mark.parametrize("form", [form for form in LOG_FORMATS if form != "text"])
@pytest.mark.parametrize("message", ["plain", "a\r\nb\tc\\", "\x00\x1b[31m", "\ud800", "\u2028é😀"])
def test_a_record_is_one_line(form: LogFormat, message: str) -> None:
    line = formatter(form, "h").format(_record(message, fails=True, name="asyncio"))
    assert "\n" not in line
    assert "\r" not in line
    assert "ValueError" in line
    if form == "json":
        assert orjson.loads(line)["service"] == "paperwasp"
