"""`paperwasp run`: a command beside a service, which ends with it, whatever happens to the command."""

from __future__ import annotations

import os
import re
import signal
import socket
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


HEEDING = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", "paperwasp", *sys.argv[1:]])
"""
"""Runs it with none of the signals ignored: what runs the tests may ignore some, as `nohup` and CI runners do."""


def _run(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HEEDING, "run", *map(str, arguments)]
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


# Blocked, since a signal that comes between a print and a pause would be lost to the pause.
AWAITS = "import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [{0}]); print('up', flush=True); "
AWAITS += "signal.sigwait([{0}]); {1}"


def test_a_signal_ends_the_command_and_then_the_service(package: Path) -> None:
    program = AWAITS.format(15, "sys.exit(5)")
    child = _run(package, "--", sys.executable, "-c", program)
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    child.send_signal(signal.SIGTERM)
    assert _ended(child)[0] == 5


EARLY = """
import os, signal, subprocess, sys
from paperwasp import cli

class Signalled(subprocess.Popen):
    def __init__(self, command, *arguments, **named):
        if command[0] == "sleep":
            os.kill(os.getpid(), signal.SIGTERM)
        super().__init__(command, *arguments, **named)

subprocess.Popen = Signalled
sys.argv[1:] = ["run", sys.argv[1], "--", "sleep", "100"]
cli.main()
"""


def test_a_signal_that_comes_before_the_command_runs_ends_it(package: Path) -> None:
    command = [sys.executable, "-c", EARLY, str(package)]
    child = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert _ended(child) == (128 + signal.SIGTERM, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_children_of_the_command(package: Path, number: signal.Signals) -> None:
    """A shell that ends by the signal leaves its own child to it."""
    program = AWAITS.format(int(number), "print('child ended')")
    child = _run(package, "--", "sh", "-c", f'"{sys.executable}" -c "{program}"; true')
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    child.send_signal(number)
    status, out, _ = _ended(child)  # when no process has the pipe any more
    assert (status, out) == (128 + number, "child ended\n")


def test_the_command_ends_when_the_service_is_killed(package: Path) -> None:
    program = AWAITS.format(15, "print('child ended')")
    child = _run(package, "--", "sh", "-c", f'"{sys.executable}" -c "{program}"; true')
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    child.kill()
    assert _ended(child)[:2] == (-signal.SIGKILL, "child ended\n")


TERMINAL = """
import os, sys
os.login_tty(0)
os.execv(sys.executable, [sys.executable, "-m", "paperwasp", *sys.argv[1:]])
"""


def test_ctrl_c_in_a_terminal_is_for_the_command(package: Path) -> None:
    """It reads what is typed, and decides what comes of the signal."""
    program = AWAITS.format(2, "sys.exit(6)").replace("'up'", "'read', input()")
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", TERMINAL, "run", str(package), "--", sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        os.write(ours, b"hello\n")
        shown = b""
        while b"read hello" not in shown:
            shown += os.read(ours, 4096)  # an OSError where the command has ended
        os.write(ours, b"\x03")
        assert child.wait(timeout=60) == 6
    os.close(ours)


def test_signals_that_are_ignored_stay_so(package: Path) -> None:
    program = "import signal; print(signal.getsignal(1) is signal.SIG_IGN, signal.getsignal(15) is signal.SIG_IGN)"
    command = [sys.executable, "-m", "paperwasp", "run", str(package), "--", sys.executable, "-c", program]
    done = subprocess.run(["nohup", *command], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "True False\n"), done.stderr


def test_a_port_that_is_in_use_is_named(package: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, error = _ended(_run(package, "--port", port, "--", "true"))
    assert status == 1
    assert f"Port {port} on 127.0.0.1 is taken" in " ".join(error.split())


def test_what_is_wrong_is_said(package: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.jsonl").write_text('{"put": "id:m:music::1", "fields": {"absent": "x"}}\n')
    wrong = tmp_path / "wrong.zip"
    wrong.write_bytes(archive_of("schema music { document music { field x type strng {} } }"))
    for arguments, message in (
        ((package, "--", "no-such-command"), "no-such-command"),
        ((tmp_path / "absent", "--", "true"), "absent"),
        ((wrong, "--", "true"), "schemas/music.sd:1:46: error: unknown type 'strng'"),
        ((package, "--feed", tmp_path / "wrong.jsonl", "--", "true"), "1 documents are refused.*absent"),
    ):
        status, _, error = _ended(_run(*arguments))
        assert status == 1
        assert re.search(message, error.replace("\n", " ")), error
