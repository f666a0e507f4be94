"""The commands about application packages: `check` says what is wrong with one, `deploy` sends it to a service, and
`status` says whether that is up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import (
    CONFIG,
    CONTAINER,
    AllowPython,
    Ca,
    Certificate,
    ConfigUrl,
    ContainerUrl,
    Headers,
    PrivateKey,
    Token,
    make_access,
)


def check(
    application: Annotated[Path, typer.Argument(help="A folder with services.xml, or its zip.")],
    expression: Annotated[str | None, typer.Argument(help="A ranking expression, with --rank.")] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="ACTIVE", help="Another package: what does changing from it to this need?"),
    ] = None,
    allow_python_components: AllowPython = False,
    rank: Annotated[
        bool, typer.Option("--rank", help="Check one ranking EXPRESSION over the package: its type, what it reads.")
    ] = False,
    profile: Annotated[str, typer.Option("--profile", help="The rank profile that --rank is over.")] = "default",
    schema: Annotated[str, typer.Option("--schema", help="The one schema that --rank is over; else all.")] = "",
) -> None:
    """Check an application package without a service, as a compiler does.

    Every problem is shown with file, line, column and a caret below the place:

        schemas/music.sd:4:9: error: unknown type 'strin'; did you mean 'string'?

    [bold]error[/bold]: the package cannot be deployed.
    [bold]warning[/bold]: something of it is not executed yet.
    [bold]note[/bold]: something of it has no effect here.

    With [bold]--against[/bold] it also says what is due where ACTIVE is running:
    restart, reindex, feed again, or allow it in validation-overrides.xml.
    No documents are needed, and none are touched.

    With [bold]--rank[/bold] it is about one expression, as a query may bring it:

        paperwasp check --rank my-application 'bm25(title) * attribute(sold)' --profile p

    shows its type, the features and inputs that it reads, the phases that it may stand in, and what is wrong.

    The exit status is 1 if there is an error or a change that is not allowed.
    """
    if rank != (expression is not None):
        raise typer.BadParameter("an expression goes with --rank, and --rank with an expression")
    if expression is not None:
        from paperwasp.authoring.check import check_expression
        from paperwasp.search.features.compile import typed_expression

        if not check_expression(application, expression, typed_expression, profile, schema):
            raise typer.Exit(1)
        return
    from paperwasp.authoring.check import check_application
    from paperwasp.server.schema_check import check_schema

    if not check_application(application, check_schema, against, allow_python=allow_python_components):
        raise typer.Exit(1)


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
