"""What the service answers in the golden scripts is as described."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paperwasp.application.model_evaluation.models import read_models
from paperwasp.configserver import ConfigServerApp
from paperwasp.container.app import ContainerApp
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.model_evaluation import EvaluationHandler
from paperwasp.container.search.handler import SearchHandler
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import settled
from tests import web
from tests.application.model_evaluation.packages import files
from tests.configserver import test_deploy_scripts as deploy_scripts
from tests.container import test_model_evaluation
from tests.container.document import document_scripts, test_document_visits
from tests.container.search import search_scripts
from tests.service import test_grouping_scripts
from tests.service.in_process import deployed_service
from tests.service.query_scripts import deploy_and_feed, run, scripts_in
from tools.openapi.described import described


class Checked:
    """Problems of the answers of handlers, and how many there were of each status."""

    def __init__(self, port: str) -> None:
        self._description = described(port)
        self.problems: list[str] = []
        self.statuses: Counter[int] = Counter()

    def watch(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str = "handle") -> None:
        handle = getattr(owner, name)

        async def watched(handler: Any, request: Request, *more: Any) -> Any:
            answer = await settled(handle(handler, request, *more))
            if isinstance(answer, Response) and self._description.path_of(request.raw_path) is not None:
                self.statuses[answer.status] += 1
                if problem := self._description.problem_of(request, answer):
                    self.problems.append(f"{problem}\n{request.method} {request.raw_path}?{request.query}")
            return answer

        monkeypatch.setattr(owner, name, watched)


def scripts(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    assert found
    return found


@pytest.mark.parametrize("path", scripts(deploy_scripts.SCRIPTS, "*.txt"), ids=lambda path: path.stem)
def test_of_the_config_server(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked("configserver")
    checked.watch(monkeypatch, ConfigServerApp)
    deploy_scripts.test_script(path, tmp_path)
    assert checked.statuses and checked.problems == []


@pytest.mark.parametrize("path", scripts(document_scripts.SCRIPTS, "document_v1_*.txt"), ids=lambda path: path.stem)
def test_of_documents(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked("container")
    checked.watch(monkeypatch, DocumentApi)
    document_scripts.run(path, tmp_path)
    assert checked.statuses and checked.problems == []


@pytest.mark.parametrize("name", ["visit", "bulk"])
def test_of_many_documents(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked("container")
    checked.watch(monkeypatch, DocumentApi)
    test_document_visits.test_the_script(name, tmp_path)
    assert checked.statuses[200] and checked.problems == []


@pytest.mark.parametrize("path", scripts(search_scripts.SCRIPTS, "search_*.txt"), ids=lambda path: path.stem)
def test_of_searches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked("container")
    checked.watch(monkeypatch, SearchHandler)
    search_scripts.run(path)
    assert checked.statuses and checked.problems == []


def test_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked("container")
    checked.watch(monkeypatch, EvaluationHandler)
    test_model_evaluation.test_script(read_models(files(), {}))
    assert checked.statuses[200] and checked.statuses[400] and checked.problems == []


def test_of_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups, hits and errors of an application that is deployed and fed; its files, states and metrics."""
    checked, deploying = Checked("container"), Checked("configserver")
    checked.watch(monkeypatch, ContainerApp, "begin")
    deploying.watch(monkeypatch, ConfigServerApp)
    with deployed_service(tmp_path) as service:
        deploy_and_feed(service, test_grouping_scripts.PURCHASES)
        for script in scripts_in(test_grouping_scripts.PURCHASES):
            run(service, script, test_grouping_scripts.grouped)
        for path in described("container").content["paths"]:
            if "{" not in path:
                web.get(service.url + path)
        for path in described("configserver").content["paths"]:
            url = path.replace("{environment}", "prod").replace("{session}", "2").replace("{path}", "services.xml")
            web.get(service.config_url + re.sub(r"\{\w+\}", "default", url))
    assert checked.statuses[200] > 30 and deploying.statuses[200] > 20
    assert checked.problems + deploying.problems == []
