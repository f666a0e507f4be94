"""Data that earlier commits of this repository wrote: opened with all documents, or refused with the reason.

`data/<date>-<commit>.tar.zst` are data directories (without `logs`, `lock` and working stores) that the service of that
commit left when it was killed: 40 documents in a checkpoint, then 10 more puts, three updates and two removes in the
log. That of data version 3 is `bec330e3` once more, opened and stopped, then three of the documents put again.
`fields_of` says what was put. Dates are those of the commits.
"""

from __future__ import annotations

import http.client
import io
import shutil
import signal
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson
import pytest
import zstandard

from paperwasp.admin.backup.archive import restore_backup
from paperwasp.client.backup import Backup, back_up_service
from paperwasp.errors import OtherVersion
from paperwasp.server.doctor.data import check_data
from paperwasp.server.doctor.findings import worst
from paperwasp.server.process import ServerProcess, Settings
from paperwasp.server.roles.data_version import DATA_VERSION
from tests.service.running import RunningService, running_service

FOLDER: Final = Path(__file__).parent / "data"
OPENED: Final = {
    "2026-11-22-c7a5026f": ("tags", "places", "vector", "notes"),
    "2026-11-23-5f833958": ("tags", "places", "vector", "near", "notes"),
    "2026-11-23-bec330e3": ("tags", "places", "vector", "near", "notes"),
    "2026-11-28-96144003": ("tags", "places", "vector", "near", "notes"),
}
"""With the fields that it has besides title and year."""
REFUSED: Final = {
    "2026-11-20-a0b0c830": "from before data version 1",
    "2026-11-22-9a290075": "a checkpoint of version 2; known is 3",
}
LOST_WORDS: Final = "2026-11-24-a98cedf6"
"""What `test_lost_words` opens."""
REMOVED: Final = (7, 41)


def unpacked(name: str, folder: Path) -> Path:
    content = zstandard.ZstdDecompressor().decompress((FOLDER / f"{name}.tar.zst").read_bytes(), 1 << 24)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        if hasattr(tarfile, "data_filter"):  # as of Python 3.11.4; the archives are ours
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder / "data")
    return folder / "data"


def fields_of(number: int, more: tuple[str, ...]) -> dict[str, Any]:
    """What document `number` has after all operations, as JSON shows it."""
    tags = [f"tag{number % 3}", "all", *(["added"] if number == 5 else [])]
    floats = "tensor<float>(x[3])"
    fields = {
        "title": "changed 4 runs" if number == 4 else f"number {number} runs",
        "year": 2003 if number == 3 else 1900 + number,
        "tags": tags,
        "places": {f"place{number % 5}": number},
        "vector": {"type": floats, "values": [float(number), 0.5, -float(number)]},
        "near": {"type": floats, "values": [float(number), 1.0, 2.0]},
        "notes": [f"note {number}", "wasps fly"],
    }
    return {name: fields[name] for name in ("title", "year", *more)}


def ask(service: RunningService, path: str) -> Any:
    with closing(http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200
        return orjson.loads(answer.read())


def found(service: RunningService, condition: str) -> set[int]:
    return found_in(service, "music", condition)


def found_in(service: RunningService, document_type: str, condition: str) -> set[int]:
    """The numbers of the documents that a query finds."""
    root = ask(service, f"/search/?yql={quote(f'select * from {document_type} where {condition}')}&hits=100")["root"]
    return {int(hit["fields"]["documentid"].rpartition(":")[2]) for hit in root.get("children", [])}


def check_documents(service: RunningService, more: tuple[str, ...]) -> None:
    there = set(range(50)) - set(REMOVED)
    visited = ask(service, "/document/v1/old/music/docid/?wantedDocumentCount=1000")["documents"]
    assert {document["id"]: document["fields"] for document in visited} == {
        f"id:old:music::{number}": fields_of(number, more) for number in there
    }
    assert found(service, "title contains 'number'") == there - {4}
    assert found(service, "title contains 'changed'") == {4}
    assert found(service, "year > 1945") == {3, 46, 47, 48, 49}
    assert found(service, "tags contains 'tag1'") == {number for number in there if number % 3 == 1}
    assert found(service, "tags contains 'added'") == {5}
    assert found(service, "places contains 'place2'") == {number for number in there if number % 5 == 2}
    assert found(service, "notes contains 'wasps'") == there
    assert found(service, "notes contains '43'") == {43}


@pytest.mark.crash
@pytest.mark.parametrize("name", OPENED)
def test_older_data_is_opened_with_all_documents(name: str, tmp_path: Path) -> None:
    data = unpacked(name, tmp_path)
    assert worst(check_data(data)) == 0
    with running_service(data) as service:
        check_documents(service, OPENED[name])
        back_up_service(Backup(tmp_path / "backup.tar"), service.config_url)
        service.stop(signal.SIGKILL)
    restore_backup(tmp_path / "backup.tar", data, replace=True)
    with running_service(data) as service:
        check_documents(service, OPENED[name])
    with running_service(data) as service:  # from the checkpoint that the stop has written
        check_documents(service, OPENED[name])


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_is_too_old_is_refused_as_it_is(name: str, tmp_path: Path) -> None:
    data = unpacked(name, tmp_path)
    check_refused(data, REFUSED[name])


def check_refused(data: Path, message: str) -> None:
    before = contents(data)
    with pytest.raises(OtherVersion) as refused:
        ServerProcess(Settings(data, port=0, config_port=0))
    assert message in refused.value.message
    assert contents(data) == before
    assert any(finding.level == "error" and message in finding.message for finding in check_data(data))


def contents(data: Path) -> dict[str, bytes]:
    """All that is data: neither logs nor the lock, nor the working store, which each start makes again."""
    files = {path.relative_to(data).as_posix(): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    derived = ("logs/", "lock")
    return {
        name: content
        for name, content in files.items()
        if not name.startswith(derived) and "/node/store/" not in name and not name.endswith("/LOCK")
    }


def test_all_fixtures_are_tested_and_small() -> None:
    files = {path.name.removesuffix(".tar.zst"): path.stat().st_size for path in FOLDER.iterdir()}
    assert files.keys() == {*OPENED, *REFUSED, LOST_WORDS}
    assert sum(files.values()) < 200_000


def test_what_is_opened_is_of_this_version_then(tmp_path: Path) -> None:
    name = next(iter(OPENED))
    data = unpacked(name, tmp_path)
    with running_service(data):
        assert orjson.loads((data / "version").read_bytes())["data"] == DATA_VERSION
    shutil.rmtree(data)
