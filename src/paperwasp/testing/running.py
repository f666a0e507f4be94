"""Running the tests of a suite on a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request as ExternalRequest
from urllib.request import urlopen

import orjson

from paperwasp.base.records import dataclass
from paperwasp.embedded.service import Service
from paperwasp.errors import NotFound
from paperwasp.http.messages import Request, Response
from paperwasp.testing.matching import difference
from paperwasp.testing.suites import BrokenTest, Step, SuiteTest

_EXTERNAL_SECONDS: Final = 60.0
_HEADERS: Final = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed: at which step, and what was wrong, in one line and in several."""

    test: str
    step: str
    passed: int
    """How many steps came before it."""
    summary: str
    details: str

    def __str__(self) -> str:
        return f"{self.test}: {self.step}: {self.summary}"


Report = Callable[[str], None]
"""Called with the name of each test before it, and then with what came of it."""


def run_tests(service: Service, tests: Sequence[SuiteTest], report: Report) -> list[Failure]:
    """Runs tests in their order. Errors: BrokenTest for what is not a test."""
    failures: list[Failure] = []
    for test in tests:
        failure = run_test(service, test)
        if failure is None:
            report(f"{test.name}: {'.' * len(test.steps)} OK")
        else:
            failures.append(failure)
            dots = "." * failure.passed + " " * bool(failure.passed)
            report(f"{test.name}: {dots}failed\n{failure.step}:\n{failure.details}")
    return failures


def run_test(service: Service, test: SuiteTest) -> Failure | None:
    """Runs the steps up to the first that fails; None: all is as it should be. Errors: BrokenTest."""
    for passed, step in enumerate(test.steps):
        status, body = _ask_other(step, test) if step.is_external else _ask(service, step, test)
        wrong = _wrong(step, status, body, test)
        if wrong is not None:
            summary, details = wrong
            asked = f"Requested: {step.method} at {step.uri}\nResponse:\n{_pretty(body)}"
            return Failure(test.name, step.name, passed, summary, f"{details}\n{asked}")
    return None


def _wrong(step: Step, status: int, body: bytes, test: SuiteTest) -> tuple[str, str] | None:
    """What is wrong with an answer, in short and in full."""
    if status != step.status:
        summary = "Unexpected status code"
        return f"{summary}: {status}", f"{summary}\nExpected: {step.status}\nActual:   {status}"
    if step.template is None:
        return None
    try:
        found = difference(step.template, orjson.loads(body))
    except orjson.JSONDecodeError:
        raise BrokenTest(f"{test.path}, {step.name}: the answer is not JSON: {_pretty(body)}") from None
    if found is None:
        return None
    lines = [found.message]
    if found.expected:
        lines.append(f"Expected: {found.expected}")
    if found.actual:
        lines.append(f"Actual:   {found.actual}")
    return f"{found.message}: {found.actual}" if found.actual else found.message, "\n".join(lines)


def _ask(service: Service, step: Step, test: SuiteTest) -> tuple[int, bytes]:
    path, _, query = step.uri.partition("?")
    try:
        response: Response = service.request(Request(step.method, path, query, _HEADERS, step.body), step.cluster)
    except NotFound as error:
        raise BrokenTest(f"{test.path}, {step.name}: {error.message}") from None
    return response.status, response.body


def _ask_other(step: Step, test: SuiteTest) -> tuple[int, bytes]:
    """Asks a service elsewhere, which the test names with its scheme and host."""
    try:
        request = ExternalRequest(step.uri, step.body or None, _HEADERS, method=step.method)
        with urlopen(request, timeout=_EXTERNAL_SECONDS) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()
    except (URLError, OSError, HTTPException, ValueError) as error:
        raise BrokenTest(f"{test.path}, {step.name}: no answer from {step.uri}: {error}") from None


def _pretty(body: bytes) -> str:
    try:
        return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")
