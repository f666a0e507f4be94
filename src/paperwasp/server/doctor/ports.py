"""The ports that a service would listen on: free, or who has them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from paperwasp.server.doctor.findings import Area, Finding

_AREA: Final = Area("ports")
_LISTENS: Final = "0A"


def check_port(host: str, port: int, what: str, *, is_served: bool) -> Finding:
    """`is_served`: a service of ours answers there."""
    if is_served:
        return _AREA.ok(str(port), f"{what}: paperwasp listens")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except PermissionError:
            return _AREA.error(str(port), f"{what}: this user may not listen there", "Use a port from 1024 on")
        except OSError as error:
            owner = owner_of(port)
            message = f"{what}: {'taken by ' + owner if owner else error.strerror or 'taken'}"
            return _AREA.error(str(port), message, "End that, or give the service another port (serve --help)")
    return _AREA.ok(str(port), f"{what}: free")


def owner_of(port: int) -> str:
    """The process that listens there, by name and number; empty where that cannot be seen."""
    inodes = set(_listening(port))
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) in inodes:
                        return f"{(process / 'comm').read_text().strip()} (process {process.name})"
    return ""


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield f"socket:[{fields[9]}]"
