"""What is put while a generation is staged: kept whole, whether it is chosen, given up, or cut off by a crash.

An application changes step by step (`server.roles.applications`) while its container goes on taking documents. A model
says what each document must have: all that was acknowledged. Only of fields that a chosen generation has removed or
given another type it says nothing, until they are written again: some old values fit the new type, others do not. A
crash ends the process without a checkpoint; the next start serves what was chosen last.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.configserver import Activation, ApplicationId
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.http.messages import Request
from paperwasp.server.process import open_file_log
from paperwasp.server.roles.applications import Applications
from paperwasp.server.roles.containers import Containers
from paperwasp.server.roles.content_clusters import ContentClusters
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


def model_of(fields: Fields, *more: str) -> ApplicationModel:
    """An application with such documents of type music, and of further types without fields."""
    declared = "".join(f"field {name} type {kind} {{ indexing: {how} }} " for name, (kind, how) in fields.items())
    types = "".join(f'<document type="{name}" mode="index"/>' for name in ("music", *more))
    files = {
        "services.xml": '<services version="1.0"><container id="default" version="1.0"><search/><document-api/>'
        f'</container><content id="records" version="1.0"><redundancy>1</redundancy><documents>{types}</documents>'
        '<nodes><node hostalias="n" distribution-key="0"/></nodes></content></services>',
        "schemas/music.sd": f"schema music {{ document music {{ {declared} }} }}",
        **{f"schemas/{name}.sd": f"schema {name} {{ document {name} {{}} }}" for name in more},
    }
    return build(ApplicationPackage({path: text.encode() for path, text in files.items()}), DEFAULT)


class SwapFailed(Exception):
    """The containers could not change."""


class Process:
    """The roles of a process, without sockets, and what its documents must have."""

    def __init__(self, directory: Path, fields: Fields) -> None:
        self._directory = directory
        self._runner = asyncio.Runner()
        self.expected: dict[str, dict[str, Any]] = {}
        self.unknown: dict[str, set[str]] = {}
        """By document, the fields of which nothing is expected."""
        self.chosen = Activation(1, DEFAULT, model_of(fields))
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
def process(directory: Path, fields: Fields) -> Iterator[Process]:
    running = Process(directory, fields)
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


def test_a_change_that_fails_at_the_swap_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with process(tmp_path, OLD) as running:
        running.put("before", WHOLE)
        activation = running.next(NEW)
        fail_to_swap(running, activation, monkeypatch)
        running.check()
        running.put("after", WHOLE)
        running.check()
        running.applications.commit(running.applications.stage(activation))
        running.choose(activation, NEW)
        running.check()


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


def test_random_changes_and_crashes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")  # noqa: T201
    chance = random.Random(SEED)

    def random_fields() -> Fields:
        kinds = {name: chance.choice(tuple(VALUES)) for name in NAMES if chance.random() < 0.7}
        return {name: (kind, chance.choice(INDEXING[kind])) for name, kind in kinds.items()}

    def feed() -> None:
        for _ in range(chance.randrange(4)):
            document = str(chance.randrange(DOCUMENTS))
            fields = {
                name: chance.choice(VALUES[kind]) for name, (kind, _) in running.fields.items() if chance.random() < 0.8
            }
            chance.choice((running.put, running.assign))(document, fields)

    with process(tmp_path, random_fields()) as running:
        for _ in range(ROUNDS):
            feed()
            fields = random_fields()
            activation = running.next(fields)
            match chance.choice(
                ("given up", "chosen", "chosen", "swap fails", "crash", "crash once chosen", "restart")
            ):
                case "swap fails":
                    fail_to_swap(running, activation, monkeypatch)
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
