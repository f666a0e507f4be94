"""The permission that a request needs, by its path and method.

    pages of health, version and metrics   none (`access.open_pages`)
    /search, /model-evaluation/v1          GET, HEAD, OPTIONS and POST read, anything else writes
    everything else, known or not          GET, HEAD and OPTIONS read, anything else writes

So what is not known to be open is closed. Paths are compared as they came.

Vespa: https://docs.vespa.ai/en/security/guide.html#request-mapping
Differs: POST to the models reads too, since it changes nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from paperwasp.admin.access import READ, WRITE, is_open
from paperwasp.container.paths import is_evaluation, is_search

_READING: Final = frozenset(("GET", "HEAD", "OPTIONS"))


@lru_cache(maxsize=256)
def needed_permission(method: str, raw_path: str) -> str | None:
    """`read` or `write`; None: everybody may."""
    if is_open(raw_path):
        return None
    if method in _READING or (method == "POST" and (is_search(raw_path) or is_evaluation(raw_path))):
        return READ
    return WRITE
