"""Vespa's test suites: files of JSON with requests and what their answers must have, run on a service.

`paperwasp test` runs all suites of an application, each on a service of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request as ExternalRequest
from urllib.request import urlopen

import orjson
from msgspec import Struct, field

from paperwasp.embedded.service import Service
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import Request, Response, decode_form
from paperwasp.testing.matching import difference

SYSTEM, SETUP, STAGING = "system-test", "staging-setup", "staging-test"
_PLACES: Final = ("tests", "src/test/application/tests")
"""Where suites are in an application: in a package, and in a Maven project."""
_MOST_UP: Final = 2
"""Levels above its folder at which a file that a test names may be."""
_SEARCH: Final = "/search/"
_OK: Final = 200
_SHOWN_CHARACTERS: Final = 60


class BrokenTest(InvalidInput):
    """A test that is not as it should be."""


class Step(Struct, frozen=True):
    """One request of a test, and what its answer must be."""

    name: str
    method: str
    uri: str
    """With all its parameters. Where it has a scheme, it is sent to its own host."""
    body: bytes
    cluster: str | None
    """The container cluster that is asked; None: the first one."""
    status: int = _OK
    template: Any = None
    """The content that the answer must have; None: whatever it is."""

    @property
    def is_external(self) -> bool:
        return not self.uri.startswith("/")


class SuiteTest(Struct, frozen=True):
    """One file of a suite."""

    name: str
    path: Path
    steps: tuple[Step, ...] = field(default=())


def find_suite(application: Path, name: str) -> Path | None:
    """The folder of an application's suite; None: it has none."""
    found = (application / place / name for place in _PLACES)
    return next((folder for folder in found if folder.is_dir()), None)


def read_suite(path: Path) -> list[SuiteTest]:
    """The tests of a folder by their names, or the one of a file. Errors: BrokenTest."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise BrokenTest(f"There is no test in '{path}': a test is a file whose name ends in .json")
    return [read_test(file) for file in files]


def read_test(path: Path) -> SuiteTest:
    """The test of a file. Errors: BrokenTest, naming file and step."""
    content = _load(path, path)
    if not isinstance(content, dict) or not isinstance(content.get("steps"), list) or not content["steps"]:
        raise BrokenTest(f"{path}: a test is an object with at least one step in the array 'steps'")
    reader = _Reader(path, content.get("defaults") or {})
    steps = tuple(reader.step(number, step) for number, step in enumerate(content["steps"], 1))
    return SuiteTest(_text(content, "name", str(path)) or path.name, path, steps)


class _Reader:
    """Reads the steps of one file."""

    def __init__(self, path: Path, defaults: Any) -> None:
        self._path = path
        if not isinstance(defaults, dict):
            raise BrokenTest(f"{path}, defaults: they are an object with a cluster and parameters")
        self._cluster = _text(defaults, "cluster", f"{path}, defaults") or None
        self._parameters = self._read_parameters(defaults.get("parameters"), "defaults")

    def step(self, number: int, step: Any) -> Step:
        where = f"step {number}"
        if not isinstance(step, dict):
            raise BrokenTest(f"{self._path}, {where}: a step is an object with a request")
        request, response = step.get("request") or {}, step.get("response") or {}
        if not isinstance(request, dict) or not isinstance(response, dict):
            raise BrokenTest(f"{self._path}, {where}: request and response are objects")
        place = f"{self._path}, {where}"
        body = self._resolved(request.get("body"), where)
        name = _text(step, "name", place)
        return Step(
            f"Step {number}: {name}" if name else f"Step {number}",
            _text(request, "method", place) or "GET",
            self._uri(request, where),
            b"" if body is None else orjson.dumps(body),
            _text(request, "cluster", place) or self._cluster,
            _code(response.get("code"), place),
            self._resolved(response.get("body"), where),
        )

    def _uri(self, request: Mapping[str, Any], where: str) -> str:
        """The address with all parameters: those of the address and of the request before the defaults."""
        path, _, query = (_text(request, "uri", f"{self._path}, {where}") or _SEARCH).partition("?")
        if not path.startswith(("/", "http://", "https://")):
            raise BrokenTest(f"{self._path}, {where}: a 'uri' is a path, or begins with http:// or https://: '{path}'")
        own = {**self._read_parameters(request.get("parameters"), where), **decode_form(query)}
        parameters = {**self._parameters, **own}
        return f"{path}?{urlencode(parameters)}" if parameters else path

    def _read_parameters(self, given: Any, where: str) -> dict[str, str]:
        found = self._resolved(given, where)
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise BrokenTest(f"{self._path}, {where}: parameters are an object whose values are all strings")
        return found

    def _resolved(self, given: Any, where: str) -> Any:
        """Return the value, or the content of the file that it names. Errors: BrokenTest."""
        if not isinstance(given, str):
            return given
        name = PurePosixPath(given)
        up = sum(part == ".." for part in name.parts)
        if name.is_absolute() or up > _MOST_UP or up != len(list(_leading_ups(name))):
            raise BrokenTest(f"{self._path}, {where}: '{given}' is not a file in the folders of the tests")
        return _load(self._path.parent / name, self._path, where)


def _text(found: Mapping[str, Any], name: str, place: str) -> str:
    """A member that is a text; empty where it is missing. Errors: BrokenTest."""
    value = found.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BrokenTest(f"{place}: '{name}' is a string, and here is {_shown(value)}")
    return value


def _code(value: Any, place: str) -> int:
    """A status that an answer is to have. Errors: BrokenTest."""
    if value is None:
        return _OK
    if not isinstance(value, int) or isinstance(value, bool) or not 100 <= value <= 599:
        raise BrokenTest(f"{place}: a 'code' is a number from 100 to 599, and here is {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()[:_SHOWN_CHARACTERS]


def _leading_ups(name: PurePosixPath) -> Iterator[str]:
    for part in name.parts:
        if part != "..":
            return
        yield part


def _load(path: Path, test: Path, where: str = "") -> Any:
    place = f"{test}, {where}" if where else str(test)
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise BrokenTest(f"{place}: could not read '{path}': {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        other = "" if path == test else f"'{path}' is "
        raise BrokenTest(f"{place}: {other}not JSON: {error}") from None


# Running the tests of a suite on a service.


_EXTERNAL_SECONDS: Final = 60.0
_HEADERS: Final = {"content-type": "application/json"}


class Failure(Struct, frozen=True):
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
    """Describe the difference of an answer, in short and in full."""
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


# All suites of an application, each on a service of its own: what `paperwasp test` does.


def run_suites(
    application: Path, named: Sequence[Path], upgrade_from: Path | None, report: Report, *, allow_python: bool = False
) -> bool:
    """Runs the named tests, or all suites of the application. False: some failed.

    Errors: BrokenTest; what is wrong with the application.
    """
    count = 0
    failures: list[Failure] = []
    for before, after in _stages(application, named):
        first = upgrade_from if before and upgrade_from is not None else application
        with Service(first, allow_python_components=allow_python) as service:
            failures += run_tests(service, before, report)
            if first is not application:
                service.deploy(application)
            failures += run_tests(service, after, report)
            count += len(before) + len(after)
    plural = "" if count == 1 else "s"
    if failures:
        report(f"\nFailure: {len(failures)} of {count} test{plural} failed:")
        report("\n".join(map(str, failures)))
    else:
        report(f"\nSuccess: {count} test{plural} OK")
    return not failures


def _stages(application: Path, named: Sequence[Path]) -> Iterator[tuple[list[SuiteTest], list[SuiteTest]]]:
    """Yield the tests that run on one service each: those before an upgrade, and those after it. All files are
    read first, so that a broken one is known before anything runs."""
    if named:
        yield [], [test for path in named for test in read_suite(path)]
        return
    if not application.exists():
        raise BrokenTest(f"There is no application '{application}'")
    found = {name: read_suite(folder) for name in (SYSTEM, SETUP, STAGING) if (folder := find_suite(application, name))}
    if not found:
        raise BrokenTest(f"'{application}' has no tests: they are files of JSON in tests/system-test/")
    if SYSTEM in found:
        yield [], found[SYSTEM]
    if SETUP in found or STAGING in found:
        yield found.get(SETUP, []), found.get(STAGING, [])
