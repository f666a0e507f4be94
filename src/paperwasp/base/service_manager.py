"""Tells the service manager that started the process how far it is, by systemd's protocol: `sd_notify` of libsystemd.

The protocol: a datagram `READY=1` to the socket that the variable NOTIFY_SOCKET names; a name that begins with `@` is
not of the file system.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(state: str) -> bool:
    """Sends a state; False where nobody waits for it, or it cannot be sent, which is no reason to fail."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        return True
    return False
