"""A listening port with a handler behind it: bytes to Request, Response to bytes, errors to answers.

All that is hostile about HTTP is met here: bodies that are too large, said or unsaid; compressed bodies that explode;
broken encodings; handlers that fail. A client never sees a stack trace; the log does.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from paperwasp import limits
from paperwasp.container import granian_worker
from paperwasp.container.connections import Client, ConnectionGuard
from paperwasp.container.request_bodies import BODIES, RequestBody, has_body
from paperwasp.container.streaming import ClientGone, Headers, Pipes, Unread, closed_after, send_stream
from paperwasp.env import release_memory
from paperwasp.errors import InternalError, InvalidInput, Overload, PaperwaspError
from paperwasp.http.cbor import error_as_accepted
from paperwasp.http.compression import (
    accepts_gzip,
    compressed,
    compressed_stream,
    is_compressible,
)
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse, json_response

Handler = Callable[[Request], Awaitable[Answer]]
ErrorResponse = Callable[[Request, PaperwaspError], Response]
BodyLimit = Callable[[str], int]
"""raw path → how large a body may be, in bytes."""
Observer = Callable[[Request, int, int], None]
"""(request, status, nanoseconds), after each answer."""

_LOG: Final = logging.getLogger("paperwasp.http")
_HOST: Final = re.compile(r"(?:[\w.~!$&'()*+,;=%-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{0,5})?", re.ASCII)
_LATIN: Final = "latin-1"
_ASCII: Final = bytes(range(128)).decode()
_GZIPPED: Final = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}


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
        self._guard = ConnectionGuard(self.port)
        self._inflating = asyncio.Lock()
        self._returning: asyncio.TimerHandle | None = None
        self._pipes = Pipes()
        self._streams: dict[asyncio.Task[Any], Client] = {}
        """Who sends a streamed answer → the address of its client."""

    def start(self) -> None:
        """Accepts connections from now on. Call it in the event loop. Errors: PortTaken."""
        worker = granian_worker.Worker(self._serve, self._listener)
        worker.start()
        self._guard.start()
        self._worker = worker

    async def restart(self) -> None:
        """Lets requests in flight finish and goes on with a new worker; who connects meanwhile waits for it."""
        if self._worker is not None:
            await self._stop_worker(self._worker)
            await self._guard.stop()
            self.start()

    async def stop(self) -> None:
        """Accepts no more, lets requests in flight finish, closes the port. Streams that take longer are cut."""
        self._listener.close()
        if self._worker is not None:
            await self._stop_worker(self._worker)
        await self._guard.stop()
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
            _LOG.warning("The answer to %s:%s is cut: the server stops", *client)
            task.cancel()

    async def _serve(self, scope: Any, protocol: Any) -> None:
        started_ns = time.monotonic_ns()
        connection = self._guard.begin(scope["client"])
        body = RequestBody(BODIES, self._inflating, self._body_limit_bytes(_escaped(scope["raw_path"])))
        try:
            request, failure = await self._request(scope, protocol, body)
            answer = await self._answer(request) if failure is None else self._error_response(request, failure)
            status, size_bytes = await self._send_answer(scope["client"], protocol, request, answer)
            if scope["http_version"] != "2":
                self._guard.note_answer(connection, size_bytes)
        finally:
            body.release()
            self._guard.end(connection)
        if len(request.body) >= limits.LARGE_REQUEST_BYTES:
            self._return_memory_soon()
        if self._observe is not None:
            self._observe(request, status, time.monotonic_ns() - started_ns)

    async def _request(self, scope: Any, protocol: Any, body: RequestBody) -> tuple[Request, PaperwaspError | None]:
        """The request, and what is wrong with it; then its body is empty."""
        method, raw_path, query = scope["method"], _escaped(scope["raw_path"]), _escaped(scope["query_string"])
        headers = {name.decode(_LATIN): value.decode(_LATIN) for name, value in scope["headers"]}
        content, failure = b"", _host_failure(scope, headers)
        if failure is None and has_body(method, headers):
            content, failure = await self._body(headers, protocol, body)
        return Request(method, raw_path, query, headers, content, scope["scheme"], headers["host"]), failure

    async def _send_answer(self, client: Client, protocol: Any, request: Request, answer: Answer) -> tuple[int, int]:
        """The status that was sent, and how large a body the library was given at once."""
        if isinstance(answer, StreamedResponse):
            return await self._stream(client, protocol, request, answer), 0
        if len(answer.body) >= limits.HTTP_COMPRESSED_LEAST_BYTES and _takes_gzip(request, answer):
            answer = replace(answer, body=await compressed(answer.body), headers={**answer.headers, **_GZIPPED})
        _respond(protocol, request, answer)
        return answer.status, len(answer.body)

    def _return_memory_soon(self) -> None:
        """Gives back to the system what a large request has freed, when no other comes meanwhile."""
        loop = asyncio.get_running_loop()
        if self._returning is not None:
            self._returning.cancel()
        self._returning = loop.call_later(
            limits.MEMORY_RETURN_SECONDS, lambda: loop.run_in_executor(None, release_memory)
        )

    async def _stream(self, client: Client, protocol: Any, request: Request, answer: StreamedResponse) -> int:
        """The status that was sent. What fails before the first chunk still has an answer; later it cuts the line."""
        async with closed_after(answer.chunks) as chunks:
            if len(self._streams) >= limits.HTTP_STREAMED_ANSWERS:
                return self._respond_failure(protocol, request, _too_many_streams())
            if _takes_gzip(request, answer):
                chunks = compressed_stream(chunks)
                answer = replace(answer, chunks=chunks, headers={**answer.headers, **_GZIPPED})
            if request.method == "HEAD":
                _send(protocol, answer.status, _headers(answer), b"")
                return answer.status
            task = asyncio.current_task()
            assert task is not None
            self._streams[task] = client
            try:
                try:
                    first = await anext(chunks, b"")
                except Exception as error:
                    return self._respond_failure(protocol, request, error)
                await self._send_stream(client, protocol, request, answer, first)
            finally:
                del self._streams[task]
        return answer.status

    def _respond_failure(self, protocol: Any, request: Request, error: Exception) -> int:
        failed = self._failure(request, error)
        _respond(protocol, request, failed)
        return failed.status

    async def _send_stream(
        self, client: Client, protocol: Any, request: Request, answer: StreamedResponse, first: bytes
    ) -> None:
        cut = partial(self._guard.shut, client)
        try:
            await send_stream(self._pipes, protocol, (answer.status, _headers(answer)), first, answer.chunks, cut)
        except ClientGone:
            _LOG.debug("%s %s: the client is gone", request.method, request.raw_path)
        except Unread as error:
            _LOG.warning("%s %s: the answer is broken off, since %s", request.method, request.raw_path, error)
        except Exception:
            _LOG.exception("%s %s failed while its answer was sent", request.method, request.raw_path)

    async def _body(
        self, headers: dict[str, str], protocol: Any, body: RequestBody
    ) -> tuple[bytes, PaperwaspError | None]:
        try:
            return await body.read(protocol, headers, self._guard), None
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


def _host_failure(scope: Any, headers: dict[str, str]) -> PaperwaspError | None:
    """The problem with the host that the request names. HTTP/1.0 need not name one; HTTP/2 is checked below."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    headers.setdefault("host", "")
    if scope["http_version"] == "1.1":
        if not headers["host"]:
            return InvalidInput("No Host")
        if len(hosts) > 1 or not _HOST.fullmatch(headers["host"]):
            return InvalidInput("Bad Host")
    return None


def _too_many_streams() -> Overload:
    return Overload(
        f"{limits.HTTP_STREAMED_ANSWERS} streamed answers are being sent already "
        "(HTTP_STREAMED_ANSWERS in paperwasp.limits)"
    )


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
