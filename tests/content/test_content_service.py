"""The content service at its address: operations and queries through the messenger."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.addresses import address_of
from paperwasp.coordination.messages.documents import (
    ApplyRequest,
    GetRequest,
    ReindexRequest,
    ReindexResponse,
    StatusRequest,
)
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.operations import Outcome
from paperwasp.errors import InternalError, InvalidInput
from paperwasp.schema.model import RankProfile
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService
from tests.content.nodes import SCHEMAS, TestNode, doc_id, put, remove, started, update
from tests.search.queries import query_of

ADDRESS = address_of("tenant.application.instance", "music")


def test_requests_are_answered(tmp_path: Path) -> None:
    async def run(messenger: EmbeddedMessenger) -> None:
        address = ADDRESS
        puts = [messenger.request(address, ApplyRequest(put(k, year=k))) for k in range(2000)]
        assert await asyncio.gather(*puts) == [Outcome(False)] * 2000
        assert (await messenger.request(address, GetRequest(doc_id(7)))).fields == b'{"year":7,"live":false}'
        assert await messenger.request(address, ApplyRequest(remove(7))) == Outcome(True)
        assert (await messenger.request(address, GetRequest(doc_id(7)))).fields is None
        response = await messenger.request(address, query_of(TrueItem()))
        assert (response.total_count, response.documents) == (1999, 1999)
        status = await messenger.request(address, StatusRequest())
        assert (status.documents, status.generation) == (1999, 1) and status.sizes_bytes["attributes"] > 0
        reindexed = await messenger.request(address, ReindexRequest("music", documents=10))
        assert isinstance(reindexed, ReindexResponse) and reindexed.documents == 10 and reindexed.token
        assert (await messenger.request(address, ReindexRequest("book"))) == ReindexResponse(None, 1.0, 0)
        with pytest.raises(InvalidInput, match="film does not exist"):
            await messenger.request(address, ReindexRequest("film"))
        with pytest.raises(InvalidInput, match="cannot have this value"):
            await messenger.request(address, ApplyRequest(put("a", year="x")))
        with pytest.raises(InvalidInput, match="film does not exist"):
            await messenger.request(address, ApplyRequest(put("a", "film")))
        with pytest.raises(InternalError, match="does not serve str"):
            await messenger.request(address, "what?")

    messenger, pool = EmbeddedMessenger(), WorkerPool("test")
    profiles = {"default": RankProfile("default")}
    schemas = {name: replace(schema, rank_profiles=profiles) for name, schema in SCHEMAS.items()}
    with started(tmp_path, schemas) as node:
        ContentService(node.node, pool, ServedSchemas()).serve(messenger, "tenant.application.instance", "music")
        asyncio.run(run(messenger))
    pool.shutdown()


def test_operations_that_come_together_are_queued_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that cannot be applied are refused alone; those that there is no room for are not taken."""

    async def run(messenger: EmbeddedMessenger, node: TestNode) -> None:
        loop, operations, go_on = asyncio.get_running_loop(), node.node.operations, threading.Event()
        busy = operations.add_action(go_on.wait)
        await asyncio.to_thread(wait_until, busy.running)
        messages = [ApplyRequest(operation) for operation in (put("a", year=1), put("b", "film"), update("a", year=2))]
        answers: list[asyncio.Future[object]] = [loop.create_future() for _ in messages]
        assert messenger.send_all(ADDRESS, messages, [answer.set_result for answer in answers]) == 3
        assert operations.waiting() == 2 and operations._items.qsize() == 1
        monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", 3)
        late: list[asyncio.Future[object]] = [loop.create_future() for _ in messages]
        replies = [answer.set_result for answer in late]
        assert messenger.send_all(ADDRESS, [ApplyRequest(remove(name)) for name in "abc"], replies) == 1
        go_on.set()
        found = await asyncio.gather(*answers, late[0])
        assert isinstance(found.pop(1), InvalidInput) and found == [Outcome(False), Outcome(True), Outcome(True)]
        assert not late[1].done() and not late[2].done() and operations.waiting() == 0

    messenger, pool = EmbeddedMessenger(), WorkerPool("test")
    with started(tmp_path, SCHEMAS) as node:
        ContentService(node.node, pool, ServedSchemas()).serve(messenger, "tenant.application.instance", "music")
        asyncio.run(run(messenger, node))
    pool.shutdown()


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        threading.Event().wait(0.001)
