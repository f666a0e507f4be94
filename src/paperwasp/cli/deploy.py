"""The command `deploy`: sends an application package to a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONFIG, Ca, Certificate, ConfigUrl, Headers, PrivateKey, Token, make_access


def deploy(
    application: Annotated[Path, typer.Argument(help="A folder with services.xml, or its zip.")],
    config_url: ConfigUrl = CONFIG,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
    header: Headers = None,
) -> None:
    """Deploy an application package to a running service."""
    from paperwasp.client.deploy import deploy_package

    access = make_access(token, certificate, private_key, ca, header)
    for line in deploy_package(config_url, application, access):
        typer.echo(line)
