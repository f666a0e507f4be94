"""The command `paperwasp`: a file for its commands of one kind, and `options`, which they share.

Each is imported and described to typer when it is run, and imports what it needs then: typer takes a millisecond for
each command, so that the service is ready sooner, and `--help` of a command is there at once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from paperwasp.base.patterns import compile_later
from paperwasp.base.version import VERSION, VESPA_VERSION
from paperwasp.cli.options import Command
from paperwasp.errors import Corruption, PaperwaspError

_INTERRUPTED: Final = 130
_GOES_ON: Final = compile_later(r"(?<![.:])\n")
NAMES: Final = (
    *("init", "serve", "check", "deploy", "feed", "query", "visit", "status"),
    *("test", "run", "evaluate", "features"),
    *("doctor", "backup", "restore"),
    *("key", "models"),
)
"""The commands, in the order of the help. Each is defined under its name, in the module of that name or of another."""
_MODULES: Final = {
    "check": "deploy",
    "features": "evaluate",
    "restore": "backup",
    "status": "deploy",
    "test": "run",
    "visit": "feed",
}
"""The module of a command that shares another's."""


def help_of(command: Callable[..., None]) -> str:
    """The docstring, whose sentences go on over the ends of its lines, so that the terminal breaks them. Lines that end
    a sentence, and examples, stay lines."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else _GOES_ON.sub(" ", text) for text in paragraphs)


@cache
def command(name: str) -> Any:
    """One of `NAMES`, as typer runs it."""
    defined = getattr(import_module(f"paperwasp.cli.{_MODULES.get(name, name)}"), name)
    if not isinstance(defined, typer.Typer):
        alone = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, add_completion=False)
        alone.command(name, cls=Command, help=help_of(defined))(defined)
        defined = alone
    made = get_command(defined)
    made.name = name
    return made


class _Commands(Mapping[str, Any]):
    """All commands by their names; a command is made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        return command(name)

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class _Root(TyperGroup):
    """`paperwasp` itself."""

    def __init__(self, **described: Any) -> None:
        super().__init__(**described)
        self.commands = cast(Any, _Commands())


app: Final = typer.Typer(
    cls=_Root,
    help="A search and document service that speaks Vespa's interfaces.\n\n"
    "Start it with [bold]paperwasp serve[/bold] and an application package, then use this command, the Vespa CLI, "
    "pyvespa or curl.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The entry point: an error is printed in one line, without a trace."""
    try:
        app()
    except Corruption as error:
        _fail(f"{error.message}\nNothing was changed. {error.remedy}")
    except PaperwaspError as error:
        _fail(error.message)
    except OSError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _fail(message: str) -> NoReturn:
    typer.secho(f"Error: {message}", fg=typer.colors.RED, err=True)
    sys.exit(1)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"paperwasp {VERSION} (Vespa interfaces of {VESPA_VERSION})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
