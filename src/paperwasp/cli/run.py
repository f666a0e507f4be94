"""The commands `run` and `test`: another command, or the test suites of an application, beside a service that lasts as
long.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer

from paperwasp.cli.options import AllowPython, shown_places


def run(
    application: Annotated[Path, typer.Argument(help="The application: a folder with services.xml, or its zip.")],
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    feed: Annotated[list[Path] | None, typer.Option("--feed", metavar="FILE", help="Documents to feed before.")] = None,
    port: Annotated[int, typer.Option(help="For documents and queries; 0 takes a free one.")] = 0,
    config_port: Annotated[int, typer.Option(help="For deployments; 0 takes a free one.")] = 0,
    data_dir: Annotated[Path | None, typer.Option(help="Where documents are kept; by default nowhere.")] = None,
    allow_python_components: AllowPython = False,
) -> None:
    """Start a service, deploy an application, run a command, and end the service with it.

    The command finds the service by its environment: PAPERWASP_URL and PAPERWASP_CONFIG_URL, the same as VESPA_URL and
    VESPA_CONFIG_URL, are addresses (http://127.0.0.1:…), VESPA_PORT and VESPA_CONFIG_PORT the ports alone.

    Options stand before the --. The exit status is the command's.

        paperwasp run my-application -- mvn verify
        paperwasp run my-application --feed documents.jsonl -- npm test
    """
    from paperwasp.embedded.service import Service
    from paperwasp.testing.beside import run_beside

    with ExitStack() as service_lasts:
        with shown_places(application):
            service = service_lasts.enter_context(
                Service(
                    application,
                    data_dir,
                    port=port,
                    config_port=config_port,
                    allow_python_components=allow_python_components,
                )
            )
        status = run_beside(service, command, feed or [])
    raise typer.Exit(status)


_FAILED: Final = 3
"""The exit status of the Vespa CLI for tests that fail."""


def test(
    application: Annotated[Path, typer.Argument(help="A folder with services.xml, or a Maven project.")],
    tests: Annotated[
        list[Path] | None,
        typer.Argument(help="Suites or single tests: folders or files of JSON. Default: those of the application."),
    ] = None,
    upgrade_from: Annotated[
        Path | None,
        typer.Option("--from", metavar="OLD", help="The application before the upgrade that staging-test is about."),
    ] = None,
    allow_python_components: AllowPython = False,
) -> None:
    """Run the test suites of an application, as [bold]vespa test[/bold] does, on a service that lasts as long.

    It needs no service and no Docker: paperwasp starts in this process, deploys the application, and runs

        tests/system-test     on an empty application
        tests/staging-setup   on an empty application, the one of --from where that is given
        tests/staging-test    after it, once the application is deployed over it

    The exit status is 3 if a test failed.
    """
    from paperwasp.testing.suites import run_suites

    if not run_suites(application, tests or [], upgrade_from, typer.echo, allow_python=allow_python_components):
        raise typer.Exit(_FAILED)
