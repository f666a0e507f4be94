"""Vespa's test suites: files of JSON with requests and what their answers must have.

Vespa: https://docs.vespa.ai/en/reference/applications/testing.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import decode_form

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


@dataclass(frozen=True, slots=True)
class Step:
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
    """What must be in the answer; None: whatever it is."""

    @property
    def is_external(self) -> bool:
        return not self.uri.startswith("/")


@dataclass(frozen=True, slots=True)
class SuiteTest:
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
        """What is given, or the content of the file that it names. Errors: BrokenTest."""
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
