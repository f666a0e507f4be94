"""The bytes and connections of one port, counted."""

from __future__ import annotations

from msgspec import Struct


class Traffic(Struct):
    """Counts since the port was bound. The event loop adds; any thread reads."""

    connections: int = 0
    """All that were accepted."""
    open_connections: int = 0
    received_bytes: int = 0
    """Bytes that were read from sockets: heads, bodies and frames, decrypted where there is TLS."""
    sent_bytes: int = 0
    """Bytes that were written to them, as `received_bytes`."""
