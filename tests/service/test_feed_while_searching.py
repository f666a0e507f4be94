"""A service in a process of its own, fed and searched at once: no error, no torn read, and memory that stays.

Each version of a document makes all of its fields from one number, so a hit whose fields are of two versions shows
itself. Removed documents come back. What only updates change, a counter in memory, may be newer than the rest of a hit.
PAPERWASP_LIVE_SECONDS says how long (default: a few seconds), PAPERWASP_SEED what is done; failures tell the seed.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

import httpx

from tests import web
from tests.chance import SEED
from tests.service.music import SERVICES, package
from tests.service.running import running_service

SECONDS = float(os.environ.get("PAPERWASP_LIVE_SECONDS", "4"))
DOCUMENTS = 400
LONG_VERSIONS = 36_000
"""From here on memory must have stayed in the last two thirds of a run: before, caches are being filled."""
GROWTH_MEGABYTES = 10
"""In the last third of such a run above the third before it, on average. What may differ is how many dead rows there
are just then: about a kilobyte each, and seldom more than twice `limits.DEAD_ROWS_SERVED_LEAST`. When they were never
given up it was 12, in 52,000 versions: a run of many fewer would not show that."""
SCHEMA = """schema live {
  document live {
    struct person {
      field name type string {}
      field born type int {}
    }
    field title type string { indexing: summary | index
                              index: enable-bm25 }
    field body type array<string> { indexing: summary | index
                                    summary: dynamic }
    field version type int { indexing: summary | attribute
                             attribute: fast-search }
    field kind type string { indexing: summary | attribute
                             attribute: fast-search }
    field tags type array<string> { indexing: summary | attribute }
    field people type array<person> {
      indexing: summary
      struct-field name { indexing: attribute }
      struct-field born { indexing: attribute }
    }
    field scores type map<string, int> {
      indexing: summary
      struct-field key { indexing: attribute }
      struct-field value { indexing: attribute }
    }
    field weights type weightedset<string> { indexing: summary | attribute }
    field where type position { indexing: summary | attribute }
    field rule type predicate { indexing: attribute
                                index { arity: 2 } }
    field vector type tensor<float>(x[2]) { indexing: summary | attribute
                                            attribute { distance-metric: euclidean } }
    field counter type int { indexing: summary | attribute }
  }
  field made type string { indexing: input title | lowercase | summary | attribute }
  fieldset default { fields: title, body }
  rank-profile default { first-phase { expression: bm25(title) + attribute(version) } }
  rank-profile near inherits default { inputs { query(q) tensor<float>(x[2]) } }
  rank-profile sampled inherits default { match-phase { attribute: version
                                                        max-hits: 50 } }
  document-summary attributes { summary version {}
                                summary kind {}
                                summary made {}
                                summary tags {} }
  document-summary matched { summary people { matched-elements-only }
                             summary version {} }
}
"""
FILES = {
    "services.xml": SERVICES.replace('type="music"', 'type="live"'),
    "schemas/live.sd": SCHEMA,
}
WORDS = ("blue", "train", "kind", "giant", "steps", "naima", "so", "what")


def fields_of(version: int) -> dict[str, Any]:
    """All the fields of a version of a document, whatever the document."""
    word = WORDS[version % len(WORDS)]
    return {
        "title": f"{word.title()} Version{version} of it",
        "body": [f"{word} {other} version{version}" for other in WORDS[: version % 5]],
        "version": version,
        "kind": f"kind{version % 7}",
        "tags": [f"tag{version}", f"Tag{version % 3}"],
        "people": [{"name": f"name{version % n}", "born": version} for n in range(1, 2 + version % 4)],
        "scores": {f"k{n}": version for n in range(version % 3)},
        "weights": {f"w{version % 11}": version % 50 + 1, f"v{version}": 1},
        "where": {"lat": version % 80, "lng": version % 170},
        "rule": f"kind in ['k{version % 5}'] and size in [{version % 10}..{version % 10 + 5}]",
        "vector": {"values": [version % 100, version % 13]},
    }


QUERIES: tuple[Callable[[random.Random, int], dict[str, Any]], ...] = (
    lambda r, v: {"yql": "select * from live where true"},
    lambda r, v: {"yql": f"select * from live where default contains '{r.choice(WORDS)}'"},
    lambda r, v: {"yql": f"select * from live where default contains phrase('{r.choice(WORDS)}', 'version{v}')"},
    lambda r, v: {"yql": f"select * from live where body contains near('{r.choice(WORDS)}', 'blue')"},
    lambda r, v: {"yql": "select * from live where kind contains ({prefix: true}'ki') and body contains 'kind'"},
    lambda r, v: {"yql": f"select * from live where tags contains 'tag{v}' or tags matches 'ag{v % 10}'"},
    lambda r, v: {"yql": f"select * from live where tags contains ({{maxEditDistance: 1}}fuzzy('tag{v}'))"},
    lambda r, v: {"yql": f"select * from live where version in ({v}, {v + 1}, {v + 2}) or kind in ('kind1', 'kind3')"},
    lambda r, v: {"yql": f"select * from live where range(version, {v}, {v + 50}) and !(kind contains 'kind2')"},
    lambda r, v: {
        "yql": f"select * from live where people contains sameElement(name contains 'name1', born > {v})",
        "presentation.summary": "matched",
    },
    lambda r, v: {"yql": f"select * from live where scores.value > {v} and scores.key contains 'k1'"},
    lambda r, v: {"yql": f"select * from live where dotProduct(weights, {{'w1': 3, 'w{v % 11}': 7, 'v{v}': 90}})"},
    lambda r, v: {"yql": f"select * from live where {{targetHits: 5}}wand(weights, {{'w2': 3, 'w{v % 11}': 7}})"},
    lambda r, v: {"yql": "select * from live where {targetHits: 5}weakAnd(title contains 'blue', title contains 'it')"},
    lambda r, v: {
        "yql": "select * from live where {targetHits: 7}nearestNeighbor(vector, q)",
        "ranking": "near",
        "input.query(q)": [v % 100, v % 13],
    },
    lambda r, v: {"yql": f"select * from live where geoLocation(where, {v % 80}, {v % 170}, '500 km')"},
    lambda r, v: {"yql": f"select * from live where predicate(rule, {{'kind': 'k{v % 5}'}}, {{'size': {v % 12}}})"},
    lambda r, v: {"yql": "select * from live where rank(true, title contains 'blue')", "ranking": "sampled"},
    lambda r, v: {
        "yql": "select * from live where true order by kind desc, tags, version asc",
        "presentation.summary": "attributes",
    },
    lambda r, v: {"yql": "select version, made, kind from live where true order by made", "offset": r.randrange(300)},
    lambda r, v: {"query": f"{r.choice(WORDS)} -version{v}", "collapsefield": "kind"},
    lambda r, v: {"yql": "select * from live where made matches 'n[0-9]*5 of'", "presentation.summary": "attributes"},
    lambda r, v: {"yql": f"select * from live where nonEmpty(default contains '{r.choice(WORDS)}')", "tracelevel": 3},
)  # fmt: skip


def wrong(fields: dict[str, Any]) -> str | None:
    """What of a hit is not of the version that the rest of it is of."""
    wanted = fields_of(fields["version"])
    for name in ("title", "kind", "tags"):
        if name in fields and fields[name] != wanted[name]:
            return name
    if "made" in fields and fields["made"] != wanted["title"].lower():
        return "made"
    if "people" in fields and not all(person in wanted["people"] for person in fields["people"]):
        return "people"
    if "scores" in fields and fields["scores"] != wanted["scores"]:
        return "scores"
    if "weights" in fields and fields["weights"] != wanted["weights"]:
        return "weights"
    return None


class Clients:
    """What feeds and what asks, until the time is over."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._end = time.monotonic() + SECONDS
        self._version = 0
        self._lock = threading.Lock()
        self.done: Counter[str] = Counter()

    def next_version(self) -> int:
        with self._lock:
            self._version += 1
            return self._version

    def feed(self, number: int) -> None:
        """Changes documents of its own."""
        chance = random.Random(f"{SEED} feeder {number}")
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while time.monotonic() < self._end:
                path = f"/document/v1/ns/live/docid/{number}-{chance.randrange(DOCUMENTS)}"
                version = self.next_version()
                kind = chance.choices(("put", "assign", "increment", "remove"), (6, 2, 3, 1))[0]
                if kind == "put":
                    answer = client.post(path, json={"fields": {**fields_of(version), "counter": 0}})
                elif kind == "assign":
                    assigned = {name: {"assign": value} for name, value in fields_of(version).items()}
                    answer = client.put(path, json={"fields": assigned}, params={"create": "true"})
                elif kind == "increment":
                    answer = client.put(path, json={"fields": {"counter": {"increment": 1}}})
                else:
                    answer = client.delete(path)
                assert answer.status_code == 200, (SEED, kind, answer.text)
                self.done[kind] += 1

    def search(self, number: int) -> None:
        chance = random.Random(f"{SEED} asker {number}")
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while time.monotonic() < self._end:
                at = chance.randrange(len(QUERIES))
                query = QUERIES[at](chance, chance.randrange(self._version + 1))
                query = {"timeout": "20s", "hits": chance.choice((0, 1, 10, 100)), **query}
                root = client.post("/search/", json=query).json()["root"]
                assert "errors" not in root, (SEED, query, root["errors"])
                assert root["coverage"]["full"] or query.get("ranking") == "sampled", (SEED, query, root["coverage"])
                for hit in root.get("children", ()):
                    if "version" in hit.get("fields", ()):
                        assert (torn := wrong(hit["fields"])) is None, (SEED, torn, query, hit)
                        self.done["hits"] += 1
                self.done[f"query {at}"] += 1

    def watch(self, process: int, pause: threading.Event) -> list[int]:
        """What the process has allocated in megabytes, every half a minute or tenth of the time."""
        sizes = []
        while time.monotonic() < self._end:
            pause.wait(min(30.0, SECONDS / 10))
            status = Path(f"/proc/{process}/status").read_text()
            sizes.append(int(status.split("RssAnon:")[1].split()[0]) // 1024)
            sys.stdout.write(f"{sizes[-1]} MB after {self._version} versions\n")
            sys.stdout.flush()
        return sizes


def test_what_is_fed_is_found_whole_while_it_changes(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        deployed = web.post(
            f"{service.config_url}/application/v2/tenant/default/prepareandactivate",
            content=package(FILES),
            headers={"Content-Type": "application/zip"},
            timeout=60,
        )
        assert deployed.status_code == 200, deployed.text
        clients = Clients(service.url)
        with ThreadPoolExecutor(8) as pool:
            working = [pool.submit(clients.feed, number) for number in range(3)]
            working += [pool.submit(clients.search, number) for number in range(4)]
            memory = pool.submit(clients.watch, service.process.pid, threading.Event())
            for client in working:
                client.result()
        assert clients.done["hits"] > 0 and clients.done["put"] > 0, (SEED, clients.done)
        assert sum(kind.startswith("query") for kind in clients.done) > len(QUERIES) / 2, (SEED, clients.done)
        sizes = memory.result()
        assert sizes, SEED
        if clients.next_version() >= LONG_VERSIONS:
            third = len(sizes) // 3
            assert len(sizes) >= 9, (SEED, sizes)
            assert mean(sizes[-third:]) - mean(sizes[-2 * third : -third]) < GROWTH_MEGABYTES, (SEED, sizes)
        sys.stdout.write(f"{clients.done}\n")
