"""The command `visit`: writes the documents of a service to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONTAINER, Ca, Certificate, ContainerUrl, Headers, PrivateKey, Token, make_access


def visit(
    url: ContainerUrl = CONTAINER,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A file; .jsonl, .csv, .tsv or .parquet; - writes JSON lines."),
    ] = Path("-"),
    selection: Annotated[
        str | None, typer.Option("--selection", "-s", help="Only documents for which it holds: 'book.year > 1990'.")
    ] = None,
    schema: Annotated[str | None, typer.Option("--schema", "--type", help="Only documents of this type.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Of this content cluster; else of all.")] = None,
    field_set: Annotated[
        str | None, typer.Option(help="The fields that are written: 'book:title,year', '[id]', '[all]'.")
    ] = None,
    slices: Annotated[int, typer.Option(help="Parts that are read at the same time.", min=1, max=1024)] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds for one request; 0: the service's.")] = 0,
    continue_from: Annotated[
        Path | None, typer.Option(help="Go on where a visit was interrupted: the file that it left beside its output.")
    ] = None,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
    header: Headers = None,
) -> None:
    """Write all documents, or a selection of them, to a file that `paperwasp feed` reads.

    [bold]paperwasp visit -o all.jsonl[/bold], or [bold]-o books.parquet --schema book --slices 4[/bold].
    """
    from paperwasp.client.visiting.parts import VisitOptions
    from paperwasp.client.visiting.run import VisitOutput, visit

    access = make_access(token, certificate, private_key, ca, header)
    options = VisitOptions(url, access, cluster, schema, selection, field_set, slices, timeout or None)
    count = visit(options, VisitOutput(output, continue_from))
    typer.echo(f"{count} documents visited", err=True)
