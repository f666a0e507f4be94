"""A deployment has a time and a memory: where they are over it ends, says where they went, and has changed nothing.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html (`timeout`)
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.build import SchemaCheck, build_model
from paperwasp.application.findings import Findings
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.application.preprocess import with_includes
from paperwasp.application.xml import parse_xml
from paperwasp.configserver import ApplicationId, ConfigServer
from paperwasp.configserver.deadline import Deadline
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.core.steps import bounded_work
from paperwasp.errors import DeployTimeout, Finding, InvalidPackage
from paperwasp.ranking.forest_file import forest_in
from paperwasp.ranking.onnx import probe as onnx_probe
from paperwasp.ranking.xgboost_file import read_ubjson
from paperwasp.schema import parse_schemas
from paperwasp.schema.files import PackageFiles
from paperwasp.schema.model import Schema
from paperwasp.search.features import check_profiles, compile_profiles
from tests.configserver.deploy_fixtures import PACKAGES, Service, follow, package, schema
from tests.ranking.onnx.onnx_models import product
from tests.ranking.ubjson_writer import ubjson

OVER = 1
ROWS = count(1)
"""A network is not tried twice with the same shapes."""
MANY_PROFILES = schema(" } rank-profile a { } rank-profile b { } document-summary s { ")
TREE = b'[{"nodeid":0,"leaf":1.0}]'


@pytest.fixture(autouse=True)
def _own_clock() -> Iterator[None]:
    yield
    end_work_at(0)


def _slow_profiles(now: list[float], schema: Schema, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """As if the rank profiles took 40 seconds, and longer than there is time."""
    yield from check_profiles(schema, files)
    now[0] += 40
    end_work_at(OVER)
    yield from check_profiles(schema, files)


def test_a_deployment_says_where_its_time_went_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    checks: list[SchemaCheck] = [check_profiles]

    def build(package: ApplicationPackage, application: ApplicationId) -> ApplicationModel:
        return build_model(package, checks[-1])

    server = ConfigServer(FileConfigStore(tmp_path), build)
    follow(server, Service())
    server.deployments.prepare_and_activate(PACKAGES["music"])
    active = server.sessions.active(ApplicationId())
    checks.append(partial(_slow_profiles, now))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    changed = package(music=MANY_PROFILES).to_zip()
    with pytest.raises(DeployTimeout) as found:
        server.deployments.prepare_and_activate(changed, deadline=Deadline(90))
    assert found.value.message == (
        "The request was not done within its timeout of 90 seconds: 40.0 seconds of it were for rank-profile b of "
        "schema music"
    )
    assert server.sessions.active(ApplicationId()) == active
    checks.pop()
    prepared, error = server.deployments.prepare_and_activate(changed, deadline=Deadline(90))
    assert error is None
    assert prepared.session.id > 2


MUSIC = parse_schemas({"schemas/music.sd": schema()}).schemas["music"]
PARTS: dict[str, Callable[[], object]] = {
    "a schema": lambda: parse_schemas({"schemas/music.sd": schema()}),
    "rank profiles": lambda: compile_profiles(MUSIC),
    "a forest": lambda: forest_in("xgboost", PackageFiles({"models/m.json": TREE})["models/m.json"]),
    "a saved model": lambda: read_ubjson(ubjson(list(range(2000)))),
    "a network": lambda: onnx_probe.probe("m.onnx", product(), {"x": [next(ROWS), 4]}),
    "inclusions": lambda: with_includes(parse_xml(b"<a><b/></a>", "a.xml"), {}, Findings()),
    "a package": lambda: build_model(package(), check_profiles),
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_looks_at_the_clock(part: str) -> None:
    PARTS[part]()
    end_work_at(OVER)
    with pytest.raises(OutOfTime):
        PARTS[part]()


def test_a_step_has_a_memory() -> None:
    """A constant that needs more is left to queries; the next profile has the whole again."""
    profile = "rank-profile %s { first-phase { expression: sum(tensor(a[600],b[600])(a*b+%d)) } }"
    many = package(music=schema(f" }} {profile % ('a', 1)} {profile % ('b', 2)} document-summary s {{ "))
    cells_bytes, peaks = 600 * 600 * 8, dict[int, int]()
    for most_bytes in (cells_bytes // 4, cells_bytes * 4):
        tracemalloc.start()
        try:
            with bounded_work(0, most_bytes):
                build_model(many, check_profiles)
            _, peaks[most_bytes] = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    little, much = peaks.values()
    assert much - little > cells_bytes // 2, peaks


def test_all_texts_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them may be within its own."""
    assert limits.PACKAGE_TEXT_BYTES > limits.LANGUAGE_TEXT_BYTES
    files = package(readme="x" * 5000).files
    size_bytes = len(files["services.xml"]) + len(files["schemas/music.sd"])
    monkeypatch.setattr(limits, "PACKAGE_TEXT_BYTES", size_bytes)
    build_model(ApplicationPackage(files), check_profiles)
    more = {**files, "search/query-profiles/default.xml": b'<query-profile id="default"/>'}
    with pytest.raises(InvalidPackage, match=r"have \d+ bytes together; at most \d+ are read \(PACKAGE_TEXT_BYTES\)"):
        build_model(ApplicationPackage(more), check_profiles)
