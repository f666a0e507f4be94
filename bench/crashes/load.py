"""The load: several connections that change documents of their own, queries, visits and deployments beside them."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import threading
from collections import Counter
from typing import Any, Final
from urllib.parse import urlencode

import httpx

from bench.crashes import application, state
from bench.crashes.state import State, deed_on
from bench.deploy import zip_of

CONNECTIONS: Final = 4
"""HTTP/1.1 connections that change documents."""
STREAMS: Final = 12
"""Streams of one HTTP/2 connection that do the same."""
UNKNOWN: Final = (500, 503, 504, 507)
"""Answers after which an operation may be done or not."""
REFUSED: Final = (429,)
"""Answers after which it is not done."""
DEPLOY: Final = "/application/v2/tenant/default/prepareandactivate"
_METHODS: Final = {"put": "POST", "update": "PUT", "remove": "DELETE"}
_LOST: Final = (OSError, http.client.HTTPException, httpx.HTTPError, json.JSONDecodeError)
_QUERIES: Final = (
    'title contains "two"', "count > -5", 'lyrics contains "one" or true', "true order by parent_year",
    "{targetHits:10}nearestNeighbor(mixed, q) or true",
)  # fmt: skip


class Load:
    """Works until it is stopped, or until nobody answers."""

    def __init__(self, port: int, config_port: int, known: State, seed: str, deploys: bool) -> None:
        self._port, self._config_port, self._state = port, config_port, known
        self._seed = seed
        self._ended = threading.Event()
        self.counts = Counter[str]()
        self.statuses = Counter[str]()
        names = sorted(known.things)
        shares = [names[place :: CONNECTIONS + STREAMS] for place in range(CONNECTIONS + STREAMS)]
        targets = [(self._change, shares[place], place) for place in range(CONNECTIONS)]
        self._threads = [threading.Thread(target=target, args=given, daemon=True) for target, *given in targets]
        self._threads.append(threading.Thread(target=self._stream, args=(shares[CONNECTIONS:],), daemon=True))
        self._threads.append(threading.Thread(target=self._change_bases, daemon=True))
        self._threads.append(threading.Thread(target=self._read, daemon=True))
        if deploys:
            self._threads.append(threading.Thread(target=self._deploy, daemon=True))

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """To be called when the service is dead, or to go on."""
        self._ended.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), thread

    def _ask(self, connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def _change(self, names: list[int], number: int) -> None:
        chance = random.Random(f"{self._seed} {number}")
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._ended.is_set():
            deed = deed_on(chance, names)
            sets = self._state.attribute_sets()
            status = None
            try:
                query = f"?{urlencode(state.parameters_of(deed))}"
                body = None if deed.kind == "remove" else state.body_of(deed)
                status, answer = self._ask(
                    connection, _METHODS[deed.kind], f"/document/v1/n/thing/docid/{deed.name}{query}", body
                )
                self._note(deed, status, answer)
            except _LOST:
                return
            finally:
                self._done(deed, sets, status)

    def _note(self, deed: Any, status: int, answer: Any) -> None:
        self.counts[deed.kind] += 1
        if status not in (200, 412):
            self.statuses[f"{status} {deed.kind}: {str(answer.get('message'))[:150]}"] += 1

    def _done(self, deed: Any, sets: list[frozenset[str]], status: int | None) -> None:
        if status in REFUSED:
            return
        both = [*sets, *(each for each in self._state.attribute_sets() if each not in sets)]
        self._state.done(deed, both, None if status in UNKNOWN else status)

    def _stream(self, shares: list[list[int]]) -> None:
        asyncio.run(self._streams(shares))

    async def _streams(self, shares: list[list[int]]) -> None:
        async with httpx.AsyncClient(
            http1=False, http2=True, timeout=60, base_url=f"http://127.0.0.1:{self._port}"
        ) as client:
            await asyncio.gather(*(self._change_by_stream(client, names, place) for place, names in enumerate(shares)))

    async def _change_by_stream(self, client: httpx.AsyncClient, names: list[int], number: int) -> None:
        chance = random.Random(f"{self._seed} stream {number}")
        while not self._ended.is_set():
            deed = deed_on(chance, names)
            sets = self._state.attribute_sets()
            status = None
            try:
                body = None if deed.kind == "remove" else state.body_of(deed)
                answer = await client.request(
                    _METHODS[deed.kind], f"/document/v1/n/thing/docid/{deed.name}",
                    params=state.parameters_of(deed), content=None if body is None else json.dumps(body),
                )  # fmt: skip
                status = answer.status_code
                self._note(deed, status, answer.json())
            except (*_LOST, RuntimeError, KeyError):  # h2 forgets a stream that is answered while the connection ends
                return
            finally:
                self._done(deed, sets, status)

    def _change_bases(self) -> None:
        chance = random.Random(f"{self._seed} bases")
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._ended.is_set():
            name = chance.randrange(application.BASES)
            has_more = all(application.has_more(version) for version in self._state.versions)
            deed, body = state.random_base(chance, name, has_more)
            status = None
            try:
                query = "?create=true" if deed.create and deed.kind == "update" else ""
                status, answer = self._ask(
                    connection,
                    _METHODS[deed.kind],
                    f"/document/v1/n/base/docid/{name}{query}",
                    None if deed.kind == "remove" else body,
                )
                self._note(deed, status, answer)
            except _LOST:
                return
            finally:
                if status not in REFUSED:
                    self._state.done_to_base(deed, status)
            self._ended.wait(0.01)

    def _read(self) -> None:
        chance = random.Random(f"{self._seed} reader")
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            while not self._ended.is_set():
                if chance.random() < 0.2:
                    status, _ = self._ask(connection, "GET", "/document/v1/?cluster=things&wantedDocumentCount=50")
                    self.counts["visit"] += 1
                else:
                    body = {"yql": f"select * from thing where {chance.choice(_QUERIES)}", "hits": 20, "timeout": "20s",
                            "ranking": "near", "input.query(q)": [1, 2]}  # fmt: skip
                    status, answer = self._ask(connection, "POST", "/search/", body)
                    self.counts["search"] += 1
                    if status != 200:
                        self.statuses[f"{status} search: {str(answer['root'].get('errors'))[:200]}"] += 1
                self._ended.wait(0.02)
        except _LOST:
            return

    def _deploy(self) -> None:
        chance = random.Random(f"{self._seed} deployments")
        while not self._ended.wait(chance.uniform(0.2, 1.5)):
            (before,) = self._state.versions
            version = before + chance.choice((1, 1, 2, 3))
            self._state.versions = (before, version)
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._config_port, timeout=60)
                connection.request(
                    "POST", DEPLOY, zip_of(application.files(version)), {"Content-Type": "application/zip"}
                )
                answer = connection.getresponse()
                content = answer.read()
            except _LOST:
                return
            if answer.status != 200:
                self.statuses[f"{answer.status} deploy {version}: {content[:300]!r}"] += 1
                return
            self._state.versions = (version,)
            self.counts["deploy"] += 1
