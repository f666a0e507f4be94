"""The plugin of pytest: a service for the whole run, empty again for each test, and clients connected to it.

[tool.pytest.ini_options]
paperwasp_application = "src/main/application"

def test_search(paperwasp_service):
    paperwasp_service.feed([{"id": "1", "title": "Kind of Blue"}])
    assert paperwasp_service.query("blue").total == 1
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from paperwasp.embedded.packages import Application
    from paperwasp.embedded.service import Service

_GENERATION: Final = pytest.StashKey[int]()
"""That of the application as it was deployed for the run."""
_OPTION: Final = "paperwasp_application"
_TO_CONFIG_SERVER: Final = frozenset(("activate", "deploy", "fetch", "log", "prepare"))
"""Commands of the Vespa CLI that take the config server's address."""
_HELP: Final = "The application package of paperwasp's fixtures: a folder or zip, relative to the root of the tests."


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--paperwasp-application`, and the setting `paperwasp_application`."""
    parser.addini(_OPTION, _HELP)
    parser.getgroup("paperwasp").addoption("--paperwasp-application", metavar="PATH", help=_HELP)


@pytest.fixture(scope="session")
def paperwasp_application(pytestconfig: pytest.Config) -> Application:
    """The application package. Override it where it is made in Python: a path, files, or pyvespa's package."""
    named = pytestconfig.getoption("--paperwasp-application") or pytestconfig.getini(_OPTION)
    if not named:
        raise pytest.UsageError(
            "Which application? Set paperwasp_application in pytest's settings, give --paperwasp-application, or "
            "override the fixture paperwasp_application"
        )
    return pytestconfig.rootpath / str(named)


@pytest.fixture(scope="session")
def paperwasp_session(paperwasp_application: Application, pytestconfig: pytest.Config) -> Iterator[Service]:
    """The service of the whole run, with the application deployed, on free ports. Its documents are in memory where
    there is room, since a test that forgets all of them waits for little else than the disk."""
    from paperwasp.embedded.service import Service
    from paperwasp.embedded.temporary import TemporaryDirectory, memory_directory

    with (
        closing(TemporaryDirectory(memory_directory())) as directory,
        Service(paperwasp_application, directory.path, port=0) as service,
    ):
        pytestconfig.stash[_GENERATION] = service.generation
        yield service


@pytest.fixture
def paperwasp_service(
    paperwasp_session: Service, paperwasp_application: Application, pytestconfig: pytest.Config
) -> Service:
    """The service, without a document, and with the application as it was, however the test before has changed it."""
    if _generation(paperwasp_session) == pytestconfig.stash[_GENERATION]:
        paperwasp_session.clear()
    else:
        _deploy_again(paperwasp_session, paperwasp_application)
        pytestconfig.stash[_GENERATION] = paperwasp_session.generation
    return paperwasp_session


def _generation(service: Service) -> int | None:
    """That of the application; None: it is not there."""
    from paperwasp.errors import NotFound

    try:
        return service.generation
    except NotFound:
        return None


def _deploy_again(service: Service, application: Application) -> None:
    """Not over what is there: the way back may be a change that no deployment makes without an override."""
    if _generation(service) is not None:
        service.undeploy()
    service.deploy(application)


@pytest.fixture
def vespa_app(paperwasp_service: Service) -> Any:
    """pyvespa's `Vespa`, connected to the service."""
    application: Any = pytest.importorskip("vespa.application")
    return application.Vespa(url="http://localhost", port=paperwasp_service.port)


@pytest.fixture
def vespa_cli(
    paperwasp_service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the Vespa CLI on the service: `vespa_cli("query", "select * from music where true")`."""
    home = tmp_path_factory.mktemp("vespa-cli")

    def run(*arguments: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        target = paperwasp_service.config_url if arguments[0] in _TO_CONFIG_SERVER else paperwasp_service.url
        environment = {**os.environ, "VESPA_CLI_HOME": str(home), "VESPA_CLI_CACHE_DIR": str(home)}
        command = [_vespa(), *arguments, "--target", target]
        return subprocess.run(command, capture_output=True, text=True, check=check, env=environment, **options)

    return run


def _vespa() -> str:
    """The Vespa CLI beside the Python that runs, as pip has installed it, or on the path."""
    beside = Path(sys.executable).with_name("vespa")
    return str(beside) if beside.exists() else "vespa"


__all__ = ["paperwasp_application", "paperwasp_service", "paperwasp_session", "vespa_app", "vespa_cli"]
