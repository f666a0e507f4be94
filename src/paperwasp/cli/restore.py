"""The command `restore`: puts a backup into a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import DEFAULT_DATA


def restore(
    backup: Annotated[Path, typer.Argument(help="What paperwasp backup has written: a folder or an archive.")],
    data_dir: Annotated[Path, typer.Option(help="The data directory. No service may use it.")] = DEFAULT_DATA,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of what the data directory holds, which is deleted.")
    ] = False,
) -> None:
    """Restore a backup into a data directory; then start [bold]paperwasp serve[/bold] on it.

    All of the backup is unpacked beside what is there, and verified, before anything is replaced.
    However the command ends, the data directory holds what it held before, or all of the backup.
    """
    from contextlib import closing

    from paperwasp.client.backup import describe
    from paperwasp.client.backup import restore as restore_all
    from paperwasp.server.roles.data_directory import DataDirectory
    from paperwasp.server.roles.data_version import check_version

    with closing(DataDirectory(data_dir)) as data:
        manifest = restore_all(backup, data.path, replace=replace, check=check_version)
    typer.echo(f"Restored into {data_dir}: {describe(manifest)}")
