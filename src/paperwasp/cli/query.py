"""The command `query`: searches, and shows what is found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONTAINER, Ca, Certificate, ContainerUrl, Headers, PrivateKey, Token, make_access
from paperwasp.errors import InvalidInput


def search_parameters(incomplete: str) -> list[str]:
    """Complete another parameter in a shell: return the names that begin so."""
    from paperwasp.container.search.parameters import PARAMETERS

    names = (name for names, *_ in PARAMETERS for name in names)
    return sorted({f"{name}=" for name in names if name.lower().startswith(incomplete.lower())})


def query_formats(incomplete: str) -> list[str]:
    """Complete the value of `--format` in a shell."""
    from paperwasp.client.answers import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def query(
    text: Annotated[
        str | None,
        typer.Argument(help="Words to search for, or YQL that begins with 'select'; - reads it from standard input."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Argument(
            help="More parameters of the search API, e.g. ranking=title hits=3", autocompletion=search_parameters
        ),
    ] = None,
    url: ContainerUrl = CONTAINER,
    hits: Annotated[int | None, typer.Option("--hits", "-n", help="How many hits to show; 10 unless said.")] = None,
    format: Annotated[
        str,
        typer.Option(
            help="pretty, for reading; json, the answer as it came; table, csv or jsonl, of the hits, with all fields.",
            autocompletion=query_formats,
        ),
    ] = "pretty",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each hit ranks where it does.")] = False,
    file: Annotated[
        Path | None, typer.Option(help='A JSON file with parameters, e.g. {"yql": "…", "input.query(q)": [1, 2]}')
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds; 0: the service's.")] = 0,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
    header: Headers = None,
) -> None:
    """Search, and show the hits for reading, with the words that matched highlighted."""
    from paperwasp.client.answers import FORMATS
    from paperwasp.client.query import EXPLAIN, Question, parameters_of, read_body, show_query

    if format not in FORMATS:
        raise InvalidInput(f"--format: '{format}' is not one of {', '.join(FORMATS)}")
    given = list(parameters or ())
    if file is not None and text is not None and text != "-" and "=" in text:
        given, text = [text, *given], None  # with a file there need not be a query before the parameters
    if text is None and file is None:
        raise InvalidInput("Say what to search for, or give --file")
    if text == "-":
        text = sys.stdin.read().strip()
    shown = hits if hits is not None else 10 if file is None else None
    asked = [*([] if shown is None else [f"hits={shown}"]), *(EXPLAIN if explain else ()), *given]
    question = Question(parameters_of(text, asked), read_body(file) if file else None, timeout or None)
    access = make_access(token, certificate, private_key, ca, header)
    if not show_query(url, question, "json" if json else format, access):
        raise typer.Exit(1)
