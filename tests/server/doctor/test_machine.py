"""What is judged of a machine, by values that are given: each level, and its remedy."""

from __future__ import annotations

import os
import resource
import socket
from importlib import metadata
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.server.doctor import machine
from paperwasp.server.doctor.findings import Finding, worst
from paperwasp.server.doctor.machine import (
    check_clock,
    check_cores,
    check_disk,
    check_file_system,
    check_machine,
    check_memory,
    check_open_files,
    check_port,
    check_room,
    check_settings,
    judge_syncs,
    measure_syncs,
    owner_of,
)

GIB = 1 << 30


def levels(findings: list[Finding]) -> list[str]:
    assert all(bool(finding.remedy) == (finding.level != "ok") for finding in findings)
    return [finding.level for finding in findings]


@pytest.mark.parametrize(
    ("total", "available", "level"),
    [
        (8 * GIB, 6 * GIB, "ok"),
        (4 * GIB, 2 * GIB, "ok"),
        (int(3.8 * GIB), 2 * GIB, "ok"),
        (3 * GIB, 2 * GIB, "warning"),
        (8 * GIB, GIB // 2, "warning"),
        (GIB // 2, GIB // 2, "error"),
    ],
)
def test_memory(total: int, available: int, level: str) -> None:
    assert levels(list(check_memory(total, available))) == [level]
    assert list(check_memory(None, None)) == []


def test_cores_and_open_files() -> None:
    assert levels([check_cores(2.0), check_cores(1.5), check_cores(64.0)]) == ["ok", "warning", "ok"]
    few = check_open_files(1024)
    assert levels([few, check_open_files(limits.OPEN_FILES)]) == ["warning", "ok"]
    assert check_open_files(resource.RLIM_INFINITY).level == "ok"
    assert str(limits.OPEN_FILES) in few.remedy


def write(system: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text + "\n")
    return system


def test_settings_of_the_kernel(tmp_path: Path) -> None:
    huge = "sys/kernel/mm/transparent_hugepage"
    good = {
        f"{huge}/enabled": "always [madvise] never",
        f"{huge}/defrag": "always defer [madvise] never",
        "proc/sys/vm/overcommit_memory": "0",
        "proc/sys/vm/max_map_count": "262144",
    }
    bad = {
        f"{huge}/enabled": "[always] madvise never",
        f"{huge}/defrag": "[always] defer madvise never",
        "proc/sys/vm/overcommit_memory": "2",
        "proc/sys/vm/max_map_count": "1000",
    }
    assert levels(list(check_settings(write(tmp_path / "good", good)))) == ["ok"] * 3
    assert levels(list(check_settings(write(tmp_path / "bad", bad)))) == ["warning"] * 3
    assert list(check_settings(tmp_path)) == []


def test_a_control_group_is_the_machine(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": f"MemTotal: {8 << 20} kB\nMemAvailable: {6 << 20} kB",
        "sys/fs/cgroup/memory.max": str(2 * GIB),
        "sys/fs/cgroup/memory.current": str(GIB),
        "sys/fs/cgroup/cpu.max": "50000 100000",
    }
    found = {finding.subject: finding for finding in check_machine(write(tmp_path, files))}
    assert found["memory"].level == "warning"
    assert found["memory"].message.startswith("2.0 GiB, 1.0 GiB of it")
    assert found["cores"].message.startswith("0.5 ")
    unlimited = check_machine(write(tmp_path, {"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/cpu.max": "max 1"}))
    assert "8.0 GiB, 6.0 GiB" in next(finding.message for finding in unlimited if finding.subject == "memory")


def test_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["numpy>=1.26", "orjson>=99.0", "no-such-thing>=1", "uvloop ; extra == 'fast'", "regex"]
    monkeypatch.setattr(metadata, "requires", lambda name: required)
    (found,) = machine._libraries()
    assert found.level == "error"
    assert "is older than 99.0" in found.message
    assert "no-such-thing is missing" in found.message
    assert "numpy" not in found.message and "uvloop" not in found.message


def test_this_machine_can_run_the_service() -> None:
    found = list(check_machine())
    assert {finding.subject for finding in found} >= {"Python", "libraries", "kernels", "memory", "cores", "clock"}
    assert worst(finding for finding in found if finding.subject in ("Python", "libraries", "kernels", "clock")) == 0


def test_clock() -> None:
    assert [check_clock(second).level for second in (0.0, 1.8e9)] == ["error", "ok"]


def test_room() -> None:
    many = 1_000_000
    found = [check_room(10**8, 10**12, many), check_room(10**9, 10**12, many), check_room(10**11, 10**12, 5)]
    assert levels([*found, check_room(10**11, 10**12, many), check_room(10**11, 10**12, 0)]) == [
        "error",
        "warning",
        "warning",
        "ok",
        "ok",
    ]


def test_file_systems() -> None:
    kinds = ("ext4", "xfs", "nfs4", "fuse.sshfs", "tmpfs", "overlay")
    found = [finding.level for kind in kinds for finding in check_file_system(kind)]
    assert found == ["ok", "ok", "warning", "warning", "warning", "warning"]
    assert list(check_file_system("")) == []


def test_syncs() -> None:
    found = [judge_syncs(seconds) for seconds in ([1e-6], [1e-3], [0.001, 0.001, 0.9], [0.01], [0.1])]
    assert levels(found) == ["warning", "ok", "ok", "warning", "error"]
    assert "1.00 ms (longest 900.0), 1000 a second" in found[2].message


def test_syncs_are_measured_and_leave_nothing(tmp_path: Path) -> None:
    done: list[int] = []
    seconds = measure_syncs(tmp_path, done.append)
    assert len(seconds) == sum(done) > 0
    assert all(second > 0 for second in seconds)
    assert list(tmp_path.iterdir()) == []


def test_the_disk_of_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    found = list(check_disk(tmp_path / "a" / "b"))
    assert {finding.subject for finding in found} >= {"room", "sync"}
    assert list(tmp_path.iterdir()) == []


def test_ports() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = check_port("127.0.0.1", port, "documents", is_served=False)
        assert levels([found]) == ["error"]
        assert f"(process {os.getpid()})" in found.message
        assert owner_of(port).endswith(f"(process {os.getpid()})")
        assert check_port("127.0.0.1", port, "documents", is_served=True).level == "ok"
    assert check_port("127.0.0.1", port, "documents", is_served=False).level == "ok"
    assert owner_of(port) == ""
