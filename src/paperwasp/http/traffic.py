"""What has gone over the connections of one port."""

from __future__ import annotations

from msgspec import Struct


class Traffic(Struct):
    """Counts since the port was bound. The event loop adds; any thread reads."""

    connections: int = 0
    """All that were accepted."""
    open_connections: int = 0
    received_bytes: int = 0
    """What was read from sockets: heads, bodies and frames, decrypted where there is TLS."""
    sent_bytes: int = 0
    """What was written to them, as `received_bytes`."""
