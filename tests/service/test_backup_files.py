"""The moment of which a backup of a running service is: none in which an application is being deployed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from paperwasp.base.file_snapshot import SourceFile, close_all, held
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.errors import Conflict
from paperwasp.server.roles import backup_files
from paperwasp.server.roles.backup_files import open_served
from paperwasp.server.roles.content_clusters import ContentClusters
from paperwasp.server.roles.data_directory import DataDirectory


class Content:
    """Content clusters while whose files are opened something happens."""

    def __init__(self, happenings: list[Callable[[], object]]) -> None:
        self._happenings = happenings
        self.calls = 0

    def open_files(self) -> list[SourceFile]:
        self.calls += 1
        if self._happenings:
            self._happenings.pop(0)()
        return [held("a/b/log/1.log", b"%d" % self.calls)]


def names(files: list[SourceFile]) -> dict[str, bytes]:
    found = {file.name: b"".join(file.pieces()) for file in files}
    close_all(files)
    return found


def opened(tmp_path: Path, store: FileConfigStore, content: Content) -> dict[str, bytes]:
    with closing(DataDirectory(tmp_path)) as data:
        return names(open_served(data, store, cast(ContentClusters, content)))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileConfigStore:
    monkeypatch.setattr(backup_files, "BACKUP_CAPTURE_SECONDS", 0.0)
    store = FileConfigStore(tmp_path / "config")
    store.create("active/a", b"1")
    store.create("reindexing/a", b"1")
    return store


def test_a_deployment_meanwhile_has_it_done_again(tmp_path: Path, store: FileConfigStore) -> None:
    content = Content([lambda: store.create("active/b", b"1"), lambda: store.delete("active/a")])
    found = opened(tmp_path, store, content)
    assert content.calls == 3
    assert found["content/a/b/log/1.log"] == b"3"
    assert found["config/keys/active%b"].endswith(b"1")
    with pytest.raises(Conflict, match="being deployed"):
        opened(tmp_path, store, Content([partial(store.create, f"x/{number}", b"") for number in range(9)]))


def test_progress_of_reindexing_is_from_before_the_documents(tmp_path: Path, store: FileConfigStore) -> None:
    """What a later place of the progress would skip may not be indexed again in what is backed up."""
    before = store.get("reindexing/a")
    assert before is not None
    content = Content([lambda: store.compare_and_set("reindexing/a", b"2", before.revision)])
    found = opened(tmp_path, store, content)
    assert content.calls == 1
    assert found["config/keys/reindexing%a"].endswith(b"1")


def test_files_that_go_with_a_deployment_have_it_done_again(tmp_path: Path, store: FileConfigStore) -> None:
    def delete() -> None:
        store.delete("active/a")
        raise FileNotFoundError("content/a/b/log")

    content = Content([delete])
    assert "config/keys/active%a" not in {
        name for name, value in opened(tmp_path, store, content).items() if value.endswith(b"1")
    }
    assert content.calls == 2


def test_files_that_are_missing_otherwise_are_an_error(tmp_path: Path, store: FileConfigStore) -> None:
    def fail() -> None:
        raise FileNotFoundError("content/a/b/log")

    with pytest.raises(FileNotFoundError):
        opened(tmp_path, store, Content([fail]))
