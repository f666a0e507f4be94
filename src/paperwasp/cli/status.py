"""The command `status`: says whether a service is up."""

from __future__ import annotations

import typer

from paperwasp.cli.options import CONFIG, CONTAINER, ConfigUrl, ContainerUrl


def status(url: ContainerUrl = CONTAINER, config_url: ConfigUrl = CONFIG) -> None:
    """Say whether the service is up and what it serves."""
    from paperwasp.client.deploy import status_lines

    up, lines = status_lines(url, config_url)
    for line in lines:
        typer.echo(line)
    if not up:
        raise typer.Exit(1)
