"""The ceiling of the feed benchmark: our HTTP server with a handler that decodes every document and answers 200."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import orjson

from paperwasp.http.messages import Answer, Request, Response
from paperwasp.http.server import HttpServer


def main() -> None:
    asyncio.run(_serve(int(sys.argv[1])))


async def _serve(port: int) -> None:
    async def handle(request: Request) -> Answer:
        if request.raw_path.endswith("serviceconverge"):
            return Response(200, _converged(port))
        orjson.loads(request.body)
        return Response(200, b'{"pathId":"%s","id":"id"}' % request.raw_path.encode())

    server = HttpServer(handle, "127.0.0.1", port)
    server.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    print(f"http://127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()


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
