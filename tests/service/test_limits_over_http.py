"""What asks for far more than its size, over HTTP: each is answered with its status and its limit, in little memory.

docs/reference/limits.md lists all limits with the tests that reach them; `tests/docs/test_limits_page.py` holds it
against the code.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final
from urllib.parse import urlsplit

import cbor2
import pytest

from paperwasp import limits
from paperwasp.configserver.deployments import Deployments
from paperwasp.coordination.worker_pool import WorkerPool
from tests import web
from tests.service.in_process import deployed_service
from tests.service.large_requests import ANSWERED, DOCUMENT, FILES, ROWS, WHERE, ZIP, Row, zipped
from tests.service.query_scripts import deploy_and_feed
from tests.service.running import RunningService, running_service
from tests.service.test_grouping_scripts import PURCHASES

ANSWER_SECONDS: Final = 60
"""No answer may take longer, on a busy machine either."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running_service(tmp_path_factory.mktemp("limits") / "data") as service:
        target = f"{service.config_url}/application/v2/tenant/default/prepareandactivate"
        deployed = web.post(target, content=zipped(FILES), headers=ZIP, timeout=60)
        assert deployed.json().get("activated"), deployed.text
        fields = {
            "title": "x" * 1000,
            "word": "a" * 20_000,
            "numbers": [*range(50)],
            "rating": 2.5,
            "dense": [1, 2, 3, 4],
        }
        assert web.post(service.url + DOCUMENT, json={"fields": fields}).status_code == 200
        yield service


@contextmanager
def most_memory(service: RunningService) -> Iterator[list[float]]:
    """What the service takes more than before, in MiB, at the most: put into the list at the end."""
    folder, found = Path(f"/proc/{service.process.pid}"), list[float]()
    (folder / "clear_refs").write_text("5")
    before = _of_status(folder, "VmRSS")
    yield found
    found.append((_of_status(folder, "VmHWM") - before) / 1024)


def _of_status(folder: Path, name: str) -> int:
    lines = (folder / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def ask(service: RunningService, row: Row) -> tuple[int, str]:
    """Status, and the text of the answer."""
    body = row.body()
    parts = urlsplit(service.config_url if row.of_config else service.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_SECONDS)
    try:
        connection.request(row.method, row.target, body, dict(row.headers))
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.getheader("Content-Type") == "application/cbor":
        return answer.status, json.dumps(cbor2.loads(content))
    return answer.status, content.decode()


@pytest.mark.parametrize("name", ROWS)
def test_refused(service: RunningService, name: str) -> None:
    row = ROWS[name]
    with most_memory(service) as memory:
        status, text = ask(service, row)
    assert (status, row.said in text) == (row.status, True), text[:1000]
    assert memory[0] < row.most_mib
    assert web.get(service.url + "/state/v1/health").json()["status"] == {"code": "up"}


@pytest.mark.parametrize("name", ANSWERED)
def test_answered(service: RunningService, name: str) -> None:
    row = ANSWERED[name]
    with most_memory(service) as memory:
        status, text = ask(service, row)
    assert (status, row.said in text) == (row.status, True), text[:1000]
    assert memory[0] < row.most_mib


NUMBERS: Final = (
    *("numbers = {}", "numbers in ({})", "numbers in ({}, 1)", "numbers > {}", "range(numbers, 1, {})", "rating < {}"),
    *("rating in (1, {})", "range(rating, {}, {})", "numbers contains '{}'", "rating contains '[{};5]'"),
    *("weightedSet(numbers, {{'{}':1}})", "wand(numbers, [[1,1],[{},1]])", "dotProduct(numbers, {{'{}':{}}})"),
    *(
        "geoLocation(place, {}, {}, '{} km')",
        "geoBoundingBox(place, {}, {}, {}, {})",
        "true limit {}",
        "true offset {}",
    ),
    *("{{targetHits:5,distanceThreshold:{}}}nearestNeighbor(dense, v)", "{{targetHits:{}}}nearestNeighbor(dense, v)"),
    *(
        "title contains ({{weight:{}}}'a')",
        "title contains ({{significance:{}}}'a')",
        "predicate(who, {{}}, {{'a':{}}})",
    ),
    *("title contains ({{connectivity:{{id:1,weight:{}}}}}'a')", "word contains ({{maxEditDistance:{}}}fuzzy('a'))"),
    *(
        "true | all(group(numbers + {}) each(output(count())))",
        "true | all(group(numbers) max({}) each(output(count())))",
    ),
)
PARAMETERS: Final = (
    *(
        {"pos.bb": "n={0},s=2,e=3,w=0"},
        {"pos.bb": "n=1,s=-{0},e={0},w=1"},
        {"pos.ll": "N{0};E{0}"},
        {"pos.xy": "{0};{0}"},
    ),
    *({"ranking.location": "place:(2,{0},{0},{0},0,1,0,{0})"}, {"query": "numbers:[{0};{0}] rating:<{0}"}),
    *({"hits": "{0}"}, {"timeout": "{0}"}, {"wand.heapSize": "{0}"}, {"collapsesize": "{0}"}, {"tracelevel": "{0}"}),
    *({"input.query(v)": "[{0},1,1,1]"}, {"ranking.features.bm25(title)": "{0}"}, {"searchAfter": "{0}"}),
    {
        "grouping.defaultPrecisionFactor": "{0}",
        "grouping.defaultMaxHits": "-7",
        "select": "all(group(numbers) max(1) each(each(output(summary()))))",
    },
    {"select.where": '{{"range":["rating",{{">":{0}}}]}}'},
)


@pytest.mark.parametrize(
    "number", ["1" * 20, "-" + "1" * 50, "9" * 308, "9" * 309, "-" + "9" * 400, "9" * 5000, "1e999"]
)
def test_long_numbers(service: RunningService, number: str) -> None:
    """A double has at most 309 digits before its point: no number is a defect, wherever it stands."""
    plain = {"ranking": "vectors", "input.query(v)": "[1,2,3,4]", "timeout": "20s"}
    asked = [{**plain, "yql": WHERE + where.format(*[number] * 4)} for where in NUMBERS]
    for parameters in PARAMETERS:
        more = {name: value.format(number) for name, value in parameters.items()}
        asked.append({**plain, **({} if "select.where" in more else {"yql": f"{WHERE}true"}), **more})
    for body in asked:
        if "query" in body:
            body["yql"] = f"{WHERE}userQuery()"
        answer = web.post(f"{service.url}/search/", json=body, timeout=60)
        codes = {error["code"] for error in answer.json()["root"].get("errors", ())}
        assert answer.status_code in (200, 400) and 5 not in codes, (body, answer.text[:300])


def test_deployments_of_a_tenant_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for the first; the one beyond the limit is refused, and those of another tenant are not."""
    began, go_on, prepare = Event(), Event(), Deployments.prepare_and_activate

    def held_up(deployments: Deployments, *arguments: Any) -> Any:
        began.set()
        assert go_on.wait(ANSWER_SECONDS)
        return prepare(deployments, *arguments)

    monkeypatch.setattr(limits, "TENANT_DEPLOYMENTS", 2)
    monkeypatch.setattr(Deployments, "prepare_and_activate", held_up)
    with deployed_service(tmp_path / "data") as service, ThreadPoolExecutor(3) as threads:
        try:
            assert web.put(f"{service.config_url}/application/v2/tenant/calm").status_code == 200
            url = f"{service.config_url}/application/v2/tenant/{{}}/prepareandactivate?applicationName={{}}"
            asked = [
                threads.submit(web.post, url.format("default", name), content=zipped(FILES), headers=ZIP, timeout=60)
                for name in ("a", "b", "c")
            ]
            refused = next(as_completed(asked, ANSWER_SECONDS)).result()
            assert refused.status_code == 429
            assert refused.json() == {
                "error-code": "TOO_MANY_REQUESTS",
                "message": "2 deployments of tenant 'default' are being processed: try again later",
            }
            calm = f"{service.config_url}/application/v2/tenant/calm/session"
            assert web.post(calm, content=zipped(FILES), headers=ZIP).status_code == 200
        finally:
            go_on.set()
        assert sorted(each.result().status_code for each in asked) == [200, 200, 429]


def test_queries_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are worked on, one waits, and the others are refused; afterwards all goes on."""
    monkeypatch.setattr(WorkerPool.__init__, "__defaults__", (2, 1))
    with deployed_service(tmp_path / "data") as service, ThreadPoolExecutor(8) as threads:
        deploy_and_feed(service, PURCHASES)
        wait = "all(group(debugwait(customer, 1, false)) each(output(count())))"
        body = {"yql": f"select * from purchase where true limit 0 | {wait}", "timeout": "3s"}
        asked = [threads.submit(web.post, f"{service.url}/search/", json=body, timeout=60) for _ in range(8)]
        answers = [each.result() for each in asked]
        statuses = sorted(answer.status_code for answer in answers)
        assert 429 in statuses and set(statuses) <= {200, 429, 504}
        refused = next(answer for answer in answers if answer.status_code == 429)
        error = refused.json()["root"]["errors"][0]
        assert error["code"] == 429 and "1 queries are waiting already (QUERY_QUEUE_LENGTH" in error["message"]
        plain = web.get(f"{service.url}/search/", params={"yql": "select * from purchase where true"})
        assert plain.status_code == 200 and plain.json()["root"]["fields"]["totalCount"] == 20
