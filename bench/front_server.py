"""A server whose handler does nothing, for the benchmark of the front: `front_server.py KIND`.

ours        paperwasp's HttpServer
granian     granian with its own interface, RSGI, where it is installed: HTTP in Rust, the handler in Python
protocol    an asyncio protocol that answers whatever it reads: what Python's event loop and the system take
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from typing import Any

BODY = b'{"pathId":"/document/v1/ns/music/docid/1"}'
JSON = "application/json"


async def ours() -> None:
    from paperwasp.http.messages import Answer, Request, Response
    from paperwasp.http.server import HttpServer

    answer = Response(200, BODY, JSON)

    async def handle(request: Request) -> Answer:
        return answer

    server = HttpServer(handle, "127.0.0.1", 0)
    server.start()
    await _serve(server.port)


async def granian() -> None:
    from granian.constants import HTTPModes
    from granian.server.embed import Server

    async def handle(scope: Any, protocol: Any) -> None:
        await protocol()
        protocol.response_bytes(200, [("content-type", JSON)], BODY)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(handle, "127.0.0.1", port, http=HTTPModes.auto, log_enabled=False, websockets=False)
    serving = asyncio.create_task(server.serve())
    while not _listens(port):
        await asyncio.sleep(0.02)
    await asyncio.gather(serving, _serve(port))


async def protocol() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
    buffer = memoryview(bytearray(65536))

    class Least(asyncio.BufferedProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: Any = transport

        def get_buffer(self, sizehint: int) -> memoryview:
            return buffer

        def buffer_updated(self, nbytes: int) -> None:
            self.transport.write(answer)

    server = await asyncio.get_running_loop().create_server(Least, "127.0.0.1", 0)
    await _serve(server.sockets[0].getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


async def _serve(port: int) -> None:
    gc.collect()
    gc.freeze()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    print(f"http://127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run({"ours": ours, "granian": granian, "protocol": protocol}[sys.argv[1]]())
