"""The descriptions beside the code: files, paths, parameters, and how they are served."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from openapi_spec_validator import validate

from paperwasp.configserver import ConfigServerApp
from paperwasp.container.app import ContainerApp
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.document.visit_parameters import Parameters
from paperwasp.container.search.parameters import PARAMETERS, read_parameters, set_parameter
from paperwasp.container.search.settings import SearchParameters
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.errors import PaperwaspError
from paperwasp.http.description import FOLDER, PATH
from paperwasp.http.messages import Request, Response
from paperwasp.http.routing import Router
from tests.configserver import test_deploy_scripts as deploy_scripts
from tests.configserver.deploy_fixtures import Service, ask, config_app, config_server
from tests.container.document.clusters import cluster, running
from tests.exchanges import whole
from tools.openapi.described import described
from tools.openapi.description import descriptions, written

PORTS = pytest.mark.parametrize("port", ["container", "configserver"])
NOT_OF_THE_ROUTER = ("/document/v1/", "/search/", "/model-evaluation/v1")
FORMATS = ("presentation.format", "format", "template")
SAMPLES = {"number": "7", "documentType": "music"}


@PORTS
def test_the_file_is_what_the_tool_makes(port: str) -> None:
    """`python -m tools.openapi` writes it."""
    assert (FOLDER / f"{port}.json").read_bytes() == written(descriptions()[port])


@PORTS
def test_it_is_openapi(port: str) -> None:
    validate(described(port).content)


@PORTS
def test_every_operation_has_an_id_of_its_own_and_says_what_it_does(port: str) -> None:
    operations = [operation for *_, operation in described(port).operations()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids)) > 15
    assert all(operation["summary"].endswith(".") and "200" in operation["responses"] for operation in operations)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfigServerApp]:
    service = Service()
    app = config_app(config_server(tmp_path_factory.mktemp("config"), service), service)
    yield app
    app.close()


def bound(router: Router) -> set[tuple[str, str]]:
    """(path, method) of all routes but those that answer 404 to the rest of a path."""
    routes = [route for route in router._routes if route.handler.__name__ != "unknown"]
    return {(plain(f"/{'/'.join(route.segments)}"), route.method) for route in routes}


def plain(path: str) -> str:
    """A path without its last slash, which makes no difference but for the content of packages."""
    path = path.replace("...}", "}")
    return path if path.endswith("/content/") else path.removesuffix("/") or "/"


def test_every_route_of_the_config_server_is_described_and_no_other(config: ConfigServerApp) -> None:
    found = {(plain(path), method) for path, method, _ in described("configserver").operations()}
    listings = {(path, method) for path, method in found if path.endswith("/content/")}
    assert found - listings == bound(config._router)
    assert len(listings) == 2, "what is at {path...}, where that is empty"


def test_every_route_of_a_container_is_described_and_no_other() -> None:
    app = ContainerApp(EmbeddedMessenger())
    found = {
        (plain(path), method)
        for path, method, _ in described("container").operations()
        if not path.startswith(NOT_OF_THE_ROUTER)
    }
    assert found == bound(app._router)


def test_the_methods_of_documents() -> None:
    """Those that the path itself lists."""
    api = DocumentApi(EmbeddedMessenger())
    methods: dict[str, set[str]] = defaultdict(set)
    for path, method, _ in described("container").operations():
        if path.startswith("/document/v1/"):
            methods[path].add(method)
    for path, found in methods.items():
        raw_path = re.sub(r"\{(\w+)\}", lambda match: SAMPLES.get(match[1], "x"), path)
        answer = whole(asyncio.run(api.handle(Request("OPTIONS", raw_path))))
        assert (answer.status, set(answer.headers["Allow"].split(","))) == (204, found), path
    assert len(methods) == 7


def test_every_parameter_of_a_search_is_described_and_no_other() -> None:
    found = [each["name"] for each in described("container").parameters("/search/", "GET")]
    assert found == [*(name for names, *_ in PARAMETERS for name in names), "more"]


def search_rows() -> list[tuple[str, dict[str, Any]]]:
    listed = described("container").parameters("/search/", "GET")
    return [(each["name"], each["schema"]) for each in listed if each["schema"].get("type") != "object"]


def inside(schema: dict[str, Any]) -> Iterator[str]:
    """Values that a schema allows: the bounds, each word, the default."""
    kind = schema.get("type")
    if "const" in schema:
        yield str(schema["const"]).lower()
    elif kind == "boolean":
        yield from ("true", "false")
    elif "enum" in schema:
        yield from schema["enum"]
    elif kind in ("integer", "number"):
        low = schema.get("minimum", -1000)
        yield from map(str, (low, schema.get("maximum", low + 1000), schema.get("default", low)))
    yield from (str(schema[name]) for name in ("default",) if name in schema and kind == "string")
    yield from schema.get("examples", ())


def outside(schema: dict[str, Any]) -> Iterator[str]:
    """Values that a schema does not allow."""
    if "enum" in schema:
        yield "no such word"
    elif schema.get("type") in ("integer", "number"):
        yield "x"
        yield from (str(schema["minimum"] - 1) for _ in range("minimum" in schema))
        yield from (str(schema["maximum"] + 1) for _ in range("maximum" in schema))
        yield from ("0.5" for _ in range(schema["type"] == "integer"))


def set_alone(name: str, value: str) -> None:
    set_parameter(SearchParameters(), name, value)
    if name in FORMATS:  # which are looked for once it is known which one is used
        read_parameters([(name, value)])


@pytest.mark.parametrize(("name", "schema"), search_rows(), ids=[name for name, _ in search_rows()])
def test_the_values_of_a_search_are_those_that_are_described(name: str, schema: dict[str, Any]) -> None:
    """Levels beyond the last mean the last, and how many hits there may be is for the query profile to say."""
    for value in inside(schema):
        set_alone(name, value)
    if ("evel" in name and "rules" not in name) or name in ("hits", "count", "offset", "start"):
        schema = {key: value for key, value in schema.items() if key not in ("minimum", "maximum")}
    for value in outside(schema):
        with pytest.raises(PaperwaspError):
            set_alone(name, value)


class Noting(dict[str, str]):
    """Parameters that note which names are asked for."""

    def __init__(self, given: dict[str, str], asked: set[str]) -> None:
        super().__init__(given)
        self._asked = asked

    def get(self, name: str, default: Any = None) -> Any:
        self._asked.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self._asked.add(str(name))
        return super().__contains__(name)


METRICS = ("/state/v1/metrics", "/metrics/v1/values", "/metrics/v2/values", "/prometheus/v1/values")


def test_the_parameters_of_deployments_are_those_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: ConfigServerApp
) -> None:
    """Read by the golden scripts of the config server, which ask for everything but metrics: these change."""
    read: dict[tuple[str, str], set[str]] = defaultdict(set)
    description, original = described("configserver"), Request.parameters

    def noting(request: Request) -> Noting:
        path = description.path_of(request.raw_path)
        return Noting(original(request), read[path or "", request.method])

    monkeypatch.setattr(Request, "parameters", noting)
    for script in sorted(deploy_scripts.SCRIPTS.glob("*.txt")):
        deploy_scripts.test_script(script, tmp_path / script.stem)
    for path in METRICS:
        assert ask(config, Request("GET", path)).status == 200
    described_names: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path, method, _ in description.operations():
        listed = description.parameters(path, method)
        described_names[together(path), method] |= {each["name"] for each in listed if each["in"] == "query"}
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (path, method), asked in read.items():
        names[together(path), method] |= asked
    for key, found in described_names.items():
        assert found - {"debug"} == names[key] - {"debug"}, key


def together(path: str) -> str:
    """Folders and files of a package are one handler."""
    return path.partition("/content")[0] + "/content" * ("/content" in path)


VISITS = {
    "GET": ("/document/v1/ns/music/docid/", "?slices=2&sliceId=1", b""),
    "PUT": ("/document/v1/ns/music/docid/", "?cluster=a&selection=true", b'{"fields":{}}'),
    "DELETE": ("/document/v1/ns/music/docid/", "?cluster=a&selection=true", b""),
    "POST": ("/document/v1/ns/music/docid/", "?cluster=a&selection=true&destinationCluster=b", b""),
}


@pytest.mark.parametrize("method", VISITS)
def test_the_parameters_of_many_documents_are_those_that_are_read(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[str] = set()
    text = Parameters.text

    def noting(parameters: Parameters, name: str) -> str | None:
        read.add(name)
        return text(parameters, name)

    monkeypatch.setattr(Parameters, "text", noting)
    path, query, body = VISITS[method]
    with running(tmp_path, cluster("a", "music"), cluster("b", "music")) as service:
        answer = asyncio.run(
            service.send(method, path + query + ("&cluster=a" if method == "GET" else ""), body.decode())
        )
        assert answer.status == 200, answer.body
    listed = described("container").parameters("/document/v1/{namespace}/{documentType}/docid/", method)
    assert {each["name"] for each in listed if each["in"] == "query"} == read


@PORTS
def test_it_is_served(port: str, config: ConfigServerApp) -> None:
    app = ContainerApp(EmbeddedMessenger())
    answer = (
        ask(config, Request("GET", PATH)) if port == "configserver" else asyncio.run(app.handle(Request("GET", PATH)))
    )
    assert isinstance(answer, Response)
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert orjson.loads(answer.body) == described(port).content
