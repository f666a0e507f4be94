"""The example application's tests, the examples of docs/guides/testing.md, and what the CI templates run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.children import ROOT

EXAMPLE = ROOT / "examples" / "music-tests"
FOR_DOCKER = ROOT / "examples" / "music-docker"
TEMPLATES = ROOT / "packaging" / "ci"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example, as somebody has cloned it."""
    shutil.copytree(EXAMPLE, tmp_path / "music", ignore=shutil.ignore_patterns("__pycache__"))
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


def _pytest(project: Path, *arguments: str, **environment: str) -> str:
    return _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], project, **environment)


def test_the_tests_of_the_example_pass(project: Path) -> None:
    assert "3 passed" in _pytest(project)


@pytest.fixture
def for_docker(tmp_path: Path) -> Path:
    """A copy of the example that was written for Docker."""
    shutil.copytree(FOR_DOCKER, tmp_path / "music", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "music"


def test_a_suite_for_docker_runs_without_it_when_one_line_changes(for_docker: Path) -> None:
    """The line is the one that the page and the example's own description change."""
    readme = (for_docker / "README.md").read_text()
    ((old, new),) = re.findall(r"^-(from .*)\n\+(from .*)$", readme, re.MULTILINE)
    assert f"-{old}\n+{new}\n" in (ROOT / "docs" / "guides" / "testing.md").read_text()
    before = (for_docker / "test_music.py").read_text().splitlines()
    (change,) = re.findall(r"^sed .*$", readme, re.MULTILINE)
    _run(["sh", "-eu", "-c", change], for_docker)
    after = (for_docker / "test_music.py").read_text().splitlines()
    assert [pair for pair in zip(before, after, strict=True) if len(set(pair)) > 1] == [(old, new)]
    started = time.monotonic()
    assert "4 passed" in _pytest(for_docker, MUSIC_PORT="0", MUSIC_CONFIG_PORT="0")
    sys.stdout.write(f"examples/music-docker: {time.monotonic() - started:.2f} s\n")


def test_a_suite_for_docker_runs_without_it_when_no_line_changes(for_docker: Path) -> None:
    (option,) = re.findall(r"^pytest (-p .*)$", (ROOT / "docs" / "guides" / "testing.md").read_text(), re.MULTILINE)
    assert "4 passed" in _pytest(for_docker, *option.split()[:2], MUSIC_PORT="0", MUSIC_CONFIG_PORT="0")


CLIENTS = {
    "javascript": ("npm", ["npm", "test"], "pass 1"),
    "java": ("mvn", ["mvn", "-B", "verify"], "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0"),
}


@pytest.mark.parametrize("language", CLIENTS)
def test_clients_in_other_languages(language: str, tmp_path: Path) -> None:
    """Maven fetches what it needs: the variable PAPERWASP_MAVEN says that it may."""
    tool, command, passed = CLIENTS[language]
    if shutil.which(tool) is None or (tool == "mvn" and not os.environ.get("PAPERWASP_MAVEN")):
        pytest.skip(f"needs {tool}")
    project = shutil.copytree(EXAMPLE.with_name("music-clients") / language, tmp_path / language)
    application = shutil.copytree(EXAMPLE / "app", tmp_path / "app")
    shown = _run([sys.executable, "-m", "paperwasp", "run", str(application), "--", *command], project)
    assert passed in shown


def test_the_examples_of_the_page_pass(project: Path) -> None:
    page = (ROOT / "docs" / "guides" / "testing.md").read_text()
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
