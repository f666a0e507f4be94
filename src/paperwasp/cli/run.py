"""The command `run`: runs another command beside a service that lasts as long."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import AllowPython
from paperwasp.cli.places import shown_places


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
