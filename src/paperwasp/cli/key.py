"""The command `key`: makes, lists and revokes the bearer keys of a data directory, whether it is served or not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from paperwasp.base.patterns import compile_later
from paperwasp.cli.options import DEFAULT_DATA, Command, DataDirectoryPath
from paperwasp.errors import InvalidInput

key: Final = typer.Typer(
    help="Make, list and revoke the keys by which clients say who they are.\n\n"
    "A client sends its key with each request: [bold]Authorization: Bearer KEY[/bold]. Keys are needed where "
    "services.xml, or [bold]paperwasp serve --authenticate[/bold], says so. A running service sees changes at once.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_LIFETIME: Final = compile_later(r"([1-9][0-9]{0,5})([mhdw])")


@key.command(cls=Command)
def create(
    name: Annotated[str, typer.Argument(help="What it is for. Several keys of one name are versions of it.")],
    scopes: Annotated[
        str,
        typer.Option(
            help="What it allows: one or several of read (get, visit, query, evaluate models), write (put, "
            "update, remove) and deploy (the config server), separated by commas."
        ),
    ] = "read",
    expires_in: Annotated[
        str | None, typer.Option(help="When it expires: in 30d, 12h, 90m or 4w. Never, if not given.")
    ] = None,
    data_dir: DataDirectoryPath = DEFAULT_DATA,
) -> None:
    """Make a key and print it: once, as nothing but its hash is kept."""
    from paperwasp.admin.access import KeyFolder
    from paperwasp.server.roles.data_directory import keys_of

    wanted = [scope.strip() for scope in scopes.split(",")]
    made, token = KeyFolder(keys_of(data_dir)).create(name, wanted, _seconds(expires_in))
    expires = "never" if made.expires_seconds is None else _shown(made.expires_seconds)
    what = f"Key {made.id} '{name}' for {', '.join(sorted(made.scopes))}; expires: {expires}"
    typer.echo(f"{what}. Keep it, it is not shown again:", err=True)
    typer.echo(token)


@key.command("list", cls=Command)
def show(data_dir: DataDirectoryPath = DEFAULT_DATA) -> None:
    """List all keys, without their secrets."""
    from paperwasp.admin.access import KeyFolder
    from paperwasp.server.roles.data_directory import keys_of

    found = KeyFolder(keys_of(data_dir)).keys()
    now = datetime.now(UTC).timestamp()
    typer.echo(f"{'ID':<16}  {'NAME':<24}  {'SCOPES':<17}  {'CREATED':<20}  EXPIRES")
    for each in found:
        expires = "never" if each.expires_seconds is None else _shown(each.expires_seconds)
        expires += " (has expired)" if each.is_expired(now) else ""
        scopes = ",".join(sorted(each.scopes))
        typer.echo(f"{each.id:<16}  {each.name:<24}  {scopes:<17}  {_shown(each.created_seconds):<20}  {expires}")


@key.command(cls=Command)
def revoke(
    name_or_id: Annotated[str, typer.Argument(help="The id of a key, or a name: all keys of that name.")],
    data_dir: DataDirectoryPath = DEFAULT_DATA,
) -> None:
    """Revoke a key: the next request with it is refused, also on a connection that is open."""
    from paperwasp.admin.access import KeyFolder
    from paperwasp.server.roles.data_directory import keys_of

    for each in KeyFolder(keys_of(data_dir)).revoke(name_or_id):
        typer.echo(f"Revoked key {each.id} '{each.name}'")


def _seconds(lifetime: str | None) -> int | None:
    """Errors: InvalidInput."""
    if lifetime is None:
        return None
    found = _LIFETIME.fullmatch(lifetime)
    if found is None:
        raise InvalidInput(f"'{lifetime}' is no time like 30d, 12h, 90m or 4w")
    return int(found[1]) * _UNITS[found[2]]


def _shown(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
