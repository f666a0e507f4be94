"""Data directories that are whole, damaged, in use, and what the command says of each."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.content.checkpoints.node_files import index_files
from paperwasp.errors import Corruption
from paperwasp.server.doctor.data import check_data, data_bytes
from paperwasp.server.doctor.findings import Finding, worst
from paperwasp.server.doctor.report import check_service
from paperwasp.server.process import ServerProcess, Settings
from tests.service.music import write_package
from tests.service.running import RunningService, running_service
from tests.service.warm import run_warm

FREQUENT_CHECKPOINTS = "from paperwasp import limits; limits.CHECKPOINT_OPERATIONS = 60; limits.LOG_FILE_BYTES = 8000"
DOCUMENTS = 80
CHECKSUMMED = ("*.log", "END", "node/checkpoints/CURRENT", "manifest.json", "*.bin", "config/keys/*", "config/blobs/*")
"""Files of which each byte counts."""
ANY = st.integers(0, 1 << 40)


def put(service: RunningService, numbers: range) -> None:
    with closing(http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)) as connection:
        for number in numbers:
            fields = {"title": f"number {number}", "year": number}
            connection.request("POST", f"/document/v1/n/music/docid/{number}", orjson.dumps({"fields": fields}))
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data with a checkpoint, and with operations in the log after it."""
    folder = tmp_path_factory.mktemp("killed")
    package = str(write_package(folder / "music"))
    with running_service(folder / "data", package, first=FREQUENT_CHECKPOINTS) as service:
        put(service, range(DOCUMENTS))
    with running_service(folder / "data") as service:
        put(service, range(5))
        service.stop(signal.SIGKILL)
    return folder / "data"


def problems(data: Path) -> list[Finding]:
    return [finding for finding in check_data(data) if finding.level != "ok"]


def state_of(data: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in data.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_whole_data_is_read_and_left_as_it_is(killed: Path) -> None:
    before = state_of(killed)
    read: list[int] = []
    found = {finding.subject: finding for finding in check_data(killed, read.append)}
    assert worst(found.values()) == 0, found
    assert state_of(killed) == before
    assert f"{DOCUMENTS} documents" in found["default.default.default/records checkpoint"].message
    assert "5 after the checkpoint" in found["default.default.default/records log"].message
    assert 0 < sum(read) <= data_bytes(killed)


@given(ANY, ANY, st.sampled_from(CHECKSUMMED))
def test_each_bit_of_what_is_checked_counts(killed: Path, which: int, place: int, pattern: str) -> None:
    with TemporaryDirectory() as folder:
        data = Path(shutil.copytree(killed, Path(folder, "data"), copy_function=os.link))
        files = sorted(path for path in data.rglob(pattern) if path.is_file() and counts(path))
        damaged = files[which % len(files)]
        content = bytearray(damaged.read_bytes())
        content[place // 8 % len(content)] ^= 1 << place % 8
        damaged.unlink()
        damaged.write_bytes(content)
        found = problems(data)
        assert worst(found) == 2, damaged
        assert all(finding.remedy for finding in found)


def counts(path: Path) -> bool:
    """Whether a start reads it: not the row store, which is derived, nor what the last start has left in `store`, nor
    files of the index that only an earlier checkpoint names."""
    if path.suffix == ".bin":
        node = path.parents[1]
        current = (node / "checkpoints" / "CURRENT").read_text()
        return f"{path.parent.name}/{path.name}" in index_files(node, current)
    return path.parent.name != "store" and path.stat().st_size > 0


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x40
    path.write_bytes(content)


def one(data: Path, pattern: str) -> Path:
    return sorted(path for path in data.glob(pattern) if path.is_file() and counts(path))[0]


CLUSTER = "content/*/records"
CHECKPOINT = f"{CLUSTER}/node/checkpoints/*"


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        (f"{CLUSTER}/log/*.log", lambda path: os.truncate(path, path.stat().st_size - 3)),
        (f"{CLUSTER}/log/*.log", lambda path: flip(path, 230)),
        (f"{CLUSTER}/log/*.log", lambda path: flip(path, 3)),
        (f"{CLUSTER}/log/*.log", Path.unlink),
        (f"{CLUSTER}/log/END", lambda path: flip(path, 20)),
        (f"{CHECKPOINT}/rows.arrays", lambda path: os.truncate(path, path.stat().st_size - 1)),
        (f"{CHECKPOINT}/column-0.arrays", lambda path: flip(path, path.stat().st_size - 1)),
        (f"{CHECKPOINT}/column-0.arrays", Path.unlink),
        (f"{CHECKPOINT}/manifest.json", lambda path: flip(path, 40)),
        (f"{CLUSTER}/node/checkpoints/CURRENT", lambda path: flip(path, 15)),
        (f"{CLUSTER}/node/index-1/*.bin", Path.unlink),
        (f"{CLUSTER}/node/index-1/*.bin", lambda path: os.truncate(path, 10)),
        ("config/keys/active*", lambda path: flip(path, 10)),
        ("config/keys/active*", Path.unlink),
    ],
)
def test_the_doctor_finds_what_ends_a_start(killed: Path, tmp_path: Path, pattern: str, change: Any) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    damaged = one(data, pattern)
    change(damaged)
    (found,) = problems(data)
    assert found.level == "error"
    with pytest.raises(Corruption) as refused:
        ServerProcess(Settings(data, port=0, config_port=0))
    assert found.remedy == refused.value.remedy
    what = found.message.partition(": ")[0].partition(",")[0]
    assert what in refused.value.message
    assert damaged.name.replace("%", "/") in found.message.replace("%", "/") or damaged.suffix == ".log"


def test_damage_to_the_document_store(killed: Path, tmp_path: Path) -> None:
    """A start does not notice: a block is checked when it is read."""
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    tables = sorted(data.glob(f"{CHECKPOINT}/store/*.sst"), key=lambda path: path.stat().st_size)
    flip(tables[-1], 200)
    (found,) = problems(data)
    assert found.level == "error"
    assert "document store" in found.message


def test_a_torn_tail_is_only_a_warning(killed: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    with one(data, f"{CLUSTER}/log/*.log").open("ab") as log:
        log.write(b"\xf1REC torn")
    (found,) = problems(data)
    assert (found.level, found.message.split()[0]) == ("warning", "9")


def test_a_restore_that_was_broken_off(killed: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    (data / ".restoring").mkdir()
    (data / ".placing").mkdir()
    assert [finding.subject for finding in problems(data)] == ["restore", "restore"]


def test_what_is_no_data_directory(tmp_path: Path) -> None:
    assert problems(tmp_path) == []
    assert problems(tmp_path / "none") == []
    (tmp_path / "keys").mkdir()
    assert problems(tmp_path) == []
    (tmp_path / "letter").touch()
    assert [finding.level for finding in problems(tmp_path)] == ["error"]


def doctor(*arguments: object) -> tuple[int, str]:
    ended = run_warm(["doctor", *arguments])
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode, ended.stdout


@pytest.mark.crash
def test_beside_a_service_that_is_fed(tmp_path: Path) -> None:
    package = str(write_package(tmp_path / "music"))
    with running_service(tmp_path / "data", package, first=FREQUENT_CHECKPOINTS) as service:
        put(service, range(50))
        feeding = threading.Thread(target=put, args=(service, range(300)), daemon=True)
        feeding.start()
        rounds = 0
        while feeding.is_alive() or rounds < 2:
            assert [finding for finding in problems(tmp_path / "data") if finding.level == "error"] == []
            rounds += 1
        feeding.join()
        arguments = ("--data-dir", tmp_path / "data", "--url", service.url, "--config-url", service.config_url)
        status, output = doctor(*arguments, "--json")
        report = orjson.loads(output)
        found = {(finding["area"], finding["subject"]): finding for finding in report["findings"]}
        assert report["status"] == ("ok", "warning", "error")[status]
        assert found["data", "lock"]["message"] == f"held by process {service.process.pid}"
        assert [found["service", name]["message"] for name in ("config server", "container")] == ["up", "up"]
        assert found["service", "application"]["message"] == "default.default.default serves generation 1"
        assert found["service", "content cluster records"]["level"] in ("ok", "warning")
        ports = [finding for finding in report["findings"] if finding["area"] == "ports"]
        assert [finding["level"] for finding in ports] == ["ok", "ok"]
        assert all("paperwasp listens" in finding["message"] for finding in ports)
    gone, output = doctor(*arguments)
    assert "0 errors" in output
    assert gone < 2


def test_the_exit_status_is_that_of_the_worst(killed: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    one(data, f"{CLUSTER}/log/*.log").unlink()
    status, output = doctor("--data-dir", data, "--url", "http://127.0.0.1:1", "--config-url", "http://127.0.0.1:2")
    assert status == 2
    assert "→" in output
    assert "--repair" in output


def test_a_service_without_an_application(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        found = list(check_service(service.url, service.config_url))
    assert [(finding.subject, finding.level) for finding in found] == [
        ("config server", "ok"),
        ("container", "warning"),
        ("application", "warning"),
    ]
    assert list(check_service(service.url, service.config_url)) == []
