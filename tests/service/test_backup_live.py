"""Backups of a service that is being fed, and what they and it survive."""

from __future__ import annotations

import http.client
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from paperwasp.base.file_snapshot import DamagedBackup
from paperwasp.client import backup as command
from paperwasp.client.backup import Backup, back_up_service
from paperwasp.client.connection import Access
from paperwasp.errors import Conflict, InvalidInput
from tests.chance import SEED
from tests.service.music import FILES, SERVICES, package, write_package
from tests.service.running import RunningService, running_service
from tests.service.warm import run_warm

FREQUENT_CHECKPOINTS = "from paperwasp import limits; limits.CHECKPOINT_OPERATIONS = 60; limits.LOG_FILE_BYTES = 20_000"
DOCUMENTS = 40
FEEDERS = 3
ROUNDS = 3
MORE = 34
"""Operations that each feeder has answered before each round."""
LARGE = 24
LARGE_BYTES = 400_000
PATIENCE_SECONDS = 30


def request(url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)) as connection:
        sent = body if isinstance(body, bytes) else None if body is None else orjson.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/zip"} if isinstance(body, bytes) else {})
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())


def paperwasp(*arguments: object, expected: int = 0, first: str = "") -> str:
    """Runs a command; gives what it says."""
    program = [sys.executable, "-c", f"{first}\nfrom paperwasp.cli import main\nmain()", *map(str, arguments)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120) if first else run_warm(arguments)
    assert ended.returncode == expected, ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stdout + ended.stderr


class Feeder(threading.Thread):
    """Puts, updates and removes documents of its own, and knows what was answered.

    A document says in two fields which operation on it made it, so that a torn one would show. `operations` has, by
    document, the numbers of its operations that were sent and that were answered.
    """

    def __init__(self, url: str, number: int) -> None:
        super().__init__(daemon=True)
        self._url, self._number = url, number
        self._random = random.Random(SEED + number)
        self.is_stopping = threading.Event()
        self.sent: dict[str, list[bool]] = {}
        """By document, whether each of its operations left it there; the first is that it was not."""
        self.answered: dict[str, int] = {}
        self.done = threading.Semaphore(0)
        """One for each operation that was answered: for whoever waits for some more."""
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with closing(http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=30)) as connection:
                while not self.is_stopping.is_set():
                    self._feed_one(connection)
        except BaseException as error:
            self.error = error

    def _feed_one(self, connection: http.client.HTTPConnection) -> None:
        name = f"{self._number}-{self._random.randrange(DOCUMENTS)}"
        sent = self.sent.setdefault(name, [False])
        number, is_there = len(sent), sent[-1]
        kind = self._random.choice(("put", "put", "update", "remove")) if is_there else "put"
        sent.append(kind != "remove")
        path = f"/document/v1/n/music/docid/{name}"
        if kind == "put":
            body = orjson.dumps({"fields": {"title": f"number {number}", "year": number}})
            connection.request("POST", path, body)
        elif kind == "update":
            body = orjson.dumps({"fields": {"title": {"assign": f"number {number}"}, "year": {"assign": number}}})
            connection.request("PUT", path, body)
        else:
            connection.request("DELETE", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        self.answered[name] = number
        self.done.release()


@pytest.mark.crash
@pytest.mark.parametrize("destination", ["folder", "archive.tar.zst"])
def test_all_that_was_answered_before_is_in_a_backup(destination: str, tmp_path: Path) -> None:
    backups = []
    with running_service(
        tmp_path / "data", str(write_package(tmp_path / "music")), first=FREQUENT_CHECKPOINTS
    ) as service:
        feeders = [Feeder(service.url, number) for number in range(FEEDERS)]
        for feeder in feeders:
            feeder.start()
        for number in range(ROUNDS):
            for feeder in feeders:
                while feeder.done.acquire(blocking=False):
                    pass
                for _ in range(MORE):
                    assert feeder.done.acquire(timeout=PATIENCE_SECONDS), feeder.error
            answered = {name: operation for feeder in feeders for name, operation in feeder.answered.copy().items()}
            backup = tmp_path / str(number) / destination
            backup.parent.mkdir()
            back_up_service(Backup(backup), service.config_url)
            sent = {name: list(states) for feeder in feeders for name, states in feeder.sent.copy().items()}
            backups.append((backup, answered, sent))
        for feeder in feeders:
            feeder.is_stopping.set()
            feeder.join()
            assert feeder.error is None
        service.stop(signal.SIGKILL)
    for backup, answered, sent in backups:
        paperwasp("restore", backup, "--data-dir", backup.parent / "data")
        with running_service(backup.parent / "data") as restored:
            check_documents(restored.url, answered, sent)


def check_documents(url: str, answered: dict[str, int], sent: dict[str, list[bool]]) -> None:
    """Each document is as one of its operations left it, from the last that was answered before the backup on."""
    _, visited = request(url, "GET", "/document/v1/n/music/docid/?wantedDocumentCount=1000")
    found = {document["id"].rpartition("::")[2]: document["fields"] for document in visited["documents"]}
    assert found.keys() <= sent.keys()
    for name, states in sent.items():
        possible = range(answered.get(name, 0), len(states))
        if name not in found:
            assert not all(states[number] for number in possible), name
            continue
        number = found[name]["year"]
        assert number in possible and states[number], name
        assert found[name]["title"] == f"number {number}"
        _, hits = request(url, "GET", f"/search/?yql=select+*+from+music+where+year={number}&hits=400")
        shown = {hit["fields"]["documentid"].rpartition("::")[2] for hit in hits["root"].get("children", [])}
        assert name in shown
    _, all_of_them = request(url, "GET", "/search/?yql=select+*+from+music+where+true&hits=0")
    assert all_of_them["root"]["fields"]["totalCount"] == len(found)


@pytest.fixture
def large(tmp_path: Path) -> Iterator[RunningService]:
    """A service with more documents than a connection holds."""
    with running_service(tmp_path / "data", str(write_package(tmp_path / "music"))) as service:
        text = random.Random(SEED).randbytes(LARGE_BYTES // 2).hex()
        for number in range(LARGE):
            fields = {"title": f"large {number}", "tags": [text]}
            status, _ = request(service.url, "POST", f"/document/v1/n/music/docid/{number}", {"fields": fields})
            assert status == 200
        yield service


def count(url: str) -> int:
    _, answer = request(url, "GET", "/search/?yql=select+*+from+music+where+true&hits=0")
    return int(answer["root"]["fields"]["totalCount"])


@pytest.mark.crash
def test_a_kill_of_the_service_leaves_no_backup_and_loses_nothing(
    large: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = command._Answer.read

    def read_and_kill(answer: Any, size: int = -1) -> bytes:
        if large.process.poll() is None:
            large.stop(signal.SIGKILL)
        return read(answer, size)

    monkeypatch.setattr(command._Answer, "read", read_and_kill)
    with pytest.raises(DamagedBackup):
        back_up_service(Backup(tmp_path / "backup.tar"), large.config_url)
    assert not (tmp_path / "backup.tar").exists()
    with running_service(tmp_path / "data") as service:
        assert count(service.url) == LARGE


def descriptors(service: RunningService) -> list[str]:
    """What the service has open: files, sockets, pipes."""
    found = []
    for path in Path(f"/proc/{service.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(path.readlink()))
    return sorted(found)


def await_rows(service: RunningService) -> None:
    """Waits until the chore that fills the row store has read all documents: the files it opens stay open."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(path.endswith(".rows") for path in descriptors(service)):
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


@pytest.mark.crash
@pytest.mark.parametrize("destination", ["folder", "archive.tar"])
def test_a_kill_of_the_command_leaves_no_backup_and_the_service_as_it_was(
    large: RunningService, tmp_path: Path, destination: str
) -> None:
    back_up_service(Backup(tmp_path / "first"), large.config_url)  # opens the files of a checkpoint, which stay open
    await_rows(large)
    before = descriptors(large)
    dying = (
        "import os; from paperwasp.client import backup as b; read = b._Answer.read; sizes = []\n"
        "def f(s, n=-1):\n"
        "    sizes.append(n)\n"
        "    return read(s, n) if len(sizes) < 5 else os.kill(os.getpid(), 9)\n"
        "b._Answer.read = f"
    )
    arguments = ("backup", tmp_path / destination, "--config-url", large.config_url)
    paperwasp(*arguments, expected=-signal.SIGKILL, first=dying)
    assert not (tmp_path / destination).exists()
    assert (tmp_path / f"{destination}.partial").exists()
    while True:  # until the service has noticed that its client is gone
        try:
            back_up_service(Backup(tmp_path / destination), large.config_url)
            break
        except InvalidInput as error:
            assert "Another backup" in error.message
            threading.Event().wait(0.05)
    assert not (tmp_path / f"{destination}.partial").exists()
    paperwasp("backup", "--verify", tmp_path / destination)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(now := descriptors(large)) > len(before):
        assert time.monotonic() < deadline, [path for path in now if path not in before]
        threading.Event().wait(0.05)
    assert count(large.url) == LARGE


@pytest.mark.crash
def test_a_kill_of_a_restore_leaves_the_old_data(large: RunningService, tmp_path: Path) -> None:
    back_up_service(Backup(tmp_path / "backup"), large.config_url)
    request(large.url, "DELETE", "/document/v1/n/music/docid/1")
    refused = paperwasp("restore", tmp_path / "backup", "--data-dir", tmp_path / "data", "--replace", expected=1)
    assert "in use by process" in refused
    large.stop()
    dying = (
        "import os; from paperwasp.admin.backup import archive as r; written = []; write = r.write_file\n"
        "def f(path, pieces):\n"
        "    written.append(path)\n"
        "    write(path, pieces) if len(written) < 3 else os.kill(os.getpid(), 9)\n"
        "r.write_file = f"
    )
    arguments = ("restore", tmp_path / "backup", "--data-dir", tmp_path / "data")
    assert "holds data already" in paperwasp(*arguments, expected=1)
    paperwasp(*arguments, "--replace", expected=-signal.SIGKILL, first=dying)
    with running_service(tmp_path / "data") as service:
        assert count(service.url) == LARGE - 1
    paperwasp(*arguments, "--replace")
    with running_service(tmp_path / "data") as service:
        assert count(service.url) == LARGE


def test_applications_ports_and_keys_are_in_a_backup(tmp_path: Path) -> None:
    """Two applications, a container with a port that was given, a deployment that was removed, and other files."""
    two = SERVICES.replace("<content id", '<container id="second" version="1.0"><search/></container><content id')
    with running_service(tmp_path / "data", str(write_package(tmp_path / "music"))) as service:
        deploy = "/application/v2/tenant/default/prepareandactivate"
        for parameters, services in (("", two), ("?applicationName=other", SERVICES)):
            status, answer = request(
                service.config_url, "POST", deploy + parameters, package({**FILES, "services.xml": services})
            )
            assert status == 200, answer
        (tmp_path / "data" / "access").mkdir()
        (tmp_path / "data" / "access" / "keys").write_bytes(b"hashed")
        listed = paperwasp("status", "--url", service.url, "--config-url", service.config_url)
        back_up_service(Backup(tmp_path / "backup.tar"), service.config_url)
        keys = key_files(tmp_path / "data")
    paperwasp("restore", tmp_path / "backup.tar", "--data-dir", tmp_path / "restored")
    assert key_files(tmp_path / "restored") == keys
    assert (tmp_path / "restored" / "access" / "keys").read_bytes() == b"hashed"
    assert any(name.startswith("container-ports%") for name in keys)
    with running_service(tmp_path / "restored") as restored:
        again = paperwasp("status", "--url", restored.url, "--config-url", restored.config_url)
    assert again.count("Container") == listed.count("Container") >= 2


def key_files(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / "config" / "keys").iterdir()}


def test_a_stopped_data_directory_is_backed_up_by_its_files(large: RunningService, tmp_path: Path) -> None:
    arguments = ("backup", tmp_path / "backup", "--data-dir", tmp_path / "data")
    assert "in use by process" in paperwasp(*arguments, expected=1)
    large.stop(signal.SIGKILL)
    paperwasp(*arguments)
    paperwasp("backup", tmp_path / "next", "--since", tmp_path / "backup", "--data-dir", tmp_path / "data")
    sizes = [path.stat().st_nlink for path in (tmp_path / "next" / "data").rglob("*.log")]
    assert sizes
    assert all(links == 2 for links in sizes)
    paperwasp("restore", tmp_path / "next", "--data-dir", tmp_path / "restored")
    with running_service(tmp_path / "restored") as service:
        assert count(service.url) == LARGE
    assert "not a data directory" in paperwasp("backup", tmp_path / "no", "--data-dir", tmp_path / "none", expected=1)
    assert not (tmp_path / "none").exists()


def test_one_backup_at_a_time(large: RunningService, tmp_path: Path) -> None:
    with closing(http.client.HTTPConnection(urlsplit(large.config_url).netloc, timeout=30)) as first:
        first.request("POST", "/backup/v1/snapshot")
        answer = first.getresponse()
        assert answer.status == 200
        status, refused = request(large.config_url, "POST", "/backup/v1/snapshot")
        assert (status, refused["error-code"]) == (429, "TOO_MANY_REQUESTS")
        assert len(answer.read()) > LARGE * LARGE_BYTES
    status, _ = request(large.config_url, "POST", "/backup/v1/snapshot", {"known": "all"})
    assert status == 400


def test_a_destination_that_is_there_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "there.tar").touch()
    with pytest.raises(Conflict, match="exists"):
        back_up_service(Backup(tmp_path / "there.tar"), "http://127.0.0.1:1")


def test_who_may_not_deploy_gets_no_backup_and_keys_are_in_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key, reading = (
        next(word for word in said.split() if word.startswith("pw_"))
        for said in (
            paperwasp("key", "create", scope, "--scopes", scope, "--data-dir", data) for scope in ("deploy", "read")
        )
    )
    with running_service(data, "--authenticate-deployments") as service:
        for access in (Access(), Access(token=reading), Access(token="pw_unknown")):
            with pytest.raises(InvalidInput, match="made no backup"):
                back_up_service(Backup(tmp_path / "refused.tar"), service.config_url, access)
        assert not list(tmp_path.glob("refused*"))
        arguments = ("backup", tmp_path / "backup.tar", "--config-url", service.config_url)
        paperwasp(*arguments, "--token", key)
    paperwasp("restore", tmp_path / "backup.tar", "--data-dir", tmp_path / "restored")
    kept = {path.name: path.read_bytes() for path in (data / "keys").iterdir() if path.is_file()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "restored" / "keys").iterdir()} == kept
    with running_service(tmp_path / "restored", "--authenticate-deployments") as service:
        back_up_service(Backup(tmp_path / "again.tar"), service.config_url, Access(token=key))
