"""The requests that came together on one HTTP/2 connection, on their way to a handler and back to frames.

What a handler may not see in a batch is left to the line, which makes exchanges of it: a body that is too large, or is
compressed in a way that takes longer, or for which there is no room in the budget of bodies.

Everything here runs on the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic, monotonic_ns
from typing import ClassVar, Final

from paperwasp.core.http2 import BatchEvent, Http2Connection
from paperwasp.errors import Overload
from paperwasp.http.compression import inflated_at_once, takes_gzip
from paperwasp.http.connection import Connection
from paperwasp.http.http2_heads import answer_head
from paperwasp.http.messages import Request, Response
from paperwasp.http.request_batch import AnswerAlone, RequestBatch

_LOG: Final = logging.getLogger("paperwasp.http")


class Http2Batches:
    """The batches of one connection that are not answered yet."""

    protocol: ClassVar[str] = "http2"
    version: ClassVar[str] = "HTTP/2.0"

    __slots__ = ("_connection", "_kernel", "_succeeded", "_under_way")

    def __init__(self, connection: Connection, kernel: Http2Connection) -> None:
        self._connection = connection
        self._kernel = kernel
        self._under_way: dict[RequestBatch, int] = {}
        """With the bytes of their bodies, which the budget counts."""
        self._succeeded: list[RequestBatch] = []
        """Those with successes that are not sent yet."""

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, event: BatchEvent, answer_alone: AnswerAlone) -> int:
        """Has the first requests of the event begun, in its order. Returns how many: the rest is the line's."""
        context, connection = self._connection.context, self._connection
        if context.batches is None:
            return 0
        _, streams, method, _, host, start, query, headers, names, bodies, codings = event
        limit_bytes = context.body_limit_bytes(start)
        if not (inflated := _inflated(bodies, codings, limit_bytes)):
            return 0
        scheme = "https" if connection.is_tls else "http"
        head = Request(method, start, query, headers, b"", scheme, host, connection.certificate, connection.address)
        received_bytes = list(map(len, bodies))
        batch = RequestBatch(self, connection, answer_alone, head, streams, names, inflated, received_bytes)
        held_bytes = sum(received_bytes) if inflated is bodies else sum(received_bytes) + sum(map(len, inflated))
        try:
            context.budget.check(held_bytes, 0)
        except Overload:
            return 0
        count = context.batches.begin(batch)
        if count:
            batch.take(count)
            context.budget.held_bytes += held_bytes
            context.running.add(batch)
            self._under_way[batch] = held_bytes
        return count

    # For batches

    def note_successes(self, batch: RequestBatch) -> None:
        if not self._succeeded:
            self._connection.loop.call_soon(self._send_all)
        self._succeeded.append(batch)

    def _send_all(self) -> None:
        succeeded, self._succeeded = self._succeeded, []
        for batch in succeeded:
            try:
                batch.send()
            except Exception:  # a defect costs the answers of its own batch
                _LOG.exception("the answers to %s requests were lost", batch.head.method)
        self._connection.flush_now()

    def send(self, batch: RequestBatch, numbers: Sequence[int], bodies: list[bytes]) -> None:
        content_type = batch.content_type
        if "accept-encoding" in batch.head.headers and takes_gzip(batch.head, Response(200, b"", content_type)):
            for number, body in zip(numbers, bodies, strict=True):
                batch.answer_alone(batch, number, Response(200, body, content_type))
            return
        streams = batch.streams
        self._kernel.respond_all([streams[number] for number in numbers], answer_head(200, content_type, {}), bodies)
        batches = self._connection.context.batches
        if batches is not None:
            batches.observe(batch, numbers, bodies, monotonic_ns() - batch.since_ns)

    def finish(self, batch: RequestBatch) -> None:
        context, connection = self._connection.context, self._connection
        context.budget.held_bytes -= self._under_way.pop(batch)
        context.end_running(batch)
        connection.since = monotonic()
        if connection.is_draining:
            connection.drain()


def _inflated(bodies: list[bytes], codings: list[str | None], limit_bytes: int) -> list[bytes]:
    """The first bodies without their codings, up to one that is not for here; `bodies` itself where all are plain."""
    if not any(codings) and max(map(len, bodies)) <= limit_bytes:
        return bodies
    plain: list[bytes] = []
    for body, coding in zip(bodies, codings, strict=True):
        whole = body if coding is None else inflated_at_once(body, coding, limit_bytes)
        if not whole or max(len(body), len(whole)) > limit_bytes:
            break
        plain.append(whole)
    return plain
