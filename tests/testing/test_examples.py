"""The example application's tests, the examples of docs/testing.md, and what the CI templates run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import ROOT

EXAMPLE = ROOT / "examples" / "music-tests"
TEMPLATES = ROOT / "packaging" / "ci"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example, as somebody has cloned it, whose ports are free ones."""
    shutil.copytree(EXAMPLE, tmp_path / "music", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "music" / "test_with_docker.py"
    text = file.read_text()
    assert "port=8089, cfgsrv_port=19089" in text
    file.write_text(text.replace("port=8089, cfgsrv_port=19089", "port=0, cfgsrv_port=0"))
    return tmp_path / "music"


def _run(command: list[str], project: Path, **environment: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=project,
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "PATH": path, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _pytest(project: Path, *arguments: str) -> str:
    return _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], project)


def test_the_tests_of_the_example_pass(project: Path) -> None:
    assert "5 passed" in _pytest(project)


def test_the_examples_of_the_page_pass(project: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    (settings,) = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    (tests,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (project / "pytest.ini").write_text(settings)
    (project / "test_page.py").write_text(tests)
    assert "3 passed" in _pytest(project, "test_page.py")


@pytest.mark.parametrize("template", ["action.yml", "paperwasp.gitlab-ci.yml"])
def test_what_the_templates_run_works(template: str, project: Path) -> None:
    commands = re.findall(r"^\s*(?:run:|-) (paperwasp .*)$", (TEMPLATES / template).read_text(), re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["check", "test"]
    for old in ("", "app"):
        shown = "".join(
            _run(["sh", "-eu", "-c", command], project, PAPERWASP_APPLICATION="app", PAPERWASP_FROM=old)
            for command in commands
        )
        assert "Success: 1 test OK" in shown
