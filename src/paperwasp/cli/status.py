"""The command `status`: says whether a service is up."""

from __future__ import annotations

import typer

from paperwasp.cli.options import (
    CONFIG,
    CONTAINER,
    Ca,
    Certificate,
    ConfigUrl,
    ContainerUrl,
    Headers,
    PrivateKey,
    Token,
    make_access,
)


def status(
    url: ContainerUrl = CONTAINER,
    config_url: ConfigUrl = CONFIG,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
    header: Headers = None,
) -> None:
    """Say whether the service is up and what it serves."""
    from paperwasp.client.deploy import status_lines

    up, lines = status_lines(url, config_url, make_access(token, certificate, private_key, ca, header))
    for line in lines:
        typer.echo(line)
    if not up:
        raise typer.Exit(1)
