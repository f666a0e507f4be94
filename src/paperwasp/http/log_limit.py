"""A log that no client fills: what one place of the code says again and again is counted, not written."""

from __future__ import annotations

import logging
from time import monotonic

from paperwasp import limits


class SameSeldom(logging.Filter):
    """Lets HTTP_LOG_LINES records of one place of the code pass in HTTP_LOG_SECONDS. The first record after that time
    says how many were left out. Any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, int], list[float]] = {}
        """Place → when its time began, and how many records have come since."""

    def filter(self, record: logging.LogRecord) -> bool:
        now = monotonic()
        place = self._places.setdefault((record.pathname, record.lineno), [now, 0])
        if now - place[0] > limits.HTTP_LOG_SECONDS:
            left_out = int(place[1]) - limits.HTTP_LOG_LINES
            place[:] = now, 0
            if left_out > 0:
                record.msg = f"{record.msg} ({left_out} more like this were left out)"
        place[1] += 1
        return place[1] <= limits.HTTP_LOG_LINES
