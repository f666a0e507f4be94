"""The TLS of a listening port: a context whose connections say why they are refused.

A server that ends a handshake sends an alert, by which the client learns the reason: no certificate where one is
needed, one of an unknown authority, no version in common. asyncio drops the alert: its layer closes the connection as
soon as the handshake raises, with the alert still in the buffer for what goes out. What it does send, and then waits
for an answer, is what is there when a handshake wants to read. So a handshake that has failed with an alert says that
it wants to read, and drops what comes, until the client has closed the connection or the time for a handshake is over.
(A connection that is closed with something unread is reset, which can overtake the alert.)

`SSLContext.wrap_bio` is where a layer above sockets gets its connections: asyncio calls it with the two buffers.
Everything here runs on the event loop.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final, NoReturn

from paperwasp import limits

ALPN: Final = ("h2", "http/1.1")
"""The protocols that a port speaks, the better one first."""
_LOG: Final = logging.getLogger("paperwasp.http")


class ServerConnection(ssl.SSLObject):
    """The TLS of one connection."""

    incoming: ssl.MemoryBIO
    """Bytes that the client has sent and are not read yet. Set by `ServerContext`, as is `outgoing`."""
    outgoing: ssl.MemoryBIO
    """Bytes that wait to be sent."""
    _failure: ssl.SSLError | None = None
    """Why the handshake has failed; the alert that says so has been left in `outgoing`."""
    _dropped_bytes = 0

    def do_handshake(self) -> None:
        """Errors: SSLWantReadError, also after a failure whose alert is to be sent; SSLError."""
        if self._failure is not None:
            self._drop(self._failure)
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if not self.outgoing.pending:
                raise
            _LOG.debug("A client is refused in the handshake of TLS: %s", error)
            self._failure = error
            self._drop(error)

    def _drop(self, failure: ssl.SSLError) -> NoReturn:
        self._dropped_bytes += len(self.incoming.read())
        if self._dropped_bytes > limits.HTTP_DISCARDED_BYTES:
            raise failure
        raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the alert is sent before the connection is closed")


class ServerContext(ssl.SSLContext):
    """The settings of a server, to be made with `ssl.PROTOCOL_TLS_SERVER`."""

    sslobject_class = ServerConnection

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ServerConnection:
        connection = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(connection, ServerConnection)
        connection.incoming, connection.outgoing = incoming, outgoing
        return connection
