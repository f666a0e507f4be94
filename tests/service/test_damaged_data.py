"""Damage to the data directory while nothing runs: a start says which file, and loses nothing without a word."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from tests.service.music import write_package
from tests.service.running import command, running_service

DOCUMENTS = 20
HEADER_BYTES = 220


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


def failed_start(data: Path, *arguments: str) -> str:
    """What a start says that must not succeed."""
    ended = subprocess.run(command(data, *arguments), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1, ended.stdout
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stderr


def the_log(data: Path) -> Path:
    (log,) = data.glob("content/*/*/log/*.log")
    return log


def documents(url: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.request("GET", "/search/?yql=select%20*%20from%20music%20where%20true&hits=0")
    answer = orjson.loads(connection.getresponse().read())
    connection.close()
    count = answer["root"]["fields"]["totalCount"]
    assert isinstance(count, int)
    return count


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
def test_a_log_that_lost_what_was_acknowledged(data: Path, damage: Callable[[Path], None], said: str) -> None:
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
