"""The limits of metrics and of logs, beside those of `limits`."""

from __future__ import annotations

from typing import Final

RECENT_SECONDS: Final = 60
"""Rates, averages, extremes and percentiles are of at least so long, and of twice as long while somebody asks often."""
ACCESS_LOG_QUEUE_LENGTH: Final = 20_000
"""Answers that wait to be logged. Those that find no room are left out, and counted."""
ACCESS_LOG_QUEUE_CHARACTERS: Final = 16 * 1024 * 1024
"""Of the paths and query strings of these."""
ACCESS_LOG_CHARACTERS: Final = 4096
"""Of a path, a query string or a header in the access log; the rest is cut off."""
GATHERING_SECONDS: Final = 0.1
"""How long lines, and spans, are gathered before they are written."""
GATHERED_AT_ONCE: Final = 200
"""How many of them are made between two writes: the event loop waits for the interpreter's lock no longer than for
these."""
TELEMETRY_QUEUE_LENGTH: Final = 10_000
"""Answers that wait to become spans. Those that find no room are left out."""
TELEMETRY_CHARACTERS: Final = 1024
"""Of a path in a span; the rest is cut off."""
TELEMETRY_EXPORT_SECONDS: Final = 5
"""How long a collector may take."""
LOG_FILE_BYTES: Final = 32 * 1024 * 1024
"""After which another file of the access log is begun."""
LOG_FILES_BYTES: Final = 512 * 1024 * 1024
"""The size of all files of one access log, above which the oldest are removed."""
CONTENT_METRICS_SECONDS: Final = 1.0
"""How long a content cluster may take to say its metrics before they are left out of an answer."""
