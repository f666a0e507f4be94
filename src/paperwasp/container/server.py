"""A listening port with a handler behind it: bytes to Request, Response to bytes, errors to answers.

All that is hostile about HTTP is met here: bodies that are too large, said or unsaid; compressed bodies that explode;
broken encodings; handlers that fail. A client never sees a stack trace; the log does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from paperwasp import limits
from paperwasp.container import granian_worker
from paperwasp.container.streaming import ClientGone, Headers, Pipes, closed_after, cut_connection, send_stream
from paperwasp.errors import InternalError, InvalidInput, PaperwaspError
from paperwasp.http.cbor import error_as_accepted
from paperwasp.http.compression import (
    accepts_gzip,
    compressed,
    compressed_stream,
    inflated,
    is_compressible,
    too_large,
)
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse, json_response

Handler = Callable[[Request], Awaitable[Answer]]
ErrorResponse = Callable[[Request, PaperwaspError], Response]
BodyLimit = Callable[[str], int]
"""raw path → how large a body may be, in bytes."""
Observer = Callable[[Request, int, int], None]
"""(request, status, nanoseconds), after each answer."""

_LOG: Final = logging.getLogger("paperwasp.http")
_BODILESS_METHODS: Final = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))
_LATIN: Final = "latin-1"
_ASCII: Final = bytes(range(128)).decode()
_GZIPPED: Final = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
_UNKNOWN: Final = -1


def default_error_response(request: Request, error: PaperwaspError) -> Response:
    """`{"error-code", "message"}`, as the Deploy API answers."""
    answer = json_response(error.http_status, {"error-code": error.deploy_code, "message": error.message})
    return error_as_accepted(request, answer)


class HttpServer:
    """One port: HTTP/1.1 and HTTP/2 with prior knowledge. Binds when made, listens when started."""

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        *,
        error_response: ErrorResponse = default_error_response,
        body_limit_bytes: BodyLimit = lambda _: limits.HTTP_PACKAGE_BODY_BYTES,
        observe: Observer | None = None,
    ) -> None:
        """Errors: Conflict (PortTaken) where the port cannot be had."""
        self._handler = handler
        self._error_response = error_response
        self._body_limit_bytes = body_limit_bytes
        self._observe = observe
        self._listener = granian_worker.bind(host, port)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self._worker: granian_worker.Worker | None = None
        self._pipes = Pipes()
        self._streams: dict[asyncio.Task[Any], tuple[str, int]] = {}
        """Who sends a streamed answer → the address of its client."""

    def start(self) -> None:
        """Accepts connections from now on. Call it in the event loop. Errors: PortTaken."""
        worker = granian_worker.Worker(self._serve, self._listener)
        worker.start()
        self._worker = worker

    async def restart(self) -> None:
        """Lets requests in flight finish and goes on with a new worker; who connects meanwhile waits for it."""
        if self._worker is not None:
            await self._stop_worker(self._worker)
            self.start()

    async def stop(self) -> None:
        """Accepts no more, lets requests in flight finish, closes the port. Streams that take longer are cut."""
        self._listener.close()
        if self._worker is not None:
            await self._stop_worker(self._worker)
        self._pipes.close()

    def close(self) -> None:
        """Gives up the port of a server that was never started, or that has stopped."""
        self._listener.close()

    async def _stop_worker(self, worker: granian_worker.Worker) -> None:
        cutting = asyncio.get_running_loop().call_later(limits.HTTP_STREAM_STOP_SECONDS, self._cut_streams)
        try:
            await worker.stop()
        finally:
            cutting.cancel()

    def _cut_streams(self) -> None:
        for task, client in self._streams.items():
            _LOG.warning("The answer to %s:%d is cut: the server stops", *client)
            task.cancel()

    async def _serve(self, scope: Any, protocol: Any) -> None:
        started_ns = time.monotonic_ns()
        method, raw_path, query = scope["method"], _escaped(scope["raw_path"]), _escaped(scope["query_string"])
        headers = {name.decode(_LATIN): value.decode(_LATIN) for name, value in scope["headers"]}
        body, failure = await self._body(method, raw_path, headers, protocol)
        request = Request(method, raw_path, query, headers, body, scope["scheme"], headers["host"])
        answer = await self._answer(request) if failure is None else self._error_response(request, failure)
        if isinstance(answer, StreamedResponse):
            status = await self._stream(scope["client"], protocol, request, answer)
        else:
            if len(answer.body) >= limits.HTTP_COMPRESSED_LEAST_BYTES and _takes_gzip(request, answer):
                answer = replace(answer, body=await compressed(answer.body), headers={**answer.headers, **_GZIPPED})
            _respond(protocol, request, answer)
            status = answer.status
        if self._observe is not None:
            self._observe(request, status, time.monotonic_ns() - started_ns)

    async def _stream(self, client: tuple[str, str], protocol: Any, request: Request, answer: StreamedResponse) -> int:
        """The status that was sent. What fails before the first chunk still has an answer; later it cuts the line."""
        async with closed_after(answer.chunks) as chunks:
            if _takes_gzip(request, answer):
                chunks = compressed_stream(chunks)
                answer = replace(answer, chunks=chunks, headers={**answer.headers, **_GZIPPED})
            if request.method == "HEAD":
                _send(protocol, answer.status, _headers(answer), b"")
                return answer.status
            try:
                first = await anext(chunks, b"")
            except Exception as error:
                failed = self._failure(request, error)
                _respond(protocol, request, failed)
                return failed.status
            await self._send_stream((client[0], int(client[1])), protocol, request, answer, first)
        return answer.status

    async def _send_stream(
        self, client: tuple[str, int], protocol: Any, request: Request, answer: StreamedResponse, first: bytes
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._streams[task] = client
        cut = partial(cut_connection, client, self.port)
        try:
            await send_stream(self._pipes, protocol, (answer.status, _headers(answer)), first, answer.chunks, cut)
        except ClientGone:
            _LOG.debug("%s %s: the client is gone", request.method, request.raw_path)
        except Exception:
            _LOG.exception("%s %s failed while its answer was sent", request.method, request.raw_path)
        finally:
            del self._streams[task]

    async def _body(
        self, method: str, raw_path: str, headers: dict[str, str], protocol: Any
    ) -> tuple[bytes, PaperwaspError | None]:
        if not _has_body(method, headers):
            return b"", None
        try:
            return await _read_body(protocol, headers, self._body_limit_bytes(raw_path)), None
        except PaperwaspError as error:
            return b"", error
        except Exception as error:
            return b"", InvalidInput(f"The request body could not be read: {error}")

    async def _answer(self, request: Request) -> Answer:
        try:
            return await self._handler(request)
        except Exception as error:
            return self._failure(request, error)

    def _failure(self, request: Request, error: Exception) -> Response:
        if isinstance(error, PaperwaspError):
            return self._error_response(request, error)
        _LOG.error("%s %s failed", request.method, request.raw_path, exc_info=error)
        return self._error_response(request, InternalError("Internal server error"))


def _escaped(sent: bytes) -> str:
    """A path or query string as text. Bytes beyond ASCII have no place there; some clients send UTF-8 all the same."""
    return sent.decode() if sent.isascii() else quote(sent, safe=_ASCII)


def _takes_gzip(request: Request, answer: Answer) -> bool:
    accepted = request.headers.get("accept-encoding")
    return accepted is not None and accepts_gzip(accepted) and is_compressible(answer.content_type)


def _respond(protocol: Any, request: Request, response: Response) -> None:
    headers, body = _headers(response), response.body
    if request.method == "HEAD":
        headers.append((b"content-length", b"%d" % len(body)))
        body = b""
    _send(protocol, response.status, headers, body)


def _headers(answer: Answer) -> Headers:
    headers = [(b"content-type", answer.content_type.encode(_LATIN))]
    return headers + [(name.lower().encode(_LATIN), value.encode(_LATIN)) for name, value in answer.headers.items()]


def _send(protocol: Any, status: int, headers: Headers, body: bytes) -> None:
    protocol.send({"type": "http.response.start", "status": status, "headers": headers})
    protocol.send({"type": "http.response.body", "body": body, "more_body": False})


def _has_body(method: str, headers: dict[str, str]) -> bool:
    if "content-length" in headers:
        return headers["content-length"] != "0"
    return method not in _BODILESS_METHODS or "transfer-encoding" in headers


async def _read_body(protocol: Any, headers: dict[str, str], limit_bytes: int) -> bytes:
    """The whole body, inflated. Errors: TooLarge, InvalidInput."""
    body = await _read_raw(protocol, int(headers.get("content-length", _UNKNOWN)), limit_bytes)
    encoding = headers.get("content-encoding")
    return body if encoding is None else await inflated(body, encoding, limit_bytes)


async def _read_raw(protocol: Any, length_bytes: int, limit_bytes: int) -> bytes:
    """The body as it is sent. Stops at the announced length: to wait for the end is one more round of the loop."""
    if length_bytes > limit_bytes:
        await _discard(protocol)
        raise too_large(length_bytes, limit_bytes)
    chunks, size_bytes, more = [], 0, True
    while more and size_bytes != length_bytes:
        message = await protocol.receive()
        chunks.append(message["body"])
        more = message["more_body"]
        size_bytes += len(chunks[-1])
        if size_bytes > limit_bytes:
            await _discard(protocol, more)
            raise too_large(size_bytes, limit_bytes)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _discard(protocol: Any, more: bool = True) -> None:
    """Reads on for a while, so that a client that sends before it listens gets to see the refusal."""
    size_bytes = 0
    while more and size_bytes < limits.HTTP_DISCARDED_BYTES:
        message = await protocol.receive()
        size_bytes += len(message["body"])
        more = message["more_body"]
