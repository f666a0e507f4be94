"""Exchanges that were answered, for those who observe them, and responses of applications, as tests look at them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from paperwasp.http.exchange import Exchange
from paperwasp.http.messages import Response, StreamedResponse


def answered(protocol: str = "http1", scheme: str = "http", sent_bytes: int = 0) -> Exchange:
    """What observers read of an exchange."""
    peer = SimpleNamespace(address="127.0.0.1", port=1234, number=1, certificate=None)
    line = SimpleNamespace(protocol=protocol, version="HTTP/1.1")
    seen = SimpleNamespace(line=line, scheme=scheme, sent_bytes=sent_bytes, peer=peer, headers={}, host="localhost")
    return cast(Exchange, seen)


def whole(response: Response | StreamedResponse) -> Response:
    """A response whose body is there at once."""
    assert isinstance(response, Response), "the response is streamed"
    return response
