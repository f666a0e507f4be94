"""What every config store does. A test module subclasses `ConfigStoreConformance` and says how to open one."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from paperwasp.coordination.config_store import ConfigStore, Entry
from paperwasp.errors import Conflict, InvalidInput


class ConfigStoreConformance:
    @pytest.fixture
    def reopen(self) -> Callable[[], ConfigStore]:
        """Opens the store again, as after a restart."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, reopen: Callable[[], ConfigStore]) -> ConfigStore:
        return reopen()

    def test_a_key_that_was_never_set_holds_nothing(self, store: ConfigStore) -> None:
        assert store.get("sessions/1/state") is None
        assert store.keys() == ()

    def test_create_then_get(self, store: ConfigStore) -> None:
        revision = store.create("a/b", b"\0value")
        assert store.get("a/b") == Entry(b"\0value", revision)
        assert store.get("a") is None

    def test_create_twice_is_a_conflict_and_changes_nothing(self, store: ConfigStore) -> None:
        revision = store.create("a", b"1")
        with pytest.raises(Conflict):
            store.create("a", b"2")
        assert store.get("a") == Entry(b"1", revision)

    def test_an_empty_value_is_a_value(self, store: ConfigStore) -> None:
        revision = store.create("a", b"")
        assert store.get("a") == Entry(b"", revision)

    def test_compare_and_set(self, store: ConfigStore) -> None:
        first = store.create("a", b"1")
        second = store.compare_and_set("a", b"2", first)
        assert second > first
        with pytest.raises(Conflict):
            store.compare_and_set("a", b"3", first)
        assert store.get("a") == Entry(b"2", second)

    def test_compare_and_set_of_nothing_is_a_conflict(self, store: ConfigStore) -> None:
        with pytest.raises(Conflict):
            store.compare_and_set("a", b"1", 0)
        revision = store.create("a", b"1")
        store.delete("a")
        with pytest.raises(Conflict):
            store.compare_and_set("a", b"1", revision)

    def test_delete(self, store: ConfigStore) -> None:
        store.create("a", b"1")
        store.delete("a")
        store.delete("a")
        store.delete("never")
        assert store.get("a") is None
        assert store.keys() == ()

    def test_no_revision_is_used_twice(self, reopen: Callable[[], ConfigStore]) -> None:
        revisions = []
        for _ in range(4):
            store = reopen()
            revisions.append(store.create("a", b"1"))
            revisions.append(store.compare_and_set("a", b"2", revisions[-1]))
            store.delete("a")
        assert revisions == sorted(set(revisions))

    def test_keys_are_sorted_and_filtered(self, store: ConfigStore) -> None:
        for key in ("b/2", "a/1", "b/10", "b"):
            store.create(key, b"")
        assert store.keys() == ("a/1", "b", "b/10", "b/2")
        assert store.keys("b/") == ("b/10", "b/2")

    @pytest.mark.parametrize(
        "key", ["", "/", "a/", "/a", "a//b", "..", "a/../b", ".hidden", "a b", "a\0", "å", "x" * 300]
    )
    def test_other_keys_are_refused(self, store: ConfigStore, key: str) -> None:
        for call in (store.get, store.delete, lambda k: store.create(k, b"")):
            with pytest.raises(InvalidInput):
                call(key)

    def test_everything_survives_a_restart(self, reopen: Callable[[], ConfigStore]) -> None:
        store = reopen()
        store.create("a", b"1")
        name = store.put_blob(b"blob")
        entry = store.get("a")
        again = reopen()
        assert again.get("a") == entry
        assert again.get_blob(name) == b"blob"

    def test_watchers_see_later_changes_under_their_prefix_in_order(self, store: ConfigStore) -> None:
        store.create("a/before", b"")
        seen: list[tuple[str, Entry | None]] = []
        stop = store.watch("a/", lambda key, entry: seen.append((key, entry)))
        first = store.create("a/1", b"x")
        store.create("b/1", b"y")
        second = store.compare_and_set("a/1", b"z", first)
        store.delete("a/1")
        stop()
        store.create("a/2", b"unseen")
        assert seen == [("a/1", Entry(b"x", first)), ("a/1", Entry(b"z", second)), ("a/1", None)]

    def test_a_watcher_may_change_the_store(self, store: ConfigStore) -> None:
        seen: list[str] = []

        def chain(key: str, entry: Entry | None) -> None:
            seen.append(key)
            if key == "a/1":
                store.create("a/2", b"")

        store.watch("a/", chain)
        store.create("a/1", b"")
        assert seen == ["a/1", "a/2"]

    def test_announcements_are_told_and_end_with_the_process(self, reopen: Callable[[], ConfigStore]) -> None:
        store = reopen()
        seen: list[tuple[str, Entry | None]] = []
        store.watch("a/", lambda key, entry: seen.append((key, entry)))
        store.announce("a/2", b"x")
        store.announce("a/1", b"y")
        store.announce("a/1", b"y")
        store.announce("b", b"z")
        assert store.announced("a/") == {"a/1": b"y", "a/2": b"x"}
        assert list(store.announced()) == ["a/1", "a/2", "b"]
        assert store.keys() == () and store.get("a/1") is None
        store.announce("a/1", None)
        store.announce("a/1", None)
        assert store.announced("a/") == {"a/2": b"x"}
        assert seen == [("a/2", Entry(b"x", 0)), ("a/1", Entry(b"y", 0)), ("a/1", None)]
        assert reopen().announced() == {}
        with pytest.raises(InvalidInput):
            store.announce("a//b", b"")

    def test_blobs_have_the_name_of_their_content(self, store: ConfigStore) -> None:
        name = store.put_blob(b"1")
        assert store.put_blob(b"1") == name
        assert store.put_blob(b"2") != name
        assert store.get_blob(name) == b"1"
        assert name in store.blobs() and len(store.blobs()) == 2
        store.delete_blob(name)
        store.delete_blob(name)
        assert store.get_blob(name) is None

    @pytest.mark.parametrize("name", ["", "../keys/a", "abc", "A" * 64])
    def test_other_blob_names_are_refused(self, store: ConfigStore, name: str) -> None:
        with pytest.raises(InvalidInput):
            store.get_blob(name)

    def test_only_one_of_many_threads_wins_each_revision(self, store: ConfigStore) -> None:
        store.create("counter", b"0")

        def add() -> None:
            done = 0
            while done < 10:
                entry = store.get("counter")
                assert entry is not None
                try:
                    store.compare_and_set("counter", b"%d" % (int(entry.value) + 1), entry.revision)
                except Conflict:
                    continue
                done += 1

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entry = store.get("counter")
        assert entry is not None and entry.value == b"40"
