"""The commands `backup` and `restore`: all that a service has, written to a folder or an archive, verified, and put
back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paperwasp.cli.options import CONFIG, DEFAULT_DATA, Ca, Certificate, ConfigUrl, PrivateKey, Token, make_access


def backup(
    destination: Annotated[
        Path, typer.Argument(help="A new folder, or a new archive whose name ends with .tar or .tar.zst.")
    ],
    config_url: ConfigUrl = CONFIG,
    data_dir: Annotated[
        Path | None, typer.Option(help="Back up this data directory, which no service uses, instead of a service.")
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(metavar="BACKUP", help="An earlier backup, a folder: files that are the same are linked."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Write nothing: read the backup DESTINATION, and check all of it.")
    ] = False,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
) -> None:
    """Back up everything: applications, documents, ports, keys.

    A running service is asked over its config port, and goes on serving and taking documents meanwhile.
    Every operation that was answered before the command began is in the backup.

        paperwasp backup /backups/monday
        paperwasp backup /backups/tuesday --since /backups/monday
        paperwasp backup /backups/music.tar.zst
        paperwasp backup /backups/stopped --data-dir paperwasp-data
        paperwasp backup --verify /backups/monday

    A backup has its name only when it is whole. [bold]paperwasp restore[/bold] puts it back.
    """
    from paperwasp.client.backup import Backup, back_up_files, back_up_service, describe
    from paperwasp.client.backup import verify as verify_all

    if verify:
        typer.echo(f"{destination} is whole: {describe(verify_all(destination))}")
        return
    wanted = Backup(destination, since)
    if data_dir is None:
        manifest = back_up_service(wanted, config_url, make_access(token, certificate, private_key, ca))
    else:
        from paperwasp.server.roles.backup_files import open_stopped
        from paperwasp.server.roles.data_directory import existing_data_directory

        with existing_data_directory(data_dir) as data:
            manifest = back_up_files(wanted, open_stopped(data))
    typer.echo(f"Backed up to {destination}: {describe(manifest)}")


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
