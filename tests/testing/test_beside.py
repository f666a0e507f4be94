"""`paperwasp run`: a command beside a service, which ends with it, whatever happens to the command."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paperwasp.embedded.packages import archive_of
from tests.children import ROOT
from tests.embedded.music import SCHEMA

ASK = """
import json, os, urllib.request
answer = urllib.request.urlopen(os.environ["PAPERWASP_URL"] + "/search/?yql=select+*+from+music+where+true")
health = urllib.request.urlopen(os.environ["VESPA_CONFIG_URL"] + "/state/v1/health")
assert os.environ["VESPA_PORT"] in os.environ["VESPA_URL"]
print(json.load(answer)["root"]["fields"]["totalCount"], json.load(health)["status"]["code"])
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "app.zip"
    path.write_bytes(archive_of(SCHEMA))
    return path


def _run(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "paperwasp", "run", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, error = child.communicate(timeout=120)
    return child.returncode, out, error


def test_the_command_finds_the_service_and_what_was_fed(package: Path, tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_text('{"put": "id:m:music::1", "fields": {"title": "x"}}\n')
    found = _ended(_run(package, "--feed", tmp_path / "documents.jsonl", "--", sys.executable, "-c", ASK))
    assert found[:2] == (0, "1 up\n"), found


def test_the_status_is_the_commands(package: Path) -> None:
    assert _ended(_run(package, "--", "sh", "-c", "exit 7"))[0] == 7
    assert _ended(_run(package, "--", "sh", "-c", "kill -9 $$"))[0] == 137


def test_a_signal_ends_the_command_and_then_the_service(package: Path) -> None:
    program = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); print('up', flush=True); signal.pause()"
    child = _run(package, "--", sys.executable, "-c", program)
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    child.send_signal(signal.SIGTERM)
    assert _ended(child)[0] == 5


def test_what_is_wrong_is_said(package: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.jsonl").write_text('{"put": "id:m:music::1", "fields": {"absent": "x"}}\n')
    for arguments, message in (
        ((package, "--", "no-such-command"), "no-such-command"),
        ((tmp_path / "absent", "--", "true"), "absent"),
        ((package, "--feed", tmp_path / "wrong.jsonl", "--", "true"), "1 documents are refused.*absent"),
    ):
        status, _, error = _ended(_run(*arguments))
        assert status == 1
        assert re.search(message, error.replace("\n", " ")), error
