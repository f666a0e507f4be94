"""Files and folders of a session, compared with a plain model of a file system."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.configserver.editing import Edit, delete, put_directory, put_file
from paperwasp.configserver.repository import State
from paperwasp.errors import Conflict, InvalidInput, PaperwaspError, TooLarge, UnreadablePackage
from tests.configserver.config_stores import MemoryStore
from tests.configserver.deploy_fixtures import PACKAGES, Service, config_server, package

PATHS = ["a", "b", "a/b", "a/b/c", "d/e/f", "services.xml", "schemas"]


class Folder:
    """What the edits should do, on a dictionary: folder names end in a slash."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes | None] = dict(package().files)
        self.entries["schemas/"] = None

    def put(self, path: str, content: bytes | None) -> bool:
        parents = ["/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)]
        taken = path + "/" in self.entries if content is not None else path in self.entries
        if taken or any(parent in self.entries for parent in parents):
            return False
        for parent in parents:
            self.entries[parent + "/"] = None
        self.entries[path if content is not None else path + "/"] = content
        return True

    def delete(self, path: str) -> bool:
        name = path if path in self.entries else path + "/"
        if name not in self.entries or any(e.startswith(name) and e != name for e in self.entries if name[-1] == "/"):
            return False
        del self.entries[name]
        return True


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["file", "folder", "delete"]), st.sampled_from(PATHS)), max_size=20))
def test_edits_are_those_of_a_file_system(calls: list[tuple[str, str]]) -> None:
    server = config_server(MemoryStore(), Service())
    session = server.deployments.create(PACKAGES["music"])
    expected = Folder()
    for number, (call, path) in enumerate(calls):
        content = b"%d" % number
        edit: Edit = {"file": put_file(path, content), "folder": put_directory(path), "delete": delete(path)}[call]
        should = expected.delete(path) if call == "delete" else expected.put(path, content if call == "file" else None)
        try:
            session = server.deployments.edit("default", session.id, edit)
        except PaperwaspError:
            assert not should, (call, path)
        else:
            assert should, (call, path)
        files = {name: value for name, value in expected.entries.items() if value is not None}
        assert dict(server.packages.of(session).files) == files
        folders = {name.removesuffix("/") for name, value in expected.entries.items() if value is None}
        made = {"/".join(name.split("/")[:n]) for name in files for n in range(1, name.count("/") + 1)}
        made |= {"/".join(name.split("/")[:n]) for name in session.directories for n in range(1, name.count("/") + 2)}
        assert made == folders


def test_an_edited_session_has_to_be_prepared_anew(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    session = server.deployments.create(PACKAGES["music"])
    server.deployments.prepare("default", session.id)
    assert server.deployments.edit("default", session.id, put_file("x", b"y")).state is State.CREATED
    with pytest.raises(InvalidInput, match="not prepared"):
        server.deployments.activate("default", session.id)
    server.deployments.prepare("default", session.id)
    server.deployments.activate("default", session.id)
    with pytest.raises(Conflict):
        server.deployments.edit("default", session.id, put_file("x", b"z"))


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "a/./b", "a\\b", "c:x", "a\nb", "", "x" * 2000])
def test_paths_that_lead_outside_are_refused(tmp_path: Path, path: str) -> None:
    server = config_server(tmp_path)
    session = server.deployments.create(PACKAGES["music"])
    for edit in (put_file(path, b""), put_directory(path)):
        with pytest.raises(UnreadablePackage):
            server.deployments.edit("default", session.id, edit)
    with pytest.raises(PaperwaspError):
        server.deployments.edit("default", session.id, delete(path))


def test_a_session_does_not_outgrow_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = config_server(tmp_path)
    session = server.deployments.create(PACKAGES["music"])
    monkeypatch.setattr(limits, "PACKAGE_FILES", 3)
    server.deployments.edit("default", session.id, put_directory("a"))
    for edit in (put_directory("b"), put_file("b", b"")):
        with pytest.raises(TooLarge):
            server.deployments.edit("default", session.id, edit)
    monkeypatch.setattr(limits, "PACKAGE_UNPACKED_BYTES", 1000)
    with pytest.raises(TooLarge):
        server.deployments.edit("default", session.id, put_file("services.xml", bytes(1001)))
