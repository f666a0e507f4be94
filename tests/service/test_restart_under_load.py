"""Content clusters and containers are restarted while clients query and feed: requests wait, and nothing is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from paperwasp import limits
from paperwasp.coordination.messenger import Reply
from paperwasp.errors import InternalError, Overload
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Match, Query
from paperwasp.search.text_query import TextQuery, TextTemplate
from paperwasp.server.roles import content_cluster
from tests import web
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import FILES

RESTARTS = 5


def restart(service: Deployed, cluster_type: str) -> None:
    answer = web.post(service.application_url() + "/restart", params={"clusterType": cluster_type}, timeout=60)
    assert (answer.status_code, answer.json()) == (200, {"message": "Success"})


def test_a_content_cluster_is_restarted_without_a_request_that_fails(tmp_path: Path) -> None:
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES))
        done = threading.Event()
        fed: set[int] = set()

        def feed(first: int) -> None:
            with httpx.Client(base_url=service.url, timeout=60) as client:
                number = first
                while not done.is_set():
                    fields = {"title": f"Blue Train {number}", "year": number}
                    answer = client.post(f"/document/v1/ns/music/docid/{number}", json={"fields": fields})
                    assert answer.status_code == 200, answer.text
                    fed.add(number)
                    number += 2

        def query() -> None:
            parameters = {"yql": "select * from music where true", "hits": "0", "timeout": "50s"}
            last = 0
            with httpx.Client(base_url=service.url, timeout=60) as client:
                while not done.is_set():
                    root = client.get("/search/", params=parameters).json()["root"]
                    assert "errors" not in root, root
                    assert root["fields"]["totalCount"] >= last
                    last = root["fields"]["totalCount"]

        with ThreadPoolExecutor(3) as pool:
            working = [pool.submit(feed, 1), pool.submit(feed, 2), pool.submit(query)]
            try:
                for _ in range(RESTARTS):
                    restart(service, "content")
            finally:
                done.set()
            for each in working:
                each.result()
        with httpx.Client(base_url=service.url, timeout=30) as client:
            for number in fed:
                document = client.get(f"/document/v1/ns/music/docid/{number}").json()
                assert document["fields"]["year"] == number


def test_who_connects_while_a_container_restarts_is_answered(tmp_path: Path) -> None:
    """No connection is refused. One that asks nothing at the moment is closed, and its client asks anew."""
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES))
        done = threading.Event()
        answers: list[int] = []

        def ask() -> None:
            while not done.is_set():
                with suppress(httpx.RemoteProtocolError, httpx.ReadError):
                    answers.append(web.get(service.url + "/state/v1/config", timeout=60).status_code)

        with ThreadPoolExecutor(2) as pool:
            working = [pool.submit(ask) for _ in range(2)]
            try:
                for _ in range(RESTARTS):
                    restart(service, "container")
            finally:
                done.set()
            for each in working:
                each.result()
        assert set(answers) == {200}
        assert len(answers) >= RESTARTS


def test_messages_wait_in_order_and_not_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESTART_WAITING_MESSAGES", 3)
    waiting = content_cluster._Waiting()
    seen: list[object] = []

    def handler(message: object, reply: Reply) -> None:
        if message == "wrong":
            raise InternalError("no")
        seen.append(message)
        reply(message)

    answers: list[object] = []
    for message in ("one", "wrong", "three"):
        waiting.handle(message, answers.append)
    with pytest.raises(Overload):
        waiting.handle("four", answers.append)
    waiting.release(handler)
    waiting.handle("five", answers.append)
    assert seen == ["one", "three", "five"]
    assert [str(answer) for answer in answers] == ["one", "no", "three", "five"]


def test_what_waits_is_told_when_there_is_nobody_to_serve_it() -> None:
    waiting = content_cluster._Waiting()
    answers: list[object] = []
    waiting.handle("one", answers.append)
    waiting.refuse(InternalError("gone"))
    waiting.handle("two", answers.append)
    assert [str(answer) for answer in answers] == ["gone", "gone"]


def test_a_query_for_a_plan_does_not_wait() -> None:
    """It is asked again the general way, whose time is looked at."""
    template = TextTemplate(Query(Match(WordItem("title", "blue"))), "title", "or")
    query = TextQuery(template, "blue", 10, 0, 1)
    waiting = content_cluster._Waiting()
    answers: list[object] = []
    waiting.handle(query, answers.append)
    assert answers == [None]
    waiting.release(lambda message, reply: reply(message))
    waiting.handle(query, answers.append)
    assert answers == [None, query]
