"""The threads of a content cluster's queries: by the cores of the process, or as services.xml says.

Vespa: https://docs.vespa.ai/en/reference/applications/services/content.html#requestthreads
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.build import build_model
from paperwasp.application.model import ContentCluster
from paperwasp.application.package import ApplicationPackage
from paperwasp.base import env
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.server.process import open_file_log
from paperwasp.server.roles.content_cluster import RunningCluster
from paperwasp.server.roles.query_threads import query_threads

SERVICES = """<services version="1.0">
  <content id="things" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="thing" mode="index"/></documents>
    <nodes><node distribution-key="0" hostalias="node"/></nodes>
    <engine><proton><tuning><searchnode>{}</searchnode></tuning></proton></engine>
  </content>
</services>"""
SCHEMA = "schema thing { document thing { field size type int { indexing: attribute } } }"
PATH = "engine/proton/tuning/searchnode/requestthreads/"


@pytest.mark.parametrize(
    ("cores", "said", "threads"),
    [
        (1, {}, (2, 0)),
        (6, {}, (6, 0)),
        (6, {"search": "3"}, (3, 0)),
        (6, {"search": "64", "persearch": "4"}, (64, 4)),
        (6, {"persearch": "1"}, (6, 1)),
        (6, {"search": "0", "persearch": "0"}, (1, 1)),
        (6, {"search": "100000"}, (limits.MOST_QUERY_THREADS, 0)),
    ],
)
def test_threads_are_those_of_the_cores_or_of_services(
    cores: int, said: dict[str, str], threads: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paperwasp.server.roles.query_threads.threads_for_cores", lambda: cores)
    assert query_threads({PATH + name: value for name, value in said.items()}) == threads


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "9900000 100000"}, 8),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_cores_are_those_of_the_process_and_its_control_group(
    files: dict[str, str], cores: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env, "processors", lambda: 8)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert env.cores(tmp_path) == cores


def test_threads_use_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= env.threads_for_cores() <= (os.cpu_count() or 1)
    for cores, threads in ((0.3, 1), (1.5, 2), (4.0, 4)):
        monkeypatch.setattr(env, "cores", lambda cores=cores: cores)
        assert env.threads_for_cores() == threads


def cluster(inside: str) -> ContentCluster:
    files = {"services.xml": SERVICES.format(inside), "schemas/thing.sd": SCHEMA}
    model = build_model(ApplicationPackage({name: text.encode() for name, text in files.items()}), lambda *_: ())
    (found,) = model.content_clusters
    return found


def test_a_deployment_changes_the_threads_at_once(tmp_path: Path) -> None:
    running = RunningCluster(tmp_path / "things", "app", "things", EmbeddedMessenger(), open_file_log)
    try:
        found = []
        for inside in ("<search>5</search><persearch>3</persearch>", "<search>2</search>", ""):
            running.configure(1, cluster(f"<requestthreads>{inside}</requestthreads>"))
            found.append((running._pool.size, running._helpers.most))
        assert found[:2] == [(5, 3), (2, 2)]
        assert found[2] == (max(2, env.threads_for_cores()),) * 2
        assert running._served.helpers is running._helpers
    finally:
        running.stop()
