"""Requests as batches, and their answers, without a socket: the twin of what the kernel makes of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from paperwasp.base.records import replace
from paperwasp.http.messages import ClientCertificate, Request, Response
from paperwasp.http.observing import Peer
from paperwasp.http.pending import Given, PendingAnswer
from paperwasp.http.request_batch import RequestBatch


def alike(requests: Sequence[Request], start: str) -> Iterator[list[Request]]:
    """The requests in runs of those that may be one batch; others alone."""
    for _, run in groupby(enumerate(requests), lambda each: _key(each[0], each[1], start)):
        yield [request for _, request in run]


def _key(number: int, request: Request, start: str) -> tuple[object, ...]:
    """What those have in common that may be one batch; the number where it may be of none."""
    path, slash, name = request.raw_path.rpartition("/")
    if request.method not in ("POST", "PUT") or not request.body or not name or not request.raw_path.startswith(start):
        return (number,)
    headers = {name: value for name, value in request.headers.items() if not name.startswith("content-")}
    return (request.method, path + slash, request.query, headers)


@dataclass
class Client:
    """Who sends them."""

    address: str = "127.0.0.1"
    port: int = 1
    number: int = 1
    certificate: ClientCertificate | None = None


class KeptAnswers:
    """Port and line of batches, whose answers are kept. Successes are sent in the next round of the event loop."""

    protocol = "http2"
    version = "HTTP/2.0"

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.finished: list[RequestBatch] = []
        self._answers: dict[tuple[int, int], PendingAnswer] = {}
        """By batch and number."""

    def batch(self, requests: Sequence[Request]) -> RequestBatch:
        """Requests that are alike as a batch."""
        first, numbers = requests[0], range(len(requests))
        start = first.raw_path.rpartition("/")[0] + "/"
        names, bodies = [each.raw_path.removeprefix(start) for each in requests], [each.body for each in requests]
        head, sizes_bytes = replace(first, raw_path=start, body=b""), list(map(len, bodies))
        made = RequestBatch(self, head, [self] * len(requests), numbers, names, bodies, sizes_bytes, 0)
        for number in numbers:
            self._answers[id(made), number] = PendingAnswer()
        return made

    def answers_of(self, batch: RequestBatch) -> list[PendingAnswer]:
        return [self._answers[id(batch), number] for number in range(len(batch.names))]

    def note_successes(self, batch: RequestBatch) -> None:
        asyncio.get_running_loop().call_soon(batch.send)

    def send(self, batch: RequestBatch, numbers: list[int], bodies: list[bytes]) -> None:
        for number, body in zip(numbers, bodies, strict=True):
            self.answer_alone(batch, number, Response(200, body, batch.content_type))

    def answer_alone(self, batch: RequestBatch, number: int, given: Given) -> None:
        self._answers[id(batch), number].give(given)

    def finish(self, batch: RequestBatch) -> None:
        self.finished.append(batch)
