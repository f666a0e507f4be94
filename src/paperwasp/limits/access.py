"""The limits of keys, of the filters of requests and of what is logged of refusals. See `paperwasp.limits`."""

from __future__ import annotations

from typing import Final

ACCESS_KEYS: Final = 10_000
"""Keys of a data directory. No more are made, and none beyond are read."""
ACCESS_KEY_FILE_BYTES: Final = 16 * 1024
ACCESS_TOKEN_CHARACTERS: Final = 100
"""Of a bearer token; a longer one is refused unread."""
ACCESS_KEY_NAME_CHARACTERS: Final = 100
ACCESS_REFUSALS: Final = 20
"""Refusals that are logged within ACCESS_REFUSALS_SECONDS; the others are counted."""
ACCESS_REFUSALS_SECONDS: Final = 10.0
ACCESS_FILTER_THREADS: Final = 8
"""Threads on which the request filters of a container run."""
ACCESS_FILTERS_WAITING: Final = 1000
"""Requests of a container that wait for filters; others are refused with 429. One whose time is over or whose client is
gone counts until a thread has met it."""
ACCESS_FILTER_SECONDS: Final = 10.0
"""How long the filters of a request may take, with the time for which it waits for a thread."""
ACCESS_RACY_NS: Final = 100_000_000
"""A folder that has changed so shortly before it was read may change again without another time of change."""
