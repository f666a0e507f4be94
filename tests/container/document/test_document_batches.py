"""Puts and updates that came together have the answers that each of them has alone, whatever the cluster says.

Authority: the answers to single requests, which `test_document_v1.py` tests. Random feeds (`test_random_feeds.py`) hold
what is logged and stored to the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import orjson
import pytest

from paperwasp import limits
from paperwasp.container.document.answer import document_json
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.core._core import document_answers
from paperwasp.document.operations import Outcome, Refusal
from paperwasp.errors import NoSpace
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import settled
from tests.container.document.document_scripts import SCRIPTS, model_of
from tests.container.document.test_document_queue import DONE, FakeCluster
from tests.container.document.test_document_queue import settled as rounds
from tests.http.batched import Client, KeptAnswers

START = "/document/v1/ns/music/docid/"
PUT = orjson.dumps({"fields": {"title": "blue"}})
ANSWERS = (
    DONE,
    Outcome(False),
    Outcome(True, Refusal.NOT_MET),
    Outcome(False, Refusal.NO_DOCUMENT),
    Outcome(True, Refusal.TOO_LARGE),
    NoSpace("the disk is full"),
    RuntimeError("a defect"),
)


def puts(names: Sequence[str], query: str = "", body: bytes = PUT) -> list[Request]:
    return [Request("POST", START + name, query, {}, body) for name in names]


def api_of(cluster: FakeCluster) -> DocumentApi:
    api = DocumentApi(cluster)
    api.configure(model_of(SCRIPTS / "document_application"))
    return api


async def together(requests: Sequence[Request], cluster: FakeCluster, act: Callable[[], None]) -> list[Response]:
    api, line = api_of(cluster), KeptAnswers(Client())
    batch = line.batch(requests)
    taken = api.begin_batch(batch)
    assert taken == len(requests)
    batch.take(taken)
    await rounds()
    act()
    answers = [await answer for answer in line.answers_of(batch)]
    assert line.finished == [batch]
    return answers


async def alone(requests: Sequence[Request], cluster: FakeCluster, act: Callable[[], None]) -> list[Response]:
    api = api_of(cluster)
    begun = [api.begin(request) for request in requests]
    await rounds()
    act()
    found = [await settled(each) for each in begun]
    return [answer for answer in found if isinstance(answer, Response)]


def compare(requests: Sequence[Request], window: int, act: Callable[[FakeCluster], None]) -> list[Response]:
    """The answers, which are the same both ways."""
    found = []
    for way in (together, alone):
        cluster = FakeCluster(window)
        found.append(asyncio.run(way(requests, cluster, partial(act, cluster))))
    shown = [[(each.status, each.body, each.content_type, dict(each.headers)) for each in answers] for answers in found]
    assert shown[0] == shown[1]
    return found[0]


def test_each_answer_of_a_cluster_is_said_as_to_a_request_alone() -> None:
    requests = puts([f"d{number}" for number in range(len(ANSWERS))])

    def act(cluster: FakeCluster) -> None:
        (address,) = {address for address, _ in cluster.sent}
        for answer in ANSWERS[:-1]:
            cluster.answer(address, answer)
        cluster.answer(address, NoSpace("again"))

    answers = compare(requests, 100, act)
    assert [answer.status for answer in answers] == [200, 200, 412, 412, 400, 507, 507]
    assert orjson.loads(answers[0].body) == {"pathId": START + "d0", "id": "id:ns:music::d0"}


def test_names_are_written_as_json() -> None:
    names = ['"', "\\", "a:b", "<&>", "'"]

    def act(cluster: FakeCluster) -> None:
        (address,) = {address for address, _ in cluster.sent}
        for _ in names:
            cluster.answer(address)

    answers = compare(puts(names), 100, act)
    assert [orjson.loads(answer.body)["pathId"] for answer in answers] == [START + name for name in names]


def test_the_core_writes_answers_as_the_general_way_does() -> None:
    names = ["1", "a b", '"', "\\", "a/b?c", "~"]
    wanted = [document_json(START + name, f"id:ns:music::{name}") for name in names]
    assert document_answers(START, "id:ns:music::", names) == wanted
    for name in ("é", "\n", "\x7f"):
        with pytest.raises(ValueError, match="ASCII"):
            document_answers(START, "id:ns:music::", [name])


def test_what_there_is_no_room_for_waits_in_line_and_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DOCUMENT_QUEUE_LENGTH", 1)
    monkeypatch.setattr(limits, "CHANGES_TOGETHER", 1)

    def act(cluster: FakeCluster) -> None:
        (address,) = {address for address, _ in cluster.sent}
        cluster.answer(address)
        cluster.answer(address)
        cluster.window = 100
        asyncio.get_running_loop().call_later(0.2, cluster.answer, address)

    answers = compare(puts(["1", "2", "3", "4"]), 2, act)
    assert [answer.status for answer in answers] == [200, 200, 200, 429]


def test_more_than_one_message_takes_is_sent_as_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_TOGETHER", 2)

    def act(cluster: FakeCluster) -> None:
        (address,) = {address for address, _ in cluster.sent}
        for _ in range(5):
            cluster.answer(address)

    answers = compare(puts(["1", "2", "3", "4", "5"]), 100, act)
    assert [answer.status for answer in answers] == [200] * 5


def test_the_time_of_a_request_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_TOGETHER", 1)
    answers = compare(puts(["1", "2"], "timeout=10ms"), 100, lambda cluster: cluster.answer(cluster.sent[0][0]))
    assert [answer.status for answer in answers] == [200, 504]


@pytest.mark.parametrize(
    ("requests", "taken"),
    [
        (puts(["1", "%41", "2"]), 1),
        (puts(["1", "2"], "condition=true"), 0),
        (puts(["1", "2"], "tracelevel=1"), 0),
        (puts(["1"], body=b"{"), 0),
        (puts(["1", "2"], "create=true"), 2),
        ([Request("POST", "/document/v1/ns/nothing/docid/1", "", {}, PUT)], 0),
        ([Request("POST", "/document/v1/ns/music/number/7/1", "", {}, PUT)], 0),
    ],
)
def test_what_is_not_plain_is_left(requests: list[Request], taken: int) -> None:
    async def begin() -> None:
        line = KeptAnswers(Client())
        assert api_of(FakeCluster(100)).begin_batch(line.batch(requests)) == taken
        assert DocumentApi(FakeCluster(100)).begin_batch(line.batch(requests)) == 0  # there is no application

    asyncio.run(begin())
