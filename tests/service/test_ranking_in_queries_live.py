"""Ranking expressions in queries to a deployed service: deployments in between, many at once, the switch, hostile ones.

What they change is in `tests/container/search/test_query_expressions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import web
from tests.service.in_process import ZIP, Deployed, active, deployed_service
from tests.service.music import package as zipped
from tests.service.running import running_service

SERVICES = """<services version="1.0">{0}
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="c" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="t" mode="index"/></documents>
  </content>
</services>"""
OFF = '<config name="paperwasp.search.ranking-expressions"><enabled>false</enabled></config>'
SCHEMA = """schema t {{
  document t {{ field a type int {{ indexing: attribute }} }}
  rank-profile p {{
    function f(x) {{ expression: x * {0} }}
    first-phase {{ expression: f(attribute(a)) }}
  }}
  rank-profile large {{ first-phase {{ expression: reduce(tensor(x[200000])(x + attribute(a)), sum) }} }}
}}"""
FIRST = "ranking.firstPhase.expression"
DOCUMENTS = 20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("expressions")) as service:
        active(service.deploy(package()))
        for number in range(DOCUMENTS):
            path = f"{service.url}/document/v1/t/t/docid/{number}"
            assert web.post(path, json={"fields": {"a": number}}, timeout=30).status_code == 200
        yield service


def package(factor: int = 1, more: str = "") -> dict[str, str]:
    return {"services.xml": SERVICES.format(more), "schemas/t.sd": SCHEMA.format(factor)}


def asked(service: Deployed, expression: str, **more: Any) -> tuple[int, dict[str, Any]]:
    body = {"yql": "select * from t where true", "ranking": "p", "timeout": "20s", "hits": 1, FIRST: expression, **more}
    answer = web.post(f"{service.url}/search/", json=body, timeout=60)
    root: dict[str, Any] = answer.json()["root"]
    return answer.status_code, root


def best(service: Deployed, expression: str, **more: Any) -> float:
    status, root = asked(service, expression, **more)
    assert status == 200, root
    relevance: float = root["children"][0]["relevance"]
    return relevance


def test_a_deployment_changes_the_functions_and_another_switches_it_off(service: Deployed) -> None:
    for factor in (3, 5, 3):
        active(service.deploy(package(factor)))
        for _ in range(3):
            assert best(service, "f(attribute(a)) + 1") == factor * (DOCUMENTS - 1) + 1
    active(service.deploy(package(3, OFF)))
    status, root = asked(service, "f(attribute(a)) + 1")
    (error,) = root["errors"]
    assert (status, error["code"]) == (400, 3)
    assert "switched off by 'paperwasp.search.ranking-expressions' in services.xml" in error["message"]
    assert best(service, "") == 3 * (DOCUMENTS - 1)
    active(service.deploy(package()))
    assert best(service, "f(attribute(a)) + 1") == DOCUMENTS


@pytest.mark.parametrize("more", ["", OFF.replace("false", "true")])
def test_who_serves_may_switch_it_off_for_all_applications(tmp_path: Path, more: str) -> None:
    """Also for one whose services.xml asks for it, and after a restart."""
    for start in range(2):
        with deployed_service(tmp_path, query_expressions=False) as service:
            if start == 0:
                active(service.deploy(package(more=more)))
            status, root = asked(service, "1")
            (error,) = root["errors"]
            assert (status, error["code"]) == (400, 3)
            assert "or by 'paperwasp serve --no-query-expressions'" in error["message"]
            assert asked(service, "")[0] == 200


def test_the_flags_of_the_command_line(tmp_path: Path) -> None:
    """Also that of the memory of a query: one hit of the profile `large` takes 1.6 MB."""
    with running_service(tmp_path / "data", "--no-query-expressions", "--query-memory", "1MiB") as service:
        answer = web.post(
            f"{service.config_url}/application/v2/tenant/default/prepareandactivate",
            content=zipped(package()),
            headers=ZIP,
            timeout=60,
        )
        assert answer.status_code == 200, answer.text
        body = {"yql": "select * from t where true", FIRST: "1"}
        refused = web.post(f"{service.url}/search/", json=body, timeout=60)
        assert refused.status_code == 400
        assert "--no-query-expressions" in refused.json()["root"]["errors"][0]["message"]
        put = web.post(f"{service.url}/document/v1/t/t/docid/1", json={"fields": {"a": 1}}, timeout=30)
        assert put.status_code == 200
        body = {"yql": "select * from t where true", "ranking": "large", "timeout": "20s"}
        refused = web.post(f"{service.url}/search/", json=body, timeout=60)
        assert refused.status_code == 400
        assert "more than the 1,048,576 bytes of memory" in refused.json()["root"]["errors"][0]["message"]


def test_many_at_once_are_each_ranked_by_their_own(service: Deployed) -> None:
    numbers = [number % 50 for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: best(service, f"attribute(a) * 100 + {number}"), numbers))
    assert found == [(DOCUMENTS - 1) * 100 + number for number in numbers]


HOSTILE = {
    "a function of another's": ('rankingExpression("hidden")', 400, "unknown rank feature or function 'hidden'"),
    "nested functions": ("f(" * 60 + "1" + ")" * 60, 200, ""),
    "deeper ones": ("f(" * 199 + "1" + ")" * 199, 400, "nested too deeply"),
    "thousands of unknown names": (" + ".join(f"n{number}" for number in range(2000)), 400, "'n9'"),
    "a long sum": (" + ".join(["attribute(a)"] * 1000), 200, ""),
    "huge tensors": (" + ".join(f"sum(tensor(x[60000000])(x+{n}*attribute(a)))" for n in range(50)), 400, "too much"),
    "a tensor larger than any": ("sum(tensor(x[900000],y[900000])(x * y))", 400, ""),
    "all at once": ("\x00" * 100, 400, "ranking.firstPhase.expression, line 1, column 1: "),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_expressions(service: Deployed, name: str) -> None:
    expression, expected, told = HOSTILE[name]
    status, root = asked(service, expression)
    assert status == expected, root
    if told:
        assert told in root["errors"][0]["message"]
        assert len(root["errors"][0]["message"]) < 5_000
    assert best(service, "attribute(a)") == DOCUMENTS - 1
