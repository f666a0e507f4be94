"""Data of versions to come: refused by name, with nothing changed, by the data directory and by each format."""

from __future__ import annotations

import hashlib
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import orjson
import pytest

from paperwasp.coordination import log_format
from paperwasp.coordination.log_end import NAME as END
from paperwasp.coordination.log_end import LogEnd
from paperwasp.errors import OtherVersion
from paperwasp.server.roles.data_version import DATA_VERSION, check_version
from tests.server.doctor.test_data import put
from tests.service.music import write_package
from tests.service.running import running_service
from tests.service.warm import run_warm
from tests.upgrade.test_older_data import check_refused, contents

CLUSTER = "content/default.default.default/records"


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of this version, with a checkpoint and operations after it."""
    folder = tmp_path_factory.mktemp("present")
    with running_service(folder / "data", str(write_package(folder / "music"))) as service:
        put(service, range(5))
    with running_service(folder / "data") as service:
        put(service, range(5, 8))
        service.stop(signal.SIGKILL)
    return folder / "data"


def data_directory(data: Path) -> str:
    (data / "version").write_bytes(orjson.dumps({"data": DATA_VERSION + 1, "paperwasp": "7.8.9"}))
    return f"was written by paperwasp 7.8.9, in data version {DATA_VERSION + 1}"


def checkpoint(data: Path) -> str:
    (manifest,) = data.glob(f"{CLUSTER}/node/checkpoints/*/manifest.json")
    content = orjson.loads(manifest.read_bytes().partition(b"\n")[2])
    text = orjson.dumps({**content, "version": 4})
    manifest.write_bytes(b"%08x\n" % crc32(text) + text)
    return "a checkpoint of version 4; known is 3"


def layout(data: Path) -> str:
    (manifest,) = data.glob(f"{CLUSTER}/node/checkpoints/*/manifest.json")
    content = orjson.loads(manifest.read_bytes().partition(b"\n")[2])
    text = orjson.dumps({**content, "layout": {**content["layout"], "version": 4}})
    manifest.write_bytes(b"%08x\n" % crc32(text) + text)
    return "a configuration marker of version 4; known is 3"


def log_file(data: Path) -> str:
    path = sorted(data.glob(f"{CLUSTER}/log/*.log"))[-1]
    content = path.read_bytes()
    header = bytearray(content[: log_format.FILE_HEADER_BYTES])
    struct.pack_into("<H", header, 8, 2)
    struct.pack_into("<I", header, len(header) - 4, crc32(header[:-4]))
    path.write_bytes(bytes(header) + content[len(header) :])
    return "a log of version 2; known is 1"


def operations(data: Path) -> str:
    """Another record at the end of the log, by the rules of the log, whose operations are of version 5."""
    path = sorted(data.glob(f"{CLUSTER}/log/*.log"))[-1]
    content = path.read_bytes()
    header = log_format.decode_file_header(content)
    assert header is not None
    marks = list(header.bases)
    assert log_format.first_gap(list(log_format.scan(content)), marks) is None
    record, _ = log_format.encode_records([(3, struct.pack("<BI", 5, 0), 1)], marks, 1)
    path.write_bytes(content + record)
    (path.parent / END).write_bytes(LogEnd(int(path.stem), len(content + record)).encode())
    return "operations of version 5"


@pytest.mark.parametrize("change", [data_directory, checkpoint, layout, log_file, operations])
def test_newer_data_is_refused_as_it_is(change: Callable[[Path], str], present: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    subprocess.run(["cp", "-r", present, data], check=True)
    check_refused(data, change(data))


def test_a_backup_of_newer_data_replaces_nothing(present: Path, tmp_path: Path) -> None:
    newer, old = tmp_path / "newer", tmp_path / "old"
    subprocess.run(["cp", "-r", present, newer], check=True)
    subprocess.run(["cp", "-r", present, old], check=True)
    data_directory(newer)
    check_version(old)
    with pytest.raises(OtherVersion):
        check_version(newer)
    (newer / "version").rename(tmp_path / "version")
    run("backup", tmp_path / "backup", "--data-dir", newer)
    (tmp_path / "version").rename(tmp_path / "backup" / "data" / "version")
    manifest = tmp_path / "backup" / "manifest.json"
    sign_with(manifest, tmp_path / "backup" / "data" / "version")
    before = contents(old)
    said = run("restore", tmp_path / "backup", "--data-dir", old, "--replace", expected=1)
    assert "written by paperwasp 7.8.9" in said
    assert contents(old) == before


def sign_with(manifest: Path, file: Path) -> None:
    """Adds a file to a manifest."""
    content = orjson.loads(manifest.read_bytes().partition(b"\n")[2])
    content["files"].append([file.name, file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()])
    text = orjson.dumps(content)
    manifest.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n")


def run(*arguments: object, expected: int = 0) -> str:
    ended = run_warm(arguments)
    assert ended.returncode == expected, ended.stderr
    return ended.stdout + ended.stderr
