"""`VespaLocal` in the place of pyvespa's VespaDocker: the same calls, the same connection, the same errors."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import Any

import pytest
from vespa.application import Vespa
from vespa.deployment import VespaDocker
from vespa.io import VespaQueryResponse
from vespa.package import ApplicationPackage, Document, Field, FieldSet, RankProfile, Schema

from paperwasp.errors import PaperwaspError
from paperwasp.testing import DeploymentFailed, VespaLocal


def _package(expression: str = "bm25(title)") -> ApplicationPackage:
    title = Field("title", "string", indexing=["index", "summary"], index="enable-bm25")
    schema = Schema(
        "music",
        Document([title]),
        fieldsets=[FieldSet("default", ["title"])],
        rank_profiles=[RankProfile("bm25", first_phase=expression)],
    )
    return ApplicationPackage("music", [schema])


def _hits(app: Vespa, asked: dict[str, str]) -> list[dict[str, Any]]:
    answer = app.query(body=asked)
    assert isinstance(answer, VespaQueryResponse)
    return list(answer.hits)


def test_it_takes_what_a_vespadocker_takes() -> None:
    for name in ("__init__", "deploy", "deploy_from_disk", "wait_for_config_server_start", "start_services"):
        there = list(inspect.signature(getattr(VespaDocker, name)).parameters)
        here = list(inspect.signature(getattr(VespaLocal, name)).parameters)
        assert here[: len(there)] == there, name
    public = {name for name, value in vars(VespaDocker).items() if callable(value) and not name.startswith("_")}
    assert public - {"from_container_name_or_id"} <= set(dir(VespaLocal))


def test_a_suite_written_for_docker_runs(tmp_path: Path) -> None:
    output = io.StringIO()
    local = VespaLocal(port=0, cfgsrv_port=0, output_file=output)
    app = local.deploy(application_package=_package())
    assert output.getvalue() == "Finished deployment.\n"
    assert local.container is not None and local.container.status == "running"
    app.feed_data_point(schema="music", data_id="1", fields={"title": "Kind of Blue"})
    asked = {"yql": "select * from music where userQuery()", "query": "blue", "ranking": "bm25"}
    assert [hit["id"] for hit in _hits(app, asked)] == ["id:music:music::1"]

    local.restart_services()
    assert len(_hits(app, asked)) == 1, "documents and application are still there"
    app = local.deploy(_package("bm25(title) + 1"))
    assert _hits(app, asked)[0]["relevance"] > 1

    _package().to_files(tmp_path)
    app = local.deploy_from_disk("music", tmp_path)
    assert _hits(app, asked)[0]["relevance"] < 1

    local.container.stop(timeout=600)
    assert local.container.status == "exited"
    local.container.remove()
    assert local.service is None


def test_a_package_that_is_refused_is_a_runtime_error() -> None:
    with VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO()) as local:
        with pytest.raises(RuntimeError, match=r"Deployment failed, code: 4\d\d, message: .*titel") as failed:
            local.deploy(_package("bm25(titel)"))
        assert isinstance(failed.value, DeploymentFailed) and isinstance(failed.value, PaperwaspError)
        with pytest.raises(RuntimeError, match="no such file"):
            local.deploy_from_disk("x", "no/such/folder")
        assert local.deploy(_package()) is not None


def test_without_a_service_there_is_nothing_to_stop() -> None:
    local = VespaLocal()
    for method in (local.start_services, local.stop_services, local.restart_services):
        with pytest.raises(RuntimeError, match="No container found"):
            method()
    local.close()
