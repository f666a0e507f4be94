"""Facts for observers of answers, beside the request and its answer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from paperwasp.http.messages import ClientCertificate


class Peer(Protocol):
    """The connection of a client, as its requests know it."""

    address: str
    port: int
    """Of the client."""
    number: int
    """Which of the connections of its port it is."""
    certificate: ClientCertificate | None


class Spoken(Protocol):
    """The protocol of a connection."""

    @property
    def protocol(self) -> str:
        """`http1` or `http2`."""

    @property
    def version(self) -> str:
        """As it is written in heads: `HTTP/1.1`."""


class Exchanged(Protocol):
    """How a request came, and its answer went."""

    @property
    def line(self) -> Spoken: ...

    @property
    def peer(self) -> Peer: ...

    @property
    def scheme(self) -> str: ...

    @property
    def sent_bytes(self) -> int:
        """Of the answer's body, as it was sent: compressed where it was."""

    @property
    def received_bytes(self) -> int:
        """Of the request's body, as it came: compressed where it was."""


class ExchangedInBatch(NamedTuple):
    """The same of a request that came in a batch (`http.request_batch`)."""

    line: Spoken
    peer: Peer
    scheme: str
    sent_bytes: int
    received_bytes: int
