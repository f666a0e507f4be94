"""The command `paperwasp`: a file for each of its commands, and `options`, which they share.

Modules are imported by the command that needs them: the service is ready sooner, and `--help` is there at once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Final, NoReturn

import typer

from paperwasp.cli.backup import backup
from paperwasp.cli.check import check
from paperwasp.cli.deploy import deploy
from paperwasp.cli.doctor import doctor
from paperwasp.cli.evaluate import evaluate
from paperwasp.cli.features import features
from paperwasp.cli.feed import feed
from paperwasp.cli.help import Command
from paperwasp.cli.init import init
from paperwasp.cli.key import key
from paperwasp.cli.models import models
from paperwasp.cli.query import query
from paperwasp.cli.restore import restore
from paperwasp.cli.run import run
from paperwasp.cli.serve import serve
from paperwasp.cli.status import status
from paperwasp.cli.test import test
from paperwasp.cli.visit import visit
from paperwasp.errors import Corruption, PaperwaspError
from paperwasp.patterns import compile_later
from paperwasp.version import VERSION, VESPA_VERSION

app: Final = typer.Typer(
    help="A search and document service that speaks Vespa's interfaces.\n\n"
    "Start it with [bold]paperwasp serve[/bold] and an application package, then use this command, the Vespa CLI, "
    "pyvespa or curl.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_INTERRUPTED: Final = 130
_GOES_ON: Final = compile_later(r"(?<![.:])\n")
_COMMANDS: Final = (
    *(init, serve, check, deploy, feed, query, visit, status),
    *(test, run, evaluate, features),
    *(doctor, backup, restore),
)


def help_of(command: Callable[..., None]) -> str:
    """The docstring, whose sentences go on over the ends of its lines, so that the terminal breaks them. Lines that end
    a sentence, and examples, stay lines."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else _GOES_ON.sub(" ", text) for text in paragraphs)


for _command in _COMMANDS:
    app.command(cls=Command, help=help_of(_command))(_command)
app.add_typer(key, name="key")
app.add_typer(models, name="models")


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
