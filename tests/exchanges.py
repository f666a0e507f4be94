"""Exchanges that were answered, for those who observe them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from paperwasp.http.exchange import Exchange


def answered(protocol: str = "http1", scheme: str = "http", sent_bytes: int = 0) -> Exchange:
    """What observers read of an exchange."""
    peer = SimpleNamespace(address="127.0.0.1", port=1234, number=1, certificate=None)
    line = SimpleNamespace(protocol=protocol, version="HTTP/1.1")
    seen = SimpleNamespace(line=line, scheme=scheme, sent_bytes=sent_bytes, peer=peer, headers={}, host="localhost")
    return cast(Exchange, seen)
