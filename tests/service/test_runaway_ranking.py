"""Expressions of rank profiles that would work for hours: answered when the query's time is over, with an error or with
what was ranked by then; too large ones are refused; and the service goes on.

Authority: https://docs.vespa.ai/en/reference/api/query.html#ranking.softtimeout.enable
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from paperwasp import limits
from tests import web
from tests.service.in_process import Deployed, active, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="c" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="t" mode="index"/></documents>
  </content>
</services>"""
WORK = {
    "generated": "reduce(tensor(x[2000],y[2000])(x * y + attribute(a)), sum)",
    "joined": "reduce(join(tensor(x[4000])(x + attribute(a)), tensor(y[4000])(y), f(a,b)(a * b + exp(a))), sum)",
    "multiplied": "reduce(matmul(tensor(x[500],y[500])(x), tensor(y[500],z[500])(z + attribute(a)), y), sum)",
    "mapped": "reduce(map(map(tensor(x[1000],y[1000])(x+y+attribute(a)), f(v)(exp(sin(v)))), f(v)(log(v+2))), sum)",
    "subspaces": "sum(map_subspaces(attribute(m) * tensor(y[1000])(y), f(t)(reduce(t * tensor(w[300])(w), sum, y))))",
    "wide": "reduce(" + " * ".join(f"tensor(d{n}[30])(d{n}+attribute(a))" for n in range(5)) + ", sum)",
}  # fmt: skip
LARGE = ("joined", "wide")
"""Those of which one document needs more memory than a query may take."""
HUGE = "reduce(tensor(x[80000],y[80000])(x * y + attribute(a)), sum)"
FEW = "reduce(tensor(x[100],y[100])(x * y + attribute(a)), sum)"
PHASES = {
    "first": "first-phase { expression: work }",
    "second": "first-phase { expression: attribute(a) }\n second-phase { expression: work\n rerank-count: 1000 }",
    "global": "first-phase { expression: attribute(a) }\n global-phase { expression: work\n rerank-count: 1000 }",
    "shown": "first-phase { expression: attribute(a) }\n summary-features { work }",
}
DOCUMENTS = 500
SECONDS = 30
"""Within which anything is answered, on a machine that does much else, too."""
MEMORY_BYTES = 512 << 20


def profiles() -> Iterator[str]:
    for name, work in {**WORK, "huge": HUGE, "few": FEW}.items():
        for phase, said in PHASES.items():
            yield f"rank-profile {name}_{phase} {{ function work() {{ expression: {work} }}\n {said} }}"
    yield f"""rank-profile few_both {{ function work() {{ expression: {FEW} }}
        first-phase {{ expression: work }}
        global-phase {{ expression: 1e12 + attribute(a)
            rerank-count: 3 }} }}"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    fields = "field a type int { indexing: attribute } field m type tensor<float>(k{}) { indexing: attribute }"
    schema = f"schema t {{ document t {{ {fields} }}\n{chr(10).join(profiles())} }}"
    with deployed_service(tmp_path_factory.mktemp("runaway")) as service, httpx.Client(timeout=30) as client:
        active(service.deploy({"services.xml": SERVICES, "schemas/t.sd": schema}))
        for number in range(DOCUMENTS):
            tensor = {str(label): 1.0 for label in range(20)}
            path = f"{service.url}/document/v1/t/t/docid/{number}"
            assert client.post(path, json={"fields": {"a": number, "m": tensor}}).status_code == 200
        yield service


def asked(service: Deployed, profile: str, timeout: str, **more: Any) -> tuple[int, dict[str, Any]]:
    body = {"yql": "select * from t where true", "ranking": profile, "timeout": timeout, "hits": 400, **more}
    answer = web.post(f"{service.url}/search/", json=body, timeout=60)
    return answer.status_code, answer.json()["root"]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", WORK)
def test_work_ends_with_the_time_of_the_query(service: Deployed, name: str, phase: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begun = time.monotonic()
    status, root = asked(service, f"{name}_{phase}", "200ms")
    assert time.monotonic() - begun < SECONDS
    if status == 200:
        assert root["coverage"]["degraded"]["timeout"] is True
    elif name in LARGE and status == 400:
        assert [error["code"] for error in root["errors"]] == [4]
        assert f"than the {limits.QUERY_MEMORY_BYTES:,} bytes of memory" in root["errors"][0]["message"]
    else:
        assert (status, [error["code"] for error in root["errors"]]) == (504, [12])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < before + MEMORY_BYTES
    assert asked(service, "unranked", "20s", hits=1)[0] == 200


@pytest.mark.parametrize("phase", PHASES)
def test_what_is_too_large_is_refused(service: Deployed, phase: str) -> None:
    status, root = asked(service, f"huge_{phase}", "20s")
    message = root["errors"][0]["message"]
    assert status == 400
    assert "needs too much memory: a result of type tensor(x[80000],y[80000])" in message
    assert f"more than {limits.TENSOR_BATCH_CELLS} cells" in message


def test_what_was_ranked_before_the_time_was_over_is_the_answer(
    service: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hits are worked at a time, so that there are many parts. Whenever it ends: the whole, some hits with the
    reason, or that there was no time; the hits that are there have their scores, and the best come first."""
    monkeypatch.setattr(limits, "TENSOR_BATCH_CELLS", 25_000)
    whole = {100 * 100 * (49.5 * 49.5 + number) for number in range(DOCUMENTS)}
    seen = set()
    for timeout_ms in (20, 40, 60, 80, 100, 150, 200, 300, 500, 1000, 20_000):
        status, root = asked(service, "few_first", f"{timeout_ms}ms")
        found = [hit["relevance"] for hit in root.get("children", [])]
        assert found == sorted(found, reverse=True)
        assert all(min(abs(score - each) for each in whole) < 1 for score in found[:5])
        if status == 504:
            assert not found
            seen.add("no time")
        else:
            assert status == 200
            degraded = root["coverage"].get("degraded", {}).get("timeout", False)
            assert root["fields"]["totalCount"] == DOCUMENTS or degraded
            assert root["coverage"]["full"] is not degraded
            seen.add("some" if degraded and found else "none" if degraded else "all")
        hard, _ = asked(service, "few_first", f"{timeout_ms}ms", **{"ranking.softtimeout.enable": "false"})
        assert hard in (200, 504)
    assert "all" in seen and seen & {"some", "none", "no time"}


def test_a_global_phase_ranks_what_there_was_time_for(service: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best three of the hits that are there are ranked anew, whether or not these are all."""
    monkeypatch.setattr(limits, "TENSOR_BATCH_CELLS", 25_000)
    for timeout_ms in (40, 80, 150, 300, 600, 20_000):
        status, root = asked(service, "few_both", f"{timeout_ms}ms")
        assert status in (200, 504)
        scores = [hit["relevance"] for hit in root.get("children", [])]
        assert scores == sorted(scores, reverse=True)
        assert [score >= 1e12 for score in scores] == [place < 3 for place in range(len(scores))]
    assert len(scores) == 400
