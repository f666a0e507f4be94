"""Answers known requests, for the search handler: by a compiled plan, or the general way if there is none.

    KnownRequest + values → TextQuery → Messenger.hand → TextReply → response      None came → the general way

The content cluster calls the reply now or later, from any thread; what becomes of it is done on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from paperwasp.base.asyncio_internals import running_loop
from paperwasp.container.search.answer_cache import AnswerCache
from paperwasp.container.search.known_requests import KnownRequest, OwnValues
from paperwasp.container.search.merge import GRACE_SECONDS
from paperwasp.http.messages import Response
from paperwasp.http.pending import Begun, PendingAnswer
from paperwasp.search.text_query import TextAnswer

_LOG: Final = logging.getLogger("paperwasp.search")
_TASKS: Final[set[asyncio.Task[None]]] = set()
"""The tasks that find an answer the general way."""

GeneralWay = Callable[[], Coroutine[Any, Any, Response]]
"""Makes what is to be run for the answer the general way."""


class Messenger(Protocol):
    """The part of `coordination.messenger.Messenger` that is needed here."""

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None: ...


class TextAnswers:
    """Answers the known requests to one container, by asking the content cluster."""

    def __init__(self, messenger: Messenger, cache: AnswerCache) -> None:
        self._messenger = messenger
        self._cache = cache

    def begin(
        self,
        known: KnownRequest,
        values: OwnValues,
        started_ns: int,
        config: object,
        generally: GeneralWay,
        *,
        counts: bool,
    ) -> Begun:
        """Begins to answer a request that began at this moment of the monotonic clock. On the event loop.

        counts: whether the request counts as one that looks for an answer in the cache, if it reads it.
        """

        def response_of(found: TextAnswer) -> Response:
            return self.response_of(known, values, found, config, counts=counts)

        query = known.query(values, started_ns)
        reply = TextReply(response_of, generally, query.deadline_ns)
        self._messenger.hand(known.address, query, reply)
        return reply.begun

    def response_of(
        self, known: KnownRequest, values: OwnValues, found: TextAnswer, config: object, *, counts: bool
    ) -> Response:
        """The response to a request whose answer was found; it is kept if it may be."""
        texts = known.texts
        response = texts.response_of(found)
        self._cache.lookups += counts and known.reads_cache
        if texts.may_be_kept:
            self._cache.put(known.key(values), response, config, {texts.cluster: found.stamp})
        return response


class TextReply:
    """The reply that the content cluster calls with the hits of a text: once, now or later, on any thread. It makes the
    answer of the request of them."""

    __slots__ = ("_deadline_ns", "_generally", "_loop", "_pending", "_response", "_response_of", "_timer")

    def __init__(self, response_of: Callable[[TextAnswer], Response], generally: GeneralWay, deadline_ns: int) -> None:
        """`response_of` makes the response of what was found, on the event loop. What has not come soon after the
        deadline, on the monotonic clock, is as good as nothing."""
        self._response_of = response_of
        self._generally = generally
        self._deadline_ns = deadline_ns
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._response: Response | Coroutine[Any, Any, Response] | None = None
        self._pending: PendingAnswer | None = None

    def __call__(self, found: object) -> None:
        if running_loop() is self._loop:
            self._receive(found)
        else:
            self._loop.call_soon_threadsafe(self._receive, found)

    @property
    def begun(self) -> Begun:
        """The answer as far as it has come. Ask once, on the loop."""
        if self._response is not None:
            return self._response
        self._pending = PendingAnswer()
        left_seconds = (self._deadline_ns - time.monotonic_ns()) / 1e9 + GRACE_SECONDS
        self._timer = self._loop.call_later(left_seconds, self._receive, None)
        return self._pending

    def _receive(self, found: object) -> None:
        if self._response is not None:  # it came too late
            return
        self._response = response = self._made_of(found)
        if self._timer is not None:
            self._timer.cancel()
        if self._pending is None:
            return
        if isinstance(response, Response):
            self._pending.give(response)
        else:
            task = self._loop.create_task(_give(response, self._pending))
            _TASKS.add(task)  # the loop itself would not keep it
            task.add_done_callback(_TASKS.discard)

    def _made_of(self, found: object) -> Response | Coroutine[Any, Any, Response]:
        if isinstance(found, TextAnswer):
            try:
                return self._response_of(found)
            except Exception:
                _LOG.exception("the answer to a text failed")
        return self._generally()  # what is wrong, or not a text alone, is found the general way


async def _give(work: Coroutine[Any, Any, Response], pending: PendingAnswer) -> None:
    pending.give(await work)
