"""HTTP requests of tests, by one client for all of them: making one takes 26 ms, most of it for TLS that no test uses.

No connection is kept: tests end and restart the servers that they speak to.

A search has 30 seconds unless the test says otherwise: how long a machine takes must not decide a test.
"""

from __future__ import annotations

from typing import Final

import httpx

_PATIENCE: Final = "30s"


def give_time(request: httpx.Request) -> None:
    """Gives a search the time that a slow machine needs: a hook of clients."""
    if request.method == "GET" and request.url.path == "/search/" and "timeout" not in request.url.params:
        request.url = request.url.copy_add_param("timeout", _PATIENCE)


CLIENT: Final = httpx.Client(
    timeout=30, limits=httpx.Limits(max_keepalive_connections=0), event_hooks={"request": [give_time]}
)

get = CLIENT.get
head = CLIENT.head
post = CLIENT.post
put = CLIENT.put
delete = CLIENT.delete
request = CLIENT.request
