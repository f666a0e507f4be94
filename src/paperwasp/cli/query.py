"""The command `query`: searches, and shows what is found."""

from __future__ import annotations

from typing import Annotated

import typer

from paperwasp.cli.options import CONTAINER, ContainerUrl


def query(
    text: Annotated[str, typer.Argument(help="Words to search for, or YQL that begins with 'select'.")],
    parameters: Annotated[
        list[str] | None, typer.Argument(help="More parameters of the search API, e.g. ranking=title hits=3")
    ] = None,
    url: ContainerUrl = CONTAINER,
    hits: Annotated[int, typer.Option("--hits", "-n", help="How many hits to show.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="Show the answer as it came.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each hit ranks where it does.")] = False,
) -> None:
    """Search, and show the hits for reading, with the words that matched highlighted."""
    from paperwasp.client.query import EXPLAIN, show_query

    asked = [f"hits={hits}", *(EXPLAIN if explain else ()), *(parameters or [])]
    if not show_query(url, text, asked, raw=json):
        raise typer.Exit(1)
