"""The command `test`: runs the test suites of an application, without a service to start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from paperwasp.cli.options import AllowPython

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
    from paperwasp.testing.command import run_suites

    if not run_suites(application, tests or [], upgrade_from, typer.echo, allow_python=allow_python_components):
        raise typer.Exit(_FAILED)
