"""HTTP requests of tests, by one client for all of them: making one takes 26 ms, most of it for TLS that no test uses.

No connection is kept: tests end and restart the servers that they speak to.
"""

from __future__ import annotations

from typing import Final

import httpx

CLIENT: Final = httpx.Client(timeout=30, limits=httpx.Limits(max_keepalive_connections=0))

get = CLIENT.get
head = CLIENT.head
post = CLIENT.post
put = CLIENT.put
delete = CLIENT.delete
request = CLIENT.request
