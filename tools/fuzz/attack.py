"""Sends requests one after the other, and says what is wrong with the answers."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from paperwasp.http.messages import Response
from tools.fuzz.client import Draft, NoAnswer
from tools.fuzz.drafts import Drafts
from tools.fuzz.seeds import Seed
from tools.fuzz.target import Target
from tools.openapi.described import described

ANSWER_SECONDS: Final = 30.0
"""How long any answer may take. A query has two seconds, a step of a deployment is shorter than that."""
_BY_DESIGN: Final = {
    503: (b"No application is active yet", b"No backends in service", b"HTTP_BODIES"),
    504: (b"Timeout", b"Timed out", b"imeout", b"took more than"),
    507: (b"",),
}
"""Statuses of 5xx that may be → what is in their bodies."""
SHOWN: Final = 600
"""Characters of a line for curl that are printed; the whole line is in a file."""
_DELETIONS: Final = ("removeApplication", "removeApplicationOfDefault", "deploy", "activate")
"""What may take an application away, or put another in its place."""
_LOOKED_AT: Final = 200
"""So often it is looked whether the applications are still there."""
_CHANGED: Final = 1000
"""So often another application is deployed in place of one."""
_FED: Final = 500


@dataclass
class Report:
    """What came of the requests."""

    seed: int
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """One of each kind."""
    kinds: Counter[str] = field(default_factory=Counter)
    """What is wrong, cut, → how often."""
    operations: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    """At each hundredth of the requests."""
    deployments: int = 0

    @property
    def requests(self) -> int:
        return self.statuses.total()

    def lines(self) -> list[str]:
        """The report as text."""
        codes = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        memory = self.memory_mib
        found = [
            f"seed {self.seed}: {self.requests} requests, {self.deployments} deployments between them; {codes}",
            f"memory in MiB: {memory[0]:.0f} at first, {max(memory):.0f} at most, {memory[-1]:.0f} at last",
            *(f"{seconds:.2f} s: {draft}" for seconds, draft in self.slowest[:5]),
            f"{self.kinds.total()} failures of {len(self.kinds)} kinds",
        ]
        return [*found, *self.failures]


class Attack:
    """One run against a service."""

    def __init__(self, target: Target, seeds: list[Seed], seed: int, folder: Path) -> None:
        """`folder`: for the bodies of requests that fail."""
        self._target = target
        self._seeds = seeds
        self._chance = random.Random(seed)
        self._drafts = Drafts(self._chance, seeds)
        self._folder = folder
        self._instances = ("default", "spare")
        self.report = Report(seed)

    def run(self, count: int, end: float = float("inf"), say: Callable[[str], None] | None = None) -> Report:
        """Sends so many requests, or fewer when the time is over, by the monotonic clock."""
        for instance in self._instances:
            self._target.deploy(instance, self._chance.choice(self._seeds))
        for number in range(count):
            if number % max(1, count // 50) == 0:
                self.report.memory_mib.append(self._target.memory_mib)
                if say is not None:
                    say(f"{number} requests, {self._target.state}, {self.report.kinds.total()} failures")
            self._change_between(number)
            self._send()
            if not self._target.is_running:
                self.report.failures.append(f"the service ended after {number} requests")
                break
            if time.monotonic() > end:
                break
        self.report.memory_mib.append(self._target.memory_mib)
        return self.report

    def _change_between(self, number: int) -> None:
        chance, target = self._chance, self._target
        if number and number % _LOOKED_AT == 0:
            self.report.deployments += target.restore()
        if number and number % _CHANGED == 0:
            target.deploy(chance.choice(self._instances), chance.choice(self._seeds))
            self.report.deployments += 1
        if number and number % _FED == 0:
            instance = chance.choice(self._instances)
            target.feed(instance, target.serving[instance], 20, chance)

    def _send(self) -> None:
        instance = self._chance.choice(self._instances)
        self._drafts.instance, self._drafts.seed = instance, self._target.serving[instance]
        draft = self._drafts.next()
        began = time.perf_counter()
        try:
            answer = self._target.connection(draft, instance).ask(draft, ANSWER_SECONDS)
        except NoAnswer as error:
            self.report.statuses[0] += 1
            self._fail(draft, instance, str(error))
            return
        seconds = time.perf_counter() - began
        self.report.statuses[answer.status] += 1
        self.report.operations[draft.operation] += 1
        self._note(seconds, draft)
        if problem := problem_of(draft, answer):
            self._fail(draft, instance, problem)
        if draft.operation == "createSession" and answer.status == 200:
            self._drafts.session += 1
        if draft.operation in _DELETIONS and answer.status == 200:
            self.report.deployments += self._target.restore()

    def _note(self, seconds: float, draft: Draft) -> None:
        slowest = self.report.slowest
        if len(slowest) < 5 or seconds > slowest[-1][0]:
            slowest.append((seconds, f"{draft.operation}: {draft.method} {draft.target[:300]}"))
            slowest.sort(reverse=True)
            del slowest[5:]

    def _fail(self, draft: Draft, instance: str, problem: str) -> None:
        kind = f"{draft.operation}: {problem[:60]}"
        self.report.kinds[kind] += 1
        if self.report.kinds[kind] == 1:
            number = len(self.report.failures)
            curl = draft.curl(self._target.url(draft, instance), self._folder, number)
            (self._folder / f"request{number}.sh").write_text(f"{curl}\n")
            (self._folder / f"request{number}.txt").write_text(f"{problem}\n")
            served = self._target.serving[instance].name
            shown = f"{draft.operation}: {problem}\n    application {served}, request{number}.sh: {curl[:SHOWN]}"
            self.report.failures.append(shown)


def problem_of(draft: Draft, answer: Response) -> str:
    """What is wrong with an answer; empty: nothing."""
    if answer.status >= 500:
        known = _BY_DESIGN.get(answer.status, ())
        if draft.method == "HEAD" and known:
            return ""
        if not any(text in answer.body for text in known):
            return f"{answer.status} {answer.body[:400]!r}"
    if b'"message":"Failed: ' in answer.body:
        return f"{answer.status} {answer.body[-400:]!r}"
    if draft.method == "HEAD":
        return ""
    try:
        return described(draft.port).problem_of(draft.request(), answer)
    except ValueError as error:
        return f"{answer.status} the body cannot be read: {error}: {answer.body[:200]!r}"
