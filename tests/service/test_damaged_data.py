"""Damage to the data directory while nothing runs: a start says which file, and loses nothing without a word."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from tests.service.forked import Ended, forked_commands
from tests.service.music import write_package
from tests.service.running import running_service

DOCUMENTS = 20
HEADER_BYTES = 220
ACTIVE = "config/keys/active%default%default%default"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a service that was killed after documents were acknowledged, none of which is in a checkpoint."""
    directory = tmp_path_factory.mktemp("killed")
    with running_service(directory / "data", str(write_package(directory / "music"))) as service:
        connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=10)
        for number in range(DOCUMENTS):
            body = orjson.dumps({"fields": {"title": f"number {number}"}})
            connection.request("POST", f"/document/v1/ns/music/docid/{number}", body)
            response = connection.getresponse()
            response.read()
            assert response.status == 200
        connection.close()
        service.stop(signal.SIGKILL)
    return directory / "data"


@pytest.fixture
def data(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "data"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ended]]:
    with forked_commands(tmp_path_factory.mktemp("forked")) as run:
        yield run


@pytest.fixture
def failed_start(run: Callable[..., Ended]) -> Callable[[Path], str]:
    """What a start says that must not succeed."""

    def start(data: Path) -> str:
        ended = run("serve", "--port", 0, "--config-port", 0, "--data-dir", data)
        assert ended.code == 1 and "Traceback" not in ended.said, ended
        return ended.said

    return start


def the_log(data: Path) -> Path:
    (log,) = data.glob("content/*/*/log/*.log")
    return log


def ask(url: str) -> tuple[int, Any]:
    split = urlsplit(url)
    connection = http.client.HTTPConnection(split.netloc, timeout=10)
    connection.request("GET", f"{split.path}?{split.query}")
    answer = connection.getresponse()
    content = orjson.loads(answer.read())
    connection.close()
    return answer.status, content


def documents(url: str) -> int:
    _, answer = ask(url + "/search/?yql=select%20*%20from%20music%20where%20true&hits=0")
    count = answer["root"]["fields"]["totalCount"]
    assert isinstance(count, int)
    return count


@pytest.fixture(scope="module")
def stopped(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after a clean stop: all documents are in the checkpoint."""
    data = Path(shutil.copytree(killed, tmp_path_factory.mktemp("stopped") / "data"))
    with running_service(data):
        pass
    return data


@pytest.fixture
def checkpointed(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "data"))


def checkpoint(data: Path) -> Path:
    (current,) = data.glob("content/*/*/node/checkpoints/CURRENT")
    return current.parent / current.read_text()


def table(data: Path) -> Path:
    """The largest table of the checkpoint's document store."""
    return max(checkpoint(data).glob("store/*.sst"), key=lambda path: path.stat().st_size)


def store_file(data: Path, pattern: str) -> Path:
    (found,) = checkpoint(data).glob(f"store/{pattern}")
    return found


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.unlink()  # RocksDB's tables have several names
    path.write_bytes(content)


def cut(path: Path, size: int = 0) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:size])


@pytest.mark.crash
@pytest.mark.parametrize(("damage", "said"), [
    (lambda data: checkpoint(data).with_name("CURRENT").write_bytes(b"\xff\xfe"), "CURRENT: offset 0: names"),
    (lambda data: checkpoint(data).with_name("CURRENT").write_bytes(b"."), "CURRENT: offset 0: names"),
    (lambda data: checkpoint(data).with_name("CURRENT").unlink(), "are missing before this file"),
    (lambda data: (checkpoint(data) / "rows.arrays").unlink(), "rows.arrays: the file is missing"),
    (lambda data: flip(checkpoint(data) / "manifest.json", 50), "manifest.json: offset 0: the checksum differs"),
    (lambda data: shutil.rmtree(checkpoint(data) / "store"), "store: the file is missing"),
    (lambda data: store_file(data, "CURRENT").write_bytes(b"\xff"), "document store of the checkpoint is damaged"),
    (lambda data: store_file(data, "CURRENT").unlink(), "document store of the checkpoint is damaged"),
    (lambda data: cut(store_file(data, "MANIFEST-*"), 20), "document store of the checkpoint is damaged"),
    (lambda data: flip(store_file(data, "MANIFEST-*"), 20), "document store of the checkpoint is damaged"),
    (lambda data: cut(table(data)), "document store of the checkpoint is damaged"),
    (lambda data: cut(table(data), 100), "document store of the checkpoint is damaged"),
    (lambda data: table(data).unlink(), "document store of the checkpoint is damaged"),
    (lambda data: (data / ACTIVE).unlink(), "the config store has lost the key 'active/default/default/default'"),
])  # fmt: skip
def test_a_damaged_checkpoint_is_named_and_nothing_is_changed(
    checkpointed: Path, failed_start: Callable[[Path], str], damage: Callable[[Path], None], said: str
) -> None:
    damage(checkpointed)
    before = {path for path in checkpointed.rglob("*") if "checkpoints" in path.parts or "config" in path.parts}
    shown = failed_start(checkpointed)
    assert said in shown and "Nothing was changed." in shown
    assert before <= set(checkpointed.rglob("*"))


@pytest.mark.crash
def test_a_flipped_bit_in_a_document_is_told_to_whoever_asks_for_it(checkpointed: Path) -> None:
    """RocksDB checks a block when it reads it: all else is served."""
    flip(table(checkpointed), 40)
    with running_service(checkpointed) as service:
        for path in ("/document/v1/ns/music/docid/1", "/document/v1/ns/music/docid/?cluster=records"):
            status, answer = ask(service.url + path)
            assert status == 500 and "the document store is damaged" in answer["message"], answer
            assert ".sst" in answer["message"], "the file is named"
        _, answer = ask(service.url + "/search/?yql=select%20*%20from%20music%20where%20true")
        (error,) = answer["root"]["errors"]
        assert "the document store is damaged" in error["message"] and ".sst" in error["message"]
        assert documents(service.url) == DOCUMENTS, "what needs no document is answered"


def remove_folder(data: Path) -> None:
    shutil.rmtree(the_log(data).parent)


@pytest.mark.crash
@pytest.mark.parametrize(("damage", "said"), [
    (lambda data: os.truncate(the_log(data), 0), "0000000000000001.log: offset 0: "),
    (lambda data: os.truncate(the_log(data), HEADER_BYTES - 1), "0000000000000001.log: offset 0: "),
    (lambda data: os.truncate(the_log(data), HEADER_BYTES), "0000000000000001.log: offset 220: "),
    (lambda data: os.truncate(the_log(data), the_log(data).stat().st_size - 1), "0000000000000001.log: offset "),
    (lambda data: the_log(data).unlink(), "0000000000000001.log: offset 0: this file is missing"),
    (remove_folder, "log: the operation log is missing"),
])  # fmt: skip
def test_a_log_that_lost_what_was_acknowledged(
    data: Path, failed_start: Callable[[Path], str], damage: Callable[[Path], None], said: str
) -> None:
    damage(data)
    assert said in failed_start(data)
    with running_service(data, "--repair") as service:
        assert documents(service.url) < DOCUMENTS
    with running_service(data) as service:
        assert documents(service.url) < DOCUMENTS


@pytest.mark.crash
def test_an_undamaged_log_has_all(data: Path) -> None:
    with running_service(data) as service:
        assert documents(service.url) == DOCUMENTS
