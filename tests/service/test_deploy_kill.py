"""The whole service, killed while packages are deployed: the old application or the new one is there, whole.

PAPERWASP_KILL_ROUNDS says how often (default 3), PAPERWASP_SEED chooses the moments; failures tell the seed. Two
packages take turns that differ in everything that is kept apart: rank profile, a field with an attribute, a content
cluster, a query profile. Each round goes on with the data of the last.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import web
from tests.chance import SEED
from tests.service.music import package
from tests.service.running import RunningService, running_service

ROUNDS = int(os.environ.get("PAPERWASP_KILL_ROUNDS", "3"))
DEPLOY = "/application/v2/tenant/default/prepareandactivate"
APPLICATION = "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
DOCUMENTS = 50
LONGEST_SECONDS = 1.5
NODES = '<redundancy>1</redundancy><nodes><node hostalias="n" distribution-key="0"/></nodes>'
BOOK = "schema book { document book { field title type string { indexing: summary | index } } }"


def music(fields: str, factor: int) -> str:
    return f"""schema music {{
      document music {{
        field title type string {{ indexing: summary | index }}
        field year type int {{ indexing: summary | attribute }}
        {fields}
      }}
      fieldset default {{ fields: title }}
      rank-profile default {{ first-phase {{ expression: attribute(year) * {factor} }} }}
    }}"""


def cluster(id: str, type: str) -> str:
    documents = f'<documents><document type="{type}" mode="index"/></documents>'
    return f'<content id="{id}" version="1.0">{documents}{NODES}</content>'


def files(*content: str, music: str, hits: int) -> bytes:
    container = '<container id="default" version="1.0"><search/><document-api/></container>'
    profile = f'<query-profile id="default"><field name="hits">{hits}</field></query-profile>'
    return package(
        {
            "services.xml": f'<services version="1.0">{container}{"".join(content)}</services>',
            "schemas/music.sd": music,
            "schemas/book.sd": BOOK,
            "search/query-profiles/default.xml": profile,
        }
    )


MOOD = "field mood type string { indexing: summary | attribute }"
PACKAGES = [
    files(cluster("records", "music"), music=music("", 1), hits=3),
    files(cluster("records", "music"), cluster("library", "book"), music=music(MOOD, 2), hits=5),
]


class Deployer(threading.Thread):
    """Deploys one package after the other until nobody answers. Remembers what was acknowledged and asked last."""

    def __init__(self, service: RunningService, active: int) -> None:
        super().__init__()
        self._url = service.config_url + DEPLOY + "?ignoreValidationErrors=true"
        self.acknowledged = self.asked = active
        self.count = 0
        self.refused = ""

    def run(self) -> None:
        with suppress(httpx.TransportError):
            while not self.refused:
                self.asked = 1 - self.acknowledged
                answer = deploy(self._url, PACKAGES[self.asked])
                if answer.status_code != 200 or not answer.json()["activated"]:
                    self.refused = answer.text
                self.acknowledged = self.asked
                self.count += 1


def deploy(url: str, content: bytes) -> httpx.Response:
    return web.post(url, content=content, headers={"Content-Type": "application/zip"}, timeout=60)


def observed(service: RunningService) -> int:
    """Which of the packages is active: every trace of it must say the same."""
    parameters = {"yql": "select * from music where year > 0", "timeout": "20s"}
    root = web.get(service.url + "/search/", params=parameters, timeout=30).json()["root"]
    assert root["fields"]["totalCount"] == DOCUMENTS, f"{root}: seed {SEED}"
    best: dict[str, Any] = root["children"][0]
    books = web.delete(service.url + "/document/v1/ns/book/docid/1", timeout=30)
    mood = web.put(
        service.url + "/document/v1/ns/music/docid/1", json={"fields": {"mood": {"assign": "calm"}}}, timeout=30
    )
    traces = {
        "rank profile": int(best["relevance"] / best["fields"]["year"]) - 1,
        "query profile": {3: 0, 5: 1}[len(root["children"])],
        "content cluster": int("X-Vespa-Ignored-Operation" not in books.headers),
        "field": {400: 0, 200: 1}[mood.status_code],
    }
    assert len(set(traces.values())) == 1, f"{traces}: seed {SEED}"
    return traces["field"]


@pytest.mark.crash
def test_an_application_is_whole_after_a_kill_in_a_deployment(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with running_service(tmp_path / "data") as service:
        assert deploy(service.config_url + DEPLOY, PACKAGES[0]).json()["activated"]
        for number in range(DOCUMENTS):
            fields = {"title": f"Blue Train {number}", "year": 1900 + number}
            path = f"{service.url}/document/v1/ns/music/docid/{number}"
            assert web.post(path, json={"fields": fields}).status_code == 200
        assert observed(service) == 0
    active, generation = 0, 0
    for _ in range(ROUNDS):
        with running_service(tmp_path / "data") as service:
            assert observed(service) == active
            deployer = Deployer(service, active)
            deployer.start()
            deployer.join(chance.random() * LONGEST_SECONDS)
            assert service.stop(signal.SIGKILL) == -signal.SIGKILL
            deployer.join()
        assert deployer.refused == "", f"seed {SEED}"
        with running_service(tmp_path / "data") as service:
            active = observed(service)
            assert active in {deployer.acknowledged, deployer.asked}, f"seed {SEED}"
            converged = web.get(service.config_url + APPLICATION + "/serviceconverge").json()
            assert converged["converged"], f"{converged}: seed {SEED}"
            assert converged["currentGeneration"] >= generation, f"seed {SEED}"
            generation = converged["currentGeneration"]


def test_of_two_deployments_at_once_each_is_told_what_became_of_it(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        url = service.config_url + DEPLOY + "?ignoreValidationErrors=true"
        assert deploy(url, PACKAGES[0]).json()["activated"]
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda number: deploy(url, PACKAGES[number % 2]), range(12)))
        assert {answer.status_code for answer in answers} == {200}
        assert all(answer.json()["activated"] for answer in answers)
        numbers = [int(answer.json()["session-id"]) for answer in answers]
        assert len(set(numbers)) == len(numbers)
        last = web.get(service.config_url + APPLICATION).json()["generation"]
        assert last == max(numbers)
        container = web.get(service.url + "/state/v1/config").json()["config"]["generation"]
        assert container == last
