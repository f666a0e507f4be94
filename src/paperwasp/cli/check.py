"""The command `check`: says what is wrong with an application package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import AllowPython


def check(
    application: Annotated[Path, typer.Argument(help="A folder with services.xml, or its zip.")],
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="ACTIVE", help="Another package: what does changing from it to this need?"),
    ] = None,
    allow_python_components: AllowPython = False,
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

    The exit status is 1 if there is an error or a change that is not allowed.
    """
    from paperwasp.client.check import check_application
    from paperwasp.service.schema_check import check_schema

    if not check_application(application, check_schema, against, allow_python=allow_python_components):
        raise typer.Exit(1)
