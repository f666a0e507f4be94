"""The action, the template and the page's examples of their use are what GitHub and GitLab take, by their schemas."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import ROOT

TEMPLATES = ROOT / "packaging" / "ci"
ACTION, WORKFLOW, GITLAB = "vendor.github-actions", "vendor.github-workflows", "vendor.gitlab-ci"


def _problem(schema: str, file: Path) -> str:
    """What is wrong with a file; empty: nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _examples() -> list[str]:
    page = (ROOT / "docs" / "guides" / "testing.md").read_text()
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


ACTION_TEXT = (TEMPLATES / "action.yml").read_text()
JOB_TEXT = (TEMPLATES / "paperwasp.gitlab-ci.yml").read_text().replace("\n.paperwasp-test:", "\npaperwasp-test:")
"""The template as a job: GitLab's schema says nothing of those that a dot hides."""


@pytest.mark.parametrize(("schema", "text"), [(ACTION, ACTION_TEXT), (GITLAB, JOB_TEXT)], ids=["action", "template"])
def test_a_template_is_valid(schema: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "ci.yml").write_text(text)
    assert _problem(schema, tmp_path / "ci.yml") == ""


@pytest.mark.parametrize(("schema", "number"), [(WORKFLOW, 0), (GITLAB, 1)], ids=["workflow", "gitlab"])
def test_an_example_of_the_page_is_valid(schema: str, number: int, tmp_path: Path) -> None:
    assert len(_examples()) == 2
    (tmp_path / "ci.yml").write_text(_examples()[number])
    assert _problem(schema, tmp_path / "ci.yml") == ""


@pytest.mark.parametrize(
    ("schema", "text", "old", "new", "place"),
    [
        (ACTION, ACTION_TEXT, "shell: sh", "shel: sh", "runs.steps"),
        (GITLAB, JOB_TEXT, "image: python:3.12", "image: 3", "image"),
        (WORKFLOW, _examples()[0], "runs-on: ubuntu-latest", "run-on: x", "jobs.application"),
    ],
    ids=["action", "template", "workflow"],
)
def test_the_schemas_refuse_what_is_wrong(
    tmp_path: Path, schema: str, text: str, old: str, new: str, place: str
) -> None:
    assert old in text
    (tmp_path / "ci.yml").write_text(text.replace(old, new))
    assert place in _problem(schema, tmp_path / "ci.yml")
