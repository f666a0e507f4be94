"""Runs of pytest with the plugin as they come: several processes, any order, tests that fail, runs that are killed."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.chance import SEED
from tests.embedded.music import SCHEMA
from tests.testing.leftovers import is_gone, is_there

pytest_plugins = ["pytester"]
SERVICES = (
    '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
    '<content id="content" version="1.0"><redundancy>1</redundancy><documents><document type="music" mode="index"/>'
    '</documents><nodes><node distribution-key="0" hostalias="h"/></nodes></content></services>'
)
CLEAN = """
import pytest

ROW = {"id": "1", "title": "Kind of Blue", "year": 1959}


@pytest.fixture(autouse=True)
def noted(paperwasp_service, request):
    place = request.config.rootpath / "noted.txt"
    with place.open("a") as file:
        file.write(f"{paperwasp_service.data_dir} {paperwasp_service.port}\\n")


def is_clean(service):
    assert service.query("blue", timeout="60s").total == 0
    assert service.schemas == ("music",)
    service.feed([ROW])
    (hit,) = service.query("blue", ranking="by_year", timeout="60s")
    assert hit["year"] == 1959
"""
SPOILING = {
    "feeds": """
        paperwasp_service.feed([{"id": "2", "title": "blue"}])
        pytest.fail("as it is left")
    """,
    "adds_a_schema": """
        other = schema.replace("music", "books")
        paperwasp_service.deploy({"schemas/music.sd": schema, "schemas/books.sd": other})
        paperwasp_service.feed([{"id": "2", "title": "blue"}], schema="books")
        assert paperwasp_service.query("blue", timeout="60s").total == 1
    """,
    "changes_a_type": """
        paperwasp_service.deploy({
            "schemas/music.sd": schema.replace("year type int", "year type string").replace("+ attribute(year)", ""),
            "validation-overrides.xml": OVERRIDES,
        })
        pytest.fail("as it is left")
    """,
    "removes_the_application": """
        paperwasp_service.undeploy()
        pytest.fail("as it is left")
    """,
    "removes_it_over_http": """
        url = paperwasp_service.config_url + "/application/v2/tenant/default/application/default"
        urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).read()
    """,
    "leaves_a_visit_open": """
        paperwasp_service.feed([{"id": str(number), "title": "blue"} for number in range(100)])
        next(iter(paperwasp_service.visit()))
        pytest.fail("as it is left")
    """,
}
"""How tests leave the application, by name; some of them fail."""
OVERRIDES = """
import datetime, urllib.request
until = datetime.date.today() + datetime.timedelta(days=5)
OVERRIDES = f'''<validation-overrides>
<allow until="{until}">field-type-change</allow><allow until="{until}">indexing-change</allow>
</validation-overrides>'''
"""


def _spoiling_test(name: str) -> str:
    body = textwrap.indent(textwrap.dedent(SPOILING[name]), "    ")
    return f"def test_{name}(paperwasp_service):\n    schema = {SCHEMA!r}\n{body}\n"


def _clean_test(name: str) -> str:
    return f"def test_{name}(paperwasp_service):\n    is_clean(paperwasp_service)\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".ini", pytest="[pytest]\npaperwasp_application = app\n")
    (pytester.path / "app" / "schemas").mkdir(parents=True)
    (pytester.path / "app" / "schemas" / "music.sd").write_text(SCHEMA)
    (pytester.path / "app" / "services.xml").write_text(SERVICES)
    return pytester


def _run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-q", "-p", "no:cacheprovider", *arguments, timeout=180)


def _noted(project: pytest.Pytester) -> set[tuple[str, str]]:
    """Directories and ports of the services of a run."""
    lines = (project.path / "noted.txt").read_text().splitlines()
    return {(directory, port) for directory, port in map(str.split, lines)}


def test_processes_of_xdist_have_services_of_their_own(project: pytest.Pytester) -> None:
    text = '@pytest.mark.parametrize("number", range(12))\ndef test_clean(paperwasp_service, number):\n'
    project.makepyfile(CLEAN + text + "    is_clean(paperwasp_service)\n")
    _run(project, "-n", "2").assert_outcomes(passed=12)
    directories, ports = zip(*_noted(project), strict=True)
    assert len(directories) == len(set(ports)) == 2
    assert all(is_gone(Path(directory)) for directory in directories)


@pytest.mark.parametrize("order", ["alternating", "random"])
def test_what_a_test_leaves_does_not_reach_the_next(project: pytest.Pytester, order: str) -> None:
    tests = [text for name in SPOILING for text in (_clean_test(f"before_{name}"), _spoiling_test(name))]
    tests.append(_clean_test("last"))
    if order == "random":
        random.Random(SEED).shuffle(tests)
    project.makepyfile(CLEAN + OVERRIDES + "\n".join(tests))
    result = _run(project)
    fails = sum("pytest.fail" in body for body in SPOILING.values())
    result.assert_outcomes(passed=len(tests) - fails, failed=fails)
    assert len(re.findall("^E +Failed: as it is left$", result.stdout.str(), re.MULTILINE)) == fails
    assert len(_noted(project)) == 1, "the same service, on the same port"


def test_services_of_ones_own_are_beside_it(project: pytest.Pytester) -> None:
    """A fixture of the session that keeps documents has a service of its own."""
    project.makepyfile(
        CLEAN
        + """
import asyncio
from paperwasp import Service

@pytest.fixture(scope="session")
def library(paperwasp_application):
    with Service(paperwasp_application) as service:
        service.feed([{"id": str(number), "title": "blue"} for number in range(5)])
        yield service

@pytest.mark.parametrize("number", range(2))
def test_both(library, paperwasp_service, number):
    assert library.query("blue", timeout="60s").total == 5
    is_clean(paperwasp_service)

class TestClass:
    @pytest.fixture(autouse=True)
    def fed(self, paperwasp_service):
        paperwasp_service.feed([ROW])

    def test_fed(self, paperwasp_service):
        assert paperwasp_service.query("blue", timeout="60s").total == 1

def test_in_a_coroutine(paperwasp_service):
    async def ask():
        paperwasp_service.feed([ROW])
        return paperwasp_service.query("blue", timeout="60s").total
    assert asyncio.run(ask()) == 1
"""
    )
    _run(project).assert_outcomes(passed=4)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_run_that_is_killed_leaves_nothing(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """Killed in the middle of a test, whose process has a service with documents."""
    project.makepyfile(
        CLEAN
        + """
import os, signal

def test_that_waits(paperwasp_service, request):
    paperwasp_service.feed([ROW])
    place = request.config.rootpath / "waiting.txt"
    place.with_suffix(".new").write_text(f"{os.getpid()} {paperwasp_service.data_dir}")
    place.with_suffix(".new").rename(place)
    signal.pause()
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers]
    with subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        assert is_there(project.path / "waiting.txt", unless=lambda: child.poll() is not None)
        pid, directory = (project.path / "waiting.txt").read_text().split()
        assert Path(directory).is_dir()
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert is_gone(Path(directory))
    assert is_gone(Path("/proc") / pid)


def test_a_run_that_does_not_use_the_plugin_loads_three_small_modules(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test():
            ours = {name for name in sys.modules if name.split(".")[0] == "paperwasp"}
            assert ours == {"paperwasp", "paperwasp.testing", "paperwasp.testing.plugin"}
            assert not {"numpy", "rocksdict", "vespa", "orjson"} & set(sys.modules)
        """
    )
    _run(pytester).assert_outcomes(passed=1)
