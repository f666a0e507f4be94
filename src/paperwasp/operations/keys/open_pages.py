"""The pages that need no permission: health, version and metrics, for whoever watches the service.

Paths are compared as they came, so that a page that is written in another way is not open.
Vespa: the handlers that its access control leaves out.
"""

from __future__ import annotations

from typing import Final

_PAGES: Final = frozenset(
    ["/", "/status", "/status.html", "/ApplicationStatus", "/state/v1", "/metrics/v1", "/metrics/v2", "/prometheus/v1"]
)
_FOLDERS: Final = ("/state/v1/", "/metrics/v1/", "/metrics/v2/", "/prometheus/v1/")


def is_open(raw_path: str) -> bool:
    """Whether everybody may ask for the page."""
    return raw_path in _PAGES or raw_path.startswith(_FOLDERS)
