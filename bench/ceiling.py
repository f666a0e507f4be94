"""The ceiling of the feed benchmark: an HTTP server that decodes the JSON of every document and answers 200."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import zlib
from typing import Any

import orjson
from granian.server.embed import Server

JSON = [("content-type", "application/json")]
GZIP = 31


def main() -> None:
    asyncio.run(_serve(int(sys.argv[1])))


async def _serve(port: int) -> None:
    async def handle(scope: Any, protocol: Any) -> None:
        if scope.path.endswith("serviceconverge"):
            protocol.response_bytes(200, JSON, _converged(port))
            return
        body = await protocol()
        if scope.headers.get("content-encoding") == "gzip":
            body = zlib.decompress(body, GZIP)
        orjson.loads(body)
        protocol.response_bytes(200, JSON, b'{"pathId":"%s","id":"id"}' % scope.path.encode())

    server = Server(handle, "127.0.0.1", port, http="auto", log_enabled=False, websockets=False)
    serving = asyncio.create_task(server.serve())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    while not _listens(port):
        await asyncio.sleep(0.02)
    print(f"http://127.0.0.1:{port}", flush=True)
    await serving


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _converged(port: int) -> bytes:
    service = {
        "host": "127.0.0.1", "port": port, "type": "container", "clusterName": "default",
        "url": "", "currentGeneration": 1,
    }  # fmt: skip
    return orjson.dumps(
        {"services": [service], "url": "", "currentGeneration": 1, "wantedGeneration": 1, "converged": True}
    )


if __name__ == "__main__":
    main()
