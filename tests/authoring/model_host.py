"""A host of model files on a free port of 127.0.0.1."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ModelHost:
    """Files by path, and what goes wrong with some."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.promised: dict[str, int] = {}
        """Path → the length that is said of it, where it is another."""
        self.hashes: dict[str, str] = {}
        """Path → the SHA-256 that is said of it."""
        self.redirections: dict[str, str] = {}
        self.asked: list[str] = []


@contextmanager
def serving() -> Iterator[ModelHost]:
    """Serves files as long as the block runs."""
    host = ModelHost()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path
            host.asked.append(path)
            if path in host.redirections:
                self.send_response(302)
                self.send_header("Location", host.redirections[path])
                self.end_headers()
                return
            if path not in host.files:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(host.promised.get(path, len(host.files[path]))))
            if path in host.hashes:
                self.send_header("X-Linked-Etag", f'"{host.hashes[path]}"')
            self.end_headers()
            self.wfile.write(host.files[path])

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
