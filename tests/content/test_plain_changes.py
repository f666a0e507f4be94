"""Plain changes on their way from the container to rows: read, sent together, refused one by one, logged and stored.

Authority: the general way of each step, which has tests of its own. Whole feeds of both ways:
`tests/container/document/test_random_feeds.py`.
"""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from paperwasp import limits
from paperwasp.container.document.queue import DocumentQueue
from paperwasp.content.log.records import Entry, EntryKind, Logged, entry_of_change, records_of
from paperwasp.content.upkeep.resources import FeedGate, ResourceLimits
from paperwasp.coordination.messages.documents import ApplyChanges, ApplyRequest
from paperwasp.coordination.messenger import Reply, answered_together
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import DocumentId, partition_of
from paperwasp.document.operations import Outcome
from paperwasp.document.plain_fields import PlainFields, operation_of
from paperwasp.document.types import DOUBLE, FLOAT, INT, STRING, DocumentType, array_of
from paperwasp.errors import InvalidInput, NoSpace
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService
from paperwasp.storage.documents.document_store import StoredForm, stored_value
from tests.chance import SEED
from tests.content.nodes import SCHEMAS, remove, started
from tests.content.test_content_service import wait_until
from tests.content.test_resources import usage

TYPE = DocumentType(
    "thing",
    {"text": STRING, "other": STRING, "whole": INT, "texts": array_of(STRING), "double": DOUBLE, "single": FLOAT},
)
PLAIN = PlainFields(TYPE)
MUSIC = PlainFields(SCHEMAS["music"].document)


def change_of(fields: dict[str, Any], name: str = "1", is_update: bool = False) -> PlainChange:
    body = {"fields": {key: {"assign": value} for key, value in fields.items()} if is_update else fields}
    found = PLAIN.read_change("id:n:thing::", name, orjson.dumps(body), is_update)
    assert isinstance(found, PlainChange)
    return found


def music(name: str, is_update: bool = False, **fields: Any) -> PlainChange:
    body = {"fields": {key: {"assign": value} for key, value in fields.items()} if is_update else fields}
    found = MUSIC.read_change("id:n:music::", name, orjson.dumps(body), is_update)
    assert isinstance(found, PlainChange)
    return found


def random_fields(choice: random.Random) -> dict[str, Any]:
    texts = ("", "blue", 'a "b"\n\\', "Straße 日本語", "x" * 300)
    known = {
        "text": choice.choice(texts),
        "other": choice.choice(texts),
        "whole": choice.randrange(-(2**31), 2**31),
        "texts": choice.choices(texts, k=choice.randrange(4)),
        "double": choice.choice((0.1, -0.0, 1e300, 5.0, choice.random())),
        "single": choice.choice((0.1, 1e-6, 3e13, 5.0, choice.random())),
    }
    return {name: known[name] for name in choice.sample(sorted(known), choice.randrange(len(known) + 1))}


@pytest.mark.parametrize("is_update", [False, True])
@pytest.mark.parametrize("seed", [SEED])
def test_a_change_says_what_the_general_way_makes_of_its_body(seed: int, is_update: bool) -> None:
    choice = random.Random(seed)
    for number in range(300):
        fields = random_fields(choice)
        change = change_of(fields, f"d{number}", is_update)
        body = {"fields": {key: {"assign": value} for key, value in fields.items()} if is_update else fields}
        read = PLAIN.read_update(orjson.dumps(body)) if is_update else PLAIN.read_put(orjson.dumps(body))
        assert read is not None
        operation, document_id = operation_of(change), DocumentId("n", "thing", f"d{number}")
        assert operation.id == document_id and read.json == operation.json == change.body
        assert (change.id, change.gid, change.document_type) == (document_id.text, document_id.gid, "thing")
        values = orjson.loads(orjson.dumps(change.fields))
        assert list(values) == list(fields)
        assert {name: change.get(name) for name in TYPE.fields} == dict.fromkeys(TYPE.fields) | change.fields
        assert change.get("unknown") is None and change.get("".join(("te", "xt"))) == change.fields.get("text")


@pytest.mark.parametrize("seed", [SEED])
def test_changes_are_logged_as_their_entries_are(seed: int) -> None:
    choice = random.Random(seed)
    changes = [change_of(random_fields(choice), str(number), choice.random() < 0.5) for number in range(200)]
    changes.sort(key=lambda change: partition_of(change.gid))
    for time_us, change in enumerate(changes, 10**15):
        change.timestamp_us = time_us
    entries = [entry_of_change(change) for change in changes]
    mixed: list[Logged] = [choice.choice(pair) for pair in zip(changes, entries, strict=True)]
    assert records_of(changes) == records_of(entries) == records_of(mixed)
    assert {entry.kind for entry in entries} == {EntryKind.PUT, EntryKind.UPDATE}


@pytest.mark.parametrize("seed", [SEED])
def test_rows_of_puts_are_those_of_their_entries(seed: int) -> None:
    choice = random.Random(seed)
    puts = [change_of(random_fields(choice), str(number)) for number in range(50)]
    for time_us, change in enumerate(puts, 10**15):
        change.timestamp_us = time_us
    gids, times_us, sizes, stored = _core.rows_of(puts, 70_000, StoredForm.WHOLE)
    entries: list[Entry] = [entry_of_change(change) for change in puts]
    assert gids == b"".join(entry.gid for entry in entries)
    assert np.array_equal(times_us, [entry.timestamp_us for entry in entries]) and times_us.dtype == np.uint64
    assert np.array_equal(sizes, [len(entry.body) for entry in entries]) and sizes.dtype == np.uint32
    assert stored == [
        (entry.gid, stored_value(entry.id, entry.timestamp_us, lid, entry.body, StoredForm.WHOLE))
        for lid, entry in enumerate(entries, 70_000)
    ]
    wrong: Any = [entries[0]]
    with pytest.raises(ValueError, match="plain changes"):
        _core.rows_of(wrong, 0, StoredForm.WHOLE)


class Sent:
    """A messenger that keeps what is sent, and takes everything."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.replies: list[Reply] = []

    def send_all(self, _: str, messages: list[Any], replies: list[Reply]) -> int:
        self.messages += messages
        self.replies += replies
        return len(messages)


def test_changes_that_come_together_are_one_message_in_the_order_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_TOGETHER", 2)
    messenger = Sent()
    found: list[object] = []

    async def run() -> None:
        sender: Any = messenger
        queue = DocumentQueue(sender)
        for name in "abc":
            queue.send_change("a", music(name), 7, 1000, found.append)
        queue.send("a", ApplyRequest(remove("a")), 1000, found.append)
        queue.send_change("a", music("d"), 7, 1000, found.append)
        queue.send_change("a", music("e"), 7, 2000, found.append)
        sent = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(sent.set_result, None)
        await sent
        for number, reply in enumerate(messenger.replies):
            reply([f"{number}.0", f"{number}.1"] if number == 0 else number)

    asyncio.run(run())
    sent = [
        [str(change.id)[-1] for change in message.changes] if isinstance(message, ApplyChanges) else "remove"
        for message in messenger.messages
    ]
    assert sent == [["a", "b"], ["c"], "remove", ["d"], ["e"]]
    assert messenger.messages[0].size_bytes == 14
    assert found == ["0.0", "0.1", 1, 2, 3, 4]


def test_all_answers_of_what_came_together_are_one() -> None:
    given: list[object] = []
    replies = answered_together(given.append, 3)
    for place in (2, 0, 1):
        assert not given
        replies[place](place)
    assert given == [[0, 1, 2]]


def apply(service: ContentService, *changes: tuple[PlainChange, int]) -> list[Any]:
    """The answers to changes, with the sizes of their bodies, that are one message."""
    message, answered, found = ApplyChanges(), threading.Event(), []
    for change, size_bytes in changes:
        message.add([change], [size_bytes])

    def take(answers: Any) -> None:
        found.extend(answers)
        answered.set()

    assert service.handle_all([message], [take]) == 1
    assert answered.wait(60)
    return found


def test_a_gate_refuses_some_of_what_comes_together(tmp_path: Path) -> None:
    pool, gate = WorkerPool("test"), FeedGate("example")
    gate.configure(ResourceLimits(document_bytes=100))
    with started(tmp_path, SCHEMAS) as node:
        service = ContentService(node.node, pool, ServedSchemas(), gate)
        kept, large, other = apply(service, (music("a", year=1), 9), (music("b", year=1), 101), (music("a", year=2), 9))
        assert (kept, other) == (Outcome(False), Outcome(True)) and isinstance(large, InvalidInput)
        gate.observe(usage(0.9))
        put, update, text = apply(
            service,
            (music("c", year=1), 9),
            (music("a", is_update=True, year=3), 9),
            (music("a", is_update=True, title="x"), 9),
        )
        assert isinstance(put, NoSpace) and isinstance(text, NoSpace) and update == Outcome(True)
        assert node.get("a") == {"year": 3}
    pool.shutdown()


def test_there_is_room_for_all_that_come_together_or_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", 3)
    pool = WorkerPool("test")
    with started(tmp_path, SCHEMAS) as node:
        service, go_on = ContentService(node.node, pool, ServedSchemas()), threading.Event()
        busy = node.node.operations.add_action(go_on.wait)
        wait_until(busy.running)
        messages = [ApplyChanges(), ApplyChanges()]
        answers: list[list[object]] = [[], []]
        for message in messages:
            for name in "ab":
                message.add([music(name)], [9])
        assert service.handle_all(messages, [each.append for each in answers]) == 1
        go_on.set()
        wait_until(lambda: bool(answers[0]))
        assert answers == [[[Outcome(False), Outcome(False)]], []]
    pool.shutdown()
