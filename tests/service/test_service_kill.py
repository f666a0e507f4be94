"""The whole service, killed while it is fed over HTTP: everything acknowledged is there after the restart.

PAPERWASP_KILL_ROUNDS says how often (default 3), PAPERWASP_SEED chooses the moments and the changes. Each round
goes on with the data of the last; failures tell the seed.
"""

from __future__ import annotations

import http.client
import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from tests.chance import SEED
from tests.service.music import write_package
from tests.service.running import RunningService, running_service

ROUNDS = int(os.environ.get("PAPERWASP_KILL_ROUNDS", "3"))
FEEDERS = 6


class Feeder(threading.Thread):
    """Changes documents of its own, one after the other, until nobody answers. Remembers what was acknowledged."""

    def __init__(self, url: str, number: int, round_number: int, known: dict[str, int | None]) -> None:
        super().__init__()
        self._address = urlsplit(url).netloc
        self._random = random.Random(f"{SEED} {round_number} {number}")
        self._number = number
        self.acknowledged = known
        self.uncertain: dict[str, int | None] = {}
        self.count = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=10)
        with suppress(OSError, http.client.HTTPException):
            while True:
                self._change(connection)
        connection.close()

    def _change(self, connection: http.client.HTTPConnection) -> None:
        name = f"{self._number}-{self._random.randrange(300)}"
        year = None if self._random.random() < 0.2 else self._random.randrange(2000)
        path = f"/document/v1/ns/music/docid/{name}"
        self.uncertain = {name: year}
        if year is None:
            connection.request("DELETE", path)
        else:
            fields = {"title": f"Blue Train number {name} of {year}", "year": year}
            connection.request("POST", path, orjson.dumps({"fields": fields}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()
        self.acknowledged[name] = year
        self.uncertain = {}
        self.count += 1


def check(service: RunningService, feeders: list[Feeder]) -> None:
    """Every document is as acknowledged, or as the one request without an answer would have it; queries agree."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=10)
    alive = 0
    for feeder in feeders:
        for name, year in feeder.acknowledged.items():
            connection.request("GET", f"/document/v1/ns/music/docid/{name}")
            content = orjson.loads(connection.getresponse().read())
            found = content.get("fields", {}).get("year")
            assert found in {year, feeder.uncertain.get(name, year)}, f"{name}: seed {SEED}"
            feeder.acknowledged[name] = found
            alive += found is not None
        # What was asked last and never acknowledged may be there or not: ask.
        for name in feeder.uncertain.keys() - feeder.acknowledged.keys():
            connection.request("GET", f"/document/v1/ns/music/docid/{name}")
            found = orjson.loads(connection.getresponse().read()).get("fields", {}).get("year")
            feeder.acknowledged[name] = found
            alive += found is not None
    for query in ("select * from music where true", "select * from music where title contains 'train'"):
        connection.request("POST", "/search/", orjson.dumps({"yql": query, "hits": 0}))
        answer = orjson.loads(connection.getresponse().read())
        assert answer["root"]["fields"]["totalCount"] == alive, f"{query}: seed {SEED}"
    connection.close()


@pytest.mark.crash
def test_every_acknowledged_change_outlives_kills(tmp_path: Path) -> None:
    known: list[dict[str, int | None]] = [{} for _ in range(FEEDERS)]
    application = str(write_package(tmp_path / "music"))
    chance = random.Random(SEED)
    feeders: list[Feeder] = []
    count = 0
    for round_number in range(ROUNDS):
        with running_service(tmp_path / "data", *([application] if round_number == 0 else [])) as service:
            check(service, feeders)
            feeders = [Feeder(service.url, number, round_number, known[number]) for number in range(FEEDERS)]
            for feeder in feeders:
                feeder.start()
            killer = threading.Timer(chance.uniform(0.05, 1.0), service.process.send_signal, (signal.SIGKILL,))
            killer.start()
            for thread in (killer, *feeders):
                thread.join()
            count += sum(feeder.count for feeder in feeders)
    assert count > 0
    with running_service(tmp_path / "data") as service:
        check(service, feeders)
