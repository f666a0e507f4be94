"""What is put while a generation is staged: kept whole, whether it is chosen, given up, or cut off by a crash.

An application changes step by step (`server.roles.applications`) while its container goes on taking documents. A model
says what each document must have: all that was acknowledged. Only of fields that a chosen generation has removed or
given another type it says nothing, until they are written again: some old values fit the new type, others do not. A
crash ends the process without a checkpoint; the next start serves what was chosen last.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.configserver import Activation, ApplicationId
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.log.records import markers_of
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.coordination.operation_log import NewRecord
from paperwasp.http.listening import PortTaken
from paperwasp.http.messages import Request
from paperwasp.server.process import open_file_log
from paperwasp.server.roles.applications import Applications
from paperwasp.server.roles.containers import Containers
from paperwasp.server.roles.content_clusters import ContentClusters
from paperwasp.server.roles.listener import Listener
from tests.chance import SEED
from tests.configserver.deploy_fixtures import build
from tests.exchanges import whole

DEFAULT: Final = ApplicationId()
ROUNDS: Final = 60
NAMES: Final = ("a", "b", "c", "d")
DOCUMENTS: Final = 6
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "string": ("blue", "green trains", "red"),
    "int": (0, 7, -3),
    "array<string>": (["x"], ["x", "y"]),
}
INDEXING: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("summary", "summary | index", "summary | attribute", "summary | attribute | index"),
    "int": ("summary", "summary | attribute"),
    "array<string>": ("summary", "summary | attribute", "summary | index"),
}
Fields = dict[str, tuple[str, str]]
"""By name, the type and the indexing of a field."""


def model_of(fields: Fields, name: str = "music", port: int | None = None) -> ApplicationModel:
    """An application with such documents of that type, and a container at that port, or at any."""
    declared = "".join(f"field {name} type {kind} {{ indexing: {how} }} " for name, (kind, how) in fields.items())
    http = "" if port is None else f'<http><server id="s" port="{port}"/></http>'
    files = {
        "services.xml": '<services version="1.0"><container id="default" version="1.0"><search/><document-api/>'
        f'{http}</container><content id="records" version="1.0"><redundancy>1</redundancy><documents>'
        f'<document type="{name}" mode="index"/></documents><nodes><node hostalias="n" distribution-key="0"/></nodes>'
        "</content></services>",
        f"schemas/{name}.sd": f"schema {name} {{ document {name} {{ {declared} }} }}",
    }
    return build(ApplicationPackage({path: text.encode() for path, text in files.items()}), DEFAULT)


class SwapFailed(Exception):
    """The containers could not change."""


class Process:
    """The roles of a process, without sockets, and what its documents must have."""

    def __init__(self, directory: Path, fields: Fields, port: int | None = None) -> None:
        self._directory = directory
        self._runner = asyncio.Runner()
        self.expected: dict[str, dict[str, Any]] = {}
        self.unknown: dict[str, set[str]] = {}
        """By document, the fields of which nothing is expected."""
        self.chosen = Activation(1, DEFAULT, model_of(fields, port=port))
        self.fields = fields
        """Of the chosen generation."""
        self._open()

    def _open(self) -> None:
        messenger = EmbeddedMessenger()
        self.content = ContentClusters(self._directory, messenger, open_file_log)
        self.containers = Containers(messenger, None, 8080)
        self.applications = Applications(self.content, self.containers, "localhost")
        self.applications.commit(self.applications.stage(self.chosen))

    def next(self, fields: Fields) -> Activation:
        """A generation with these fields that nobody has chosen yet."""
        return Activation(self.chosen.generation + 1, DEFAULT, model_of(fields), self.chosen.generation)

    def choose(self, activation: Activation, fields: Fields) -> None:
        """From now on, nothing is known of fields that go or have another type."""
        self.chosen, before, self.fields = activation, self.fields, fields
        for name, (kind, _) in before.items():
            if name not in fields or fields[name][0] != kind:
                for document in self.expected:
                    self.forget(document, name)

    def forget(self, document: str, *names: str) -> None:
        for name in names:
            self.expected[document].pop(name, None)
            self.unknown[document].add(name)

    def crash(self) -> None:
        """Ends without a checkpoint, and starts again with what is chosen."""
        for cluster in list(self.content._running.values()):
            cluster.stop(checkpoint=False)
        self._open()

    def stop(self) -> None:
        self.content.stop()
        self._runner.close()

    def ask(self, method: str, document: str, fields: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        app = self.containers.app_of(str(DEFAULT))
        assert app is not None
        path, body = (
            f"/document/v1/ns/music/docid/{document}",
            b"" if fields is None else orjson.dumps({"fields": fields}),
        )
        answer = whole(self._runner.run(app.handle(Request(method, path, "", {}, body))))
        return answer.status, orjson.loads(answer.body)

    def put(self, document: str, fields: Mapping[str, Any]) -> None:
        assert self.ask("POST", document, fields)[0] == 200
        self.expected[document], self.unknown[document] = dict(fields), set()

    def assign(self, document: str, fields: Mapping[str, Any]) -> None:
        if document in self.expected:
            assert self.ask("PUT", document, {name: {"assign": value} for name, value in fields.items()})[0] == 200
            self.expected[document] |= fields
            self.unknown[document] -= fields.keys()

    def check(self) -> None:
        for document, fields in self.expected.items():
            status, answer = self.ask("GET", document)
            assert status == 200, f"seed {SEED}: {document}"
            known = {name: value for name, value in answer["fields"].items() if name not in self.unknown[document]}
            assert known == fields, f"seed {SEED}: {document}"


@contextmanager
def process(directory: Path, fields: Fields, port: int | None = None) -> Iterator[Process]:
    running = Process(directory, fields, port)
    try:
        yield running
    finally:
        running.stop()


OLD: Final[Fields] = {
    "kept": ("string", "summary | index"),
    "gone": ("string", "summary | attribute"),
    "other": ("int", "summary | attribute"),
}
NEW: Final[Fields] = {
    "kept": ("string", "summary | attribute"),
    "other": ("string", "summary | index"),
    "added": ("int", "summary"),
}
WHOLE: Final = {"kept": "blue", "gone": "green", "other": 7}


@pytest.mark.parametrize("crashes", [False, True])
def test_nothing_is_lost_that_is_put_before_a_generation_is_given_up(tmp_path: Path, crashes: bool) -> None:
    with process(tmp_path, OLD) as running:
        running.put("before", WHOLE)
        staged = running.applications.stage(running.next(NEW))
        running.put("meanwhile", WHOLE)
        running.assign("before", {"gone": "red", "other": 8})
        running.check()
        if crashes:
            running.crash()
        else:
            running.applications.abandon(staged)
        running.check()
        running.put("after", WHOLE)
        running.crash()
        running.check()


@pytest.mark.parametrize("step", ["staged", "chosen", "adopted", "swapped", "settled"])
def test_a_crash_at_each_step_of_a_change(tmp_path: Path, step: str) -> None:
    with process(tmp_path, OLD) as running:
        running.put("before", WHOLE)
        activation = running.next(NEW)
        name, model, clusters = str(DEFAULT), activation.model, activation.model.content_clusters
        containers = running.containers.stage(name, model)
        running.content.stage(name, activation.generation, clusters)
        running.put("staged", WHOLE)
        if step != "staged":
            running.choose(activation, NEW)
        if step in ("adopted", "swapped", "settled"):
            running.content.adopt(name, activation.generation, clusters)
            running.put("adopted", WHOLE)  # by the old container, as if it had come before
            running.forget("adopted", "gone", "other")
        if step in ("swapped", "settled"):
            running.containers.commit(containers, activation.generation, "default", model)
            running.put("swapped", {"kept": "blue", "other": "seven", "added": 1})
        if step == "settled":
            running.content.settle(name, activation.generation, clusters)
        running.crash()
        running.check()
        new_value = {"other": 1} if step == "staged" else {"other": "one"}
        running.put("afterwards", new_value)
        running.check()


def test_a_change_that_fails_at_the_swap_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its layout is logged once: neither a further try, nor a restart, nor what is given up goes back or logs one."""
    logged: list[int] = []

    def note_markers_of(layout: Layout) -> list[NewRecord]:
        logged.append(layout.generation)
        return markers_of(layout)

    monkeypatch.setattr("paperwasp.content.log.producer.markers_of", note_markers_of)
    with process(tmp_path, OLD) as running:
        running.put("before", WHOLE)
        activation = running.next(NEW)
        running.choose(activation, NEW)
        fail_to_swap(running, activation, monkeypatch)
        fail_to_swap(running, activation, monkeypatch)
        running.applications.abandon(running.applications.stage(running.next(OLD)))
        running.applications.restart(DEFAULT, None, "records", None)
        running.check()
        running.applications.commit(running.applications.stage(activation))
        assert logged == [1, 2]
        running.put("after", {"kept": "blue", "other": "seven", "added": 1})
        running.check()


@pytest.mark.parametrize("call", ["restart", "clear"])
def test_a_restart_waits_for_a_change_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    with process(tmp_path, OLD) as running:
        staged = running.applications.stage(running.next(NEW))
        order: list[str] = []
        asked = threading.Event()
        lock = threading.Lock()

        class ObservedLock:
            def __enter__(self) -> None:
                if threading.current_thread() is restarting:
                    asked.set()
                lock.acquire()

            def __exit__(self, *_: object) -> None:
                lock.release()

        def restart() -> None:
            if call == "restart":
                running.applications.restart(DEFAULT, None, None, "content")
            else:
                running.applications.clear(DEFAULT)

        def adopt(*arguments: Any) -> None:
            restarting.start()
            asked.wait()
            real(*arguments)
            order.append("adopted")

        restarting = threading.Thread(target=restart)
        real = running.content.adopt
        running.applications._locks[str(DEFAULT)] = ObservedLock()  # type: ignore[assignment]
        monkeypatch.setattr(running.content, "adopt", adopt)
        monkeypatch.setattr(running.content, call, lambda *_: order.append(call))
        running.applications.commit(staged)
        restarting.join()
        assert order == ["adopted", call]


def test_what_could_not_be_restored_keeps_its_documents_if_a_generation_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(tmp_path, OLD) as running:
        running.put("before", WHOLE)

        def take_port(*_: object) -> None:
            raise PortTaken("port 8080 is taken")

        with monkeypatch.context() as patched, pytest.raises(PortTaken):
            patched.setattr(Containers, "stage", take_port)
            running.crash()
        other = Activation(2, DEFAULT, model_of({}, name="other"), 1)
        running.applications.abandon(running.applications.stage(other))
        running.applications.commit(running.applications.stage(running.chosen))
        running.check()


def test_a_port_is_not_given_up_that_serves_although_the_change_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(tmp_path, OLD, port=9001) as running:
        closed: list[int] = []
        first = Activation(2, DEFAULT, model_of(NEW, port=9002), 1)

        def close(listener: Listener) -> None:
            closed.append(listener.port)
            if len(closed) == 1:
                raise OSError("the port does not end")

        monkeypatch.setattr(running.containers, "_close", close)
        running.choose(first, NEW)
        with pytest.raises(OSError, match="does not end"):
            running.applications.commit(running.applications.stage(first))
        assert closed == [9001]
        assert list(running.containers.serving().values()) == [(9002, 2)]
        running.put("after", {"kept": "blue", "other": "seven", "added": 1})
        running.applications.commit(running.applications.stage(first))
        assert closed == [9001, 9001]
        assert list(running.containers.serving().values()) == [(9002, 2)]
        running.check()


def test_clients_of_former_tls_connect_again_although_the_change_failed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Logs:
        """Access logs that cannot be opened at first."""

        is_full = True

        def log_of(self, *_: object) -> None:
            was_full, self.is_full = self.is_full, False
            if was_full:
                raise OSError("the disk is full")

        def keep(self, *_: object) -> None:
            pass

    with process(tmp_path, OLD) as running:
        settings = iter([True])
        reconnected: list[Listener] = []
        monkeypatch.setattr(Listener, "secure", lambda *_: next(settings, False))
        monkeypatch.setattr(running.containers, "_reconnect", reconnected.append)
        monkeypatch.setattr(running.containers, "_access_logs", Logs())
        activation = running.next(NEW)
        with pytest.raises(OSError, match="the disk is full"):
            running.applications.commit(running.applications.stage(activation))
        assert reconnected == []
        running.applications.commit(running.applications.stage(activation))
        assert len(reconnected) == 1


def test_a_cluster_in_a_fault_is_not_staged(tmp_path: Path) -> None:
    with process(tmp_path, OLD) as running:
        fault = running.content._running[str(DEFAULT), "records"]._node.fault
        fault.begin(OSError("the disk is gone"))
        with pytest.raises(Exception, match="the disk is gone"):
            running.applications.stage(running.next(NEW))
        fault.end()
        running.put("after", WHOLE)
        running.check()


def fail_to_swap(running: Process, activation: Activation, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SwapFailed

    staged = running.applications.stage(activation)
    with monkeypatch.context() as patched, suppress(SwapFailed):
        patched.setattr(running.containers, "commit", fail)
        running.applications.commit(staged)


def random_fields(chance: random.Random) -> Fields:
    kinds = {name: chance.choice(tuple(VALUES)) for name in NAMES if chance.random() < 0.7}
    return {name: (kind, chance.choice(INDEXING[kind])) for name, kind in kinds.items()}


def go_on(running: Process, chance: random.Random) -> None:
    """What comes after a chosen generation could not be served: at last that one, or a later one, is."""
    match chance.choice(("tried again", "crash", "restart", "given up", "fixed")):
        case "crash":
            running.crash()
        case "restart":
            running.applications.restart(DEFAULT, None, None, "content")
        case "given up":
            running.applications.abandon(running.applications.stage(running.next(random_fields(chance))))
        case "fixed":
            fields = random_fields(chance)
            running.choose(running.next(fields), fields)
    running.applications.commit(running.applications.stage(running.chosen))


def test_random_changes_and_crashes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")  # noqa: T201
    chance = random.Random(SEED)

    def feed() -> None:
        for _ in range(chance.randrange(4)):
            document = str(chance.randrange(DOCUMENTS))
            fields = {
                name: chance.choice(VALUES[kind]) for name, (kind, _) in running.fields.items() if chance.random() < 0.8
            }
            chance.choice((running.put, running.assign))(document, fields)

    with process(tmp_path, random_fields(chance)) as running:
        for _ in range(ROUNDS):
            feed()
            fields = random_fields(chance)
            activation = running.next(fields)
            match chance.choice(
                ("given up", "chosen", "chosen", "swap fails", "crash", "crash once chosen", "restart")
            ):
                case "swap fails":
                    running.choose(activation, fields)
                    fail_to_swap(running, activation, monkeypatch)
                    running.check()
                    go_on(running, chance)
                case fate:
                    staged = running.applications.stage(activation)
                    feed()
                    if fate == "restart":
                        running.content.restart(str(DEFAULT), "records")
                        feed()
                    if fate == "given up":
                        running.applications.abandon(staged)
                    if fate in ("chosen", "restart"):
                        running.applications.commit(staged)
                    if fate in ("chosen", "restart", "crash once chosen"):
                        running.choose(activation, fields)
                    if fate in ("crash", "crash once chosen"):
                        running.crash()
            running.check()
