"""`VespaLocal` in the place of pyvespa's VespaDocker: the same calls, the same connection, the same errors."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vespa.application import Vespa
from vespa.deployment import VespaDocker
from vespa.io import VespaQueryResponse
from vespa.package import ApplicationPackage, Document, Field, FieldSet, RankProfile, Schema

from paperwasp.errors import PaperwaspError
from paperwasp.testing import DeploymentFailed, VespaLocal
from tests.testing.leftovers import is_gone


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
    answer = app.query(body={"timeout": "60s", **asked})
    assert isinstance(answer, VespaQueryResponse)
    return list(answer.hits)


def _public(described: type) -> dict[str, Any]:
    """The public methods, those of its bases too, without an underscore before."""
    names = [name for name in dir(described) if not name.startswith("_")]
    return {name: inspect.getattr_static(described, name) for name in ["__init__", *names]}


@pytest.mark.parametrize("name", _public(VespaDocker))
def test_a_method_takes_what_vespadockers_takes(name: str) -> None:
    """By name, order, kind and default. What this one takes besides is by name only, and may be left out."""
    there, here = _public(VespaDocker)[name], _public(VespaLocal).get(name)
    assert here is not None, f"VespaDocker has a method that VespaLocal does not have: {name}"
    assert type(here) is type(there), name
    asked, given = (
        list(inspect.signature(getattr(described, name)).parameters.values()) for described in (VespaDocker, VespaLocal)
    )
    taken, others = given[: len(asked)], given[len(asked) :]
    assert [(each.name, each.kind) for each in taken] == [(each.name, each.kind) for each in asked]
    for there_parameter, here_parameter in zip(asked, taken, strict=True):
        if there_parameter.name != "output_file":  # that of the time of the call, which pytest captures
            assert here_parameter.default == there_parameter.default, there_parameter.name
    assert all(each.kind is each.KEYWORD_ONLY and each.default is not each.empty for each in others)


def test_it_has_vespadockers_attributes() -> None:
    there, here = VespaDocker(), VespaLocal()
    assert vars(there).keys() <= vars(here).keys()
    for name, value in vars(there).items():
        assert getattr(here, name) == value, name


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


def test_a_first_package_that_is_refused_keeps_no_ports() -> None:
    """One test that fails must not make errors of all that come later."""
    first = VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO())
    with pytest.raises(DeploymentFailed, match="titel"):
        first.deploy(_package("bm25(titel)"))
    assert (first.service, first.local_port, first.cfgsrv_port) == (None, 0, 0)
    with VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO()) as local:
        local.deploy(_package("bm25(title)"))
        ports = local.local_port, local.cfgsrv_port
        # One that served before goes on to.
        with pytest.raises(DeploymentFailed, match="titel"):
            local.deploy(_package("bm25(titel)"))
        assert local.service is not None and (local.local_port, local.cfgsrv_port) == ports
    again = VespaLocal(port=ports[0], cfgsrv_port=ports[1], output_file=io.StringIO())
    for _ in range(2):
        with pytest.raises(DeploymentFailed, match="titel"):
            again.deploy(_package("bm25(titel)"))


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


def test_a_container_is_found_by_its_name_with_its_documents() -> None:
    """As Docker's, which outlive the object that started them."""
    output = io.StringIO()
    with pytest.raises(ValueError, match="does not exist"):
        VespaLocal.from_container_name_or_id("music")
    first = VespaLocal(port=0, cfgsrv_port=0, output_file=output)
    app = first.deploy(_package())
    app.feed_data_point(schema="music", data_id="1", fields={"title": "Kind of Blue"})

    found = VespaLocal.from_container_name_or_id("music", output)
    assert found == first and repr(found) == repr(first)
    assert (found.local_port, found.cfgsrv_port) == (first.local_port, first.cfgsrv_port)
    second = VespaLocal(port=first.local_port, cfgsrv_port=0, output_file=output)
    assert second != first
    again = second.deploy(_package("bm25(title) + 1"))
    assert second == first and second.container is first.container
    asked = {"yql": "select * from music where true"}
    assert [hit["id"] for hit in _hits(again, asked)] == ["id:music:music::1"]

    with pytest.raises(RuntimeError, match="deployed in this process already, on the ports"):
        VespaLocal(port=first.local_port + 1, output_file=output).deploy(_package())

    assert second.container is not None
    second.container.remove(force=True)
    for removed in (first, second):
        assert removed.service is None
        with pytest.raises(RuntimeError, match="No such container"):
            removed.start_services()
    with pytest.raises(ValueError, match="does not exist"):
        VespaLocal.from_container_name_or_id("music")
    empty = first.deploy(_package())
    assert _hits(empty, asked) == [], "another one, on the same ports"
    first.close()


def test_a_container_that_cannot_start_is_not_there() -> None:
    with VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO()) as local:
        local.deploy(_package())
        other = VespaLocal(port=local.local_port, cfgsrv_port=0, output_file=io.StringIO())
        with pytest.raises(PaperwaspError, match=str(local.local_port)):
            other.deploy(ApplicationPackage("other", _package().schemas))
        assert other.container is None
        with pytest.raises(ValueError, match="does not exist"):
            VespaLocal.from_container_name_or_id("other")


def test_a_process_that_removes_nothing_leaves_nothing(tmp_path: Path) -> None:
    """A suite whose teardown does not run: the service ends with the process, and its directory goes."""
    program = """
import sys
from vespa.package import ApplicationPackage
from paperwasp.testing import VespaLocal
local = VespaLocal(port=0, cfgsrv_port=0)
local.deploy(ApplicationPackage("x"))
print(local.container.data_dir)
sys.exit(3)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    said, directory = done.stdout.splitlines()
    assert said == "Finished deployment."
    assert is_gone(Path(directory))
