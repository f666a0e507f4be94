"""The limits of metrics and of logs, beside those of `limits`."""

from __future__ import annotations

from typing import Final

RECENT_SECONDS: Final = 60
"""Rates, averages, extremes and percentiles are of at least so long, and of twice as long while somebody asks often."""
CONTENT_METRICS_SECONDS: Final = 1.0
"""How long a content cluster may take to say its metrics before they are left out of an answer."""
