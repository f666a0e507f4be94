"""The command `doctor`: says what is wrong with the machine, the data and the service, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import (
    CONFIG,
    CONTAINER,
    DEFAULT_DATA,
    Ca,
    Certificate,
    ConfigUrl,
    ContainerUrl,
    PrivateKey,
    Token,
    make_access,
)


def doctor(
    data_dir: Annotated[
        Path, typer.Option(help="The data directory to read; nothing in it is changed.")
    ] = DEFAULT_DATA,
    url: ContainerUrl = CONTAINER,
    config_url: ConfigUrl = CONFIG,
    json: Annotated[bool, typer.Option("--json", help="Show the report as JSON, for programs.")] = False,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
) -> None:
    """Look for what is wrong with the machine, the ports, the disk, the data directory and the running service.

    Each line is [bold]ok[/bold], a [bold]warning[/bold] or an [bold]error[/bold], and says what to do.
    All data is read and compared with its checksums, beside a running service or without one.

    The exit status is 0, 1 if there is a warning, 2 if there is an error.
    """
    import orjson
    from rich.console import Console

    from paperwasp.server.doctor.findings import worst
    from paperwasp.server.doctor.report import Examined, as_json, findings_of, show

    access = make_access(token, certificate, private_key, ca)
    findings = findings_of(Examined(data_dir, url, config_url, access), Console(stderr=True))
    if json:
        typer.echo(orjson.dumps(as_json(findings), option=orjson.OPT_INDENT_2).decode())
    else:
        show(findings, Console())
    raise typer.Exit(worst(findings))
