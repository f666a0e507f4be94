"""The unit of systemd, and the protocol by which the service says that it is ready."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.base.service_manager import READY, notify
from tests.service.running import command

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "packaging" / "paperwasp.service"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT.read_text())
    return parser


def test_the_unit_says_what_the_service_needs() -> None:
    service = unit()["Service"]
    assert service["Type"] == "notify"
    assert int(service["LimitNOFILE"]) == limits.OPEN_FILES
    assert float(service["TimeoutStopSec"]) > limits.STOP_SECONDS * 2
    assert service["ExecStart"].split()[1:] == [
        "serve",
        "--data-dir",
        f"/var/lib/{service['StateDirectory']}",
        "$PAPERWASP_OPTIONS",
    ]
    assert service["Restart"] == "on-failure"
    assert service["KillSignal"] == "SIGTERM"


def with_a_command_that_is_there(folder: Path) -> Path:
    """The unit, whose command systemd would look for."""
    copy = folder / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/paperwasp/bin/paperwasp", sys.executable))
    return copy


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(with_a_command_that_is_there(tmp_path))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_the_unit_exposes_little(tmp_path: Path) -> None:
    """By systemd's own measure, from 0 to 10; 9.6 is that of a unit that says nothing."""
    shown = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(with_a_command_that_is_there(tmp_path))],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    level = re.search(r"exposure level for \S+: ([\d.]+)", shown)
    if level is None:
        pytest.skip("this systemd does not judge units that are not loaded")
    assert float(level[1]) < 3


def test_nobody_is_told_where_nobody_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify(READY)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "none"))
    assert not notify(READY)


def test_a_name_that_is_not_of_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"@paperwasp-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:])
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        assert notify(READY)
        assert manager.recv(100) == b"READY=1"


def test_the_service_says_that_it_is_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        with subprocess.Popen(command(tmp_path / "data"), env=environment, stdout=subprocess.PIPE, text=True) as child:
            try:
                assert manager.recv(100) == b"READY=1"
                assert child.stdout is not None
                assert child.stdout.readline().startswith("Ready in ")
            finally:
                child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 0
