"""The command `feed`: sends documents to a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONTAINER, ContainerUrl


def feed(
    file: Annotated[Path, typer.Argument(help="JSON lines in Vespa's feed format; - reads standard input.")],
    url: ContainerUrl = CONTAINER,
    connections: Annotated[int, typer.Option(help="Connections, each with one document in flight.")] = 16,
) -> None:
    """Feed documents: lines of {"put": "id:ns:type::1", "fields": {…}}, or "update", or "remove"."""
    from paperwasp.client.feed import feed_file

    if not feed_file(url, file, connections):
        raise typer.Exit(1)
