"""The command `deploy`: sends an application package to a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONFIG, ConfigUrl


def deploy(
    application: Annotated[Path, typer.Argument(help="A folder with services.xml, or its zip.")],
    config_url: ConfigUrl = CONFIG,
) -> None:
    """Deploy an application package to a running service."""
    from paperwasp.client.deploy import deploy_package

    for line in deploy_package(config_url, application):
        typer.echo(line)
