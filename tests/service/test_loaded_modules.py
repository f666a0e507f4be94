"""What a process has loaded: little while it has no application, and everything before its first query."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.children import ROOT

PACKAGES = "document indexing query_languages ranking schema search storage text.linguistics"
"""The packages of paperwasp that no process needs before there is an application."""
LIBRARIES = "Stemmer defusedxml icu lz4 numpy onnxruntime pydantic re2 regex rich rocksdict zstandard"
"""The libraries that no process needs before there is an application. (`rich` is for the command line's answers.)"""
STARTED_MODULES = 435
"""The most modules of a process that listens and has no application; each takes about 0.3 ms."""


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "tests.service.loaded_modules", str(tmp_path_factory.mktemp("data"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded: dict[str, list[str]] = json.loads(done.stdout)
    return loaded


def _packages(modules: list[str]) -> set[str]:
    """Those of `PACKAGES` that have a module among these."""
    found = (package for package in PACKAGES.split() for name in modules if _is_in(name, f"paperwasp.{package}"))
    return set(found)


def _is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def test_a_start_without_an_application_loads_nothing_of_applications(stages: dict[str, list[str]]) -> None:
    assert _packages(stages["started"]) == set()
    assert {name.split(".")[0] for name in stages["started"]}.isdisjoint(LIBRARIES.split())


def test_a_start_loads_few_modules(stages: dict[str, list[str]]) -> None:
    assert len(stages["started"]) <= STARTED_MODULES


def test_packages_of_applications_are_loaded_by_a_deployment(stages: dict[str, list[str]]) -> None:
    assert _packages(stages["deployed"]) == set(PACKAGES.split())


def test_the_first_operations_load_no_code(stages: dict[str, list[str]]) -> None:
    """So that the first query after a deployment is as fast as the tenth. (Codecs are the interpreter's own matter.)"""
    late = set(stages["used"]) - set(stages["deployed"])
    assert sorted(name for name in late if not name.startswith("encodings.")) == []
