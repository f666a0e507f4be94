"""Deployments on a full disk: 507, as docs/reference/deploy-api.md says, and no path of this machine in the answer."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NoReturn

import orjson
import pytest

from paperwasp.base.records import replace
from paperwasp.configserver import ConfigServerApp
from paperwasp.configserver.repository import State, _decode_session
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.errors import NoSpace
from paperwasp.http.messages import Request
from tests.configserver.deploy_fixtures import PACKAGES, Service, ask, config_app, config_server

TENANT = "/application/v2/tenant/default"
FULL = OSError(errno.ENOSPC, "No space left on device", "/secret/place")


def full(*_: object) -> NoReturn:
    raise FULL


def deployed(app: ConfigServerApp) -> tuple[int, str]:
    headers = {"content-type": "application/zip"}
    answer = ask(app, Request("POST", f"{TENANT}/prepareandactivate", "", headers, PACKAGES["music"]))
    return answer.status, answer.body.decode()


def activated(app: ConfigServerApp) -> tuple[int, str]:
    answer = ask(app, Request("PUT", f"{TENANT}/session/1/active"))
    return answer.status, answer.body.decode()


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_package_that_cannot_be_kept(tmp_path: Path, call: str) -> None:
    service = Service()
    store = FileConfigStore(tmp_path)
    app = config_app(config_server(store, service), service)
    store._disk = replace(REAL_DISK, **{call: full})
    status, told = deployed(app)
    assert status == 507
    assert "there is no room left on the disk" in told
    assert "/secret" not in told and str(tmp_path) not in told
    store._disk = REAL_DISK
    assert deployed(app)[0] == 200


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        OSError(errno.EDQUOT, "Disk quota exceeded", "/secret/place"),
        NoSpace("/secret/place: no space left for the operation log"),
        Exception("IO error: No space left on device: While appending to file: /secret/place/000012.sst"),
    ],
)
def test_an_application_that_cannot_be_activated(tmp_path: Path, error: Exception) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    app = config_app(server, service)
    service.error = error
    status, told = deployed(app)
    assert (status, tuple(server.applications.active())) == (200, ())
    assert "prepared, but activation failed: Activating generation 1 failed: there is no room left" in told
    assert "/secret" not in told
    status, told = activated(app)
    assert status == 507
    assert "/secret" not in told
    service.error = None
    assert activated(app)[0] == 200


def test_another_failure_of_the_disk_is_told_without_a_path(tmp_path: Path) -> None:
    service = Service()
    app = config_app(config_server(tmp_path, service), service)
    service.error = OSError(errno.EIO, "Input/output error", "/secret/place")
    deployed(app)
    status, told = activated(app)
    assert status == 500
    assert "the disk fails (Input/output error)" in told and "/secret" not in told


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_package_that_the_disk_does_not_take(tmp_path: Path, call: str) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error", "/secret/place")

    service = Service()
    store = FileConfigStore(tmp_path)
    app = config_app(config_server(store, service), service)
    store._disk = replace(REAL_DISK, **{call: broken})
    status, told = deployed(app)
    assert status == 500
    assert "the disk fails (Input/output error). Nothing was changed" in told
    assert "OSError" not in told and "/secret" not in told and str(tmp_path) not in told
    store._disk = REAL_DISK
    assert deployed(app)[0] == 200


def test_a_start_on_a_full_disk(tmp_path: Path) -> None:
    """What is active is served. What a crash left to be written is left to the next start."""
    server = config_server(tmp_path)
    assert deployed(config_app(server, Service()))[0] == 200
    for _ in ("all is written", "the session's record is not"):
        store, service = FileConfigStore(tmp_path), Service()
        store._disk = replace(REAL_DISK, write=full)
        server = config_server(store, service)
        server.restore()
        assert [each.generation for each in service.activations] == [1]
        store._disk = REAL_DISK
        server.sessions.save(replace(server.sessions.get("default", 1), state=State.PREPARED))
        assert stored_state(store) is State.PREPARED
    server.restore()
    assert stored_state(store) is State.ACTIVE


def stored_state(store: FileConfigStore) -> State:
    (key,) = store.keys("sessions/default/")
    entry = store.get(key)
    assert entry is not None
    return _decode_session(orjson.loads(entry.value), entry.revision).state
