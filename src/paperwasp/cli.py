"""The command `paperwasp`: serve, check, deploy, feed, query, status.

Modules are imported by the command that needs them: the service is ready sooner, and `--help` is there at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from paperwasp import limits
from paperwasp.daemon_threads import is_any_busy
from paperwasp.env import limit_arenas
from paperwasp.errors import Corruption, PaperwaspError
from paperwasp.version import VERSION, VESPA_VERSION

app: Final = typer.Typer(
    help="A search and document service that speaks Vespa's interfaces.\n\n"
    "Start it with [bold]paperwasp serve[/bold] and an application package, then use this command, the Vespa CLI, "
    "pyvespa or curl.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
_DEFAULT_DATA: Final = Path("paperwasp-data")
_INTERRUPTED: Final = 130
_MOST_PORT: Final = 65_535
_CONTAINER: Final = "http://127.0.0.1:8080"
_CONFIG: Final = "http://127.0.0.1:19071"

ContainerUrl = Annotated[str, typer.Option("--url", "-u", help="Where the container listens.", envvar="PAPERWASP_URL")]
ConfigUrl = Annotated[
    str, typer.Option("--config-url", help="Where the config server listens.", envvar="PAPERWASP_CONFIG_URL")
]
AllowPython = Annotated[
    bool,
    typer.Option(
        "--allow-python-components",
        help="Run components that are written in Python and come with an application: they may do whatever you may.",
    ),
]


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


@app.command()
def serve(
    application: Annotated[
        Path | None, typer.Argument(help="An application package to deploy: a folder with services.xml, or its zip.")
    ] = None,
    data_dir: Annotated[Path, typer.Option(help="Where documents and applications are kept.")] = _DEFAULT_DATA,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=_MOST_PORT, help="For documents and queries; 0 takes a free one.")
    ] = 8080,
    config_port: Annotated[
        int, typer.Option(min=0, max=_MOST_PORT, help="For deployments; 0 takes a free one.")
    ] = 19071,
    repair: Annotated[
        bool, typer.Option("--repair", help="Start in spite of a damaged operation log; what follows is put aside.")
    ] = False,
    allow_python_components: AllowPython = False,
) -> None:
    """Run the service in the foreground. Ctrl-C or SIGTERM stops it cleanly; a restart has everything back."""
    started = time.monotonic()
    if port == config_port != 0:
        raise typer.BadParameter(f"{port} is the port of both --port and --config-port")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger().handlers[0].setLevel(logging.WARNING)
    limit_arenas(limits.MEMORY_ARENAS)
    from paperwasp.app import Service, Settings, serve_until_signal

    def say_ready(service: Service) -> None:
        typer.echo(
            f"Ready in {time.monotonic() - started:.2f} s: documents and queries on "
            f"http://{host}:{service.containers.front_port}, deployments on "
            f"http://{host}:{service.config_server.port}, data in {data_dir}"
        )
        for (application, cluster), (port, _) in service.containers.serving().items():
            if port != service.containers.front_port:
                typer.echo(f"Container cluster '{cluster}' of application {application} on http://{host}:{port}")
        sys.stdout.flush()

    settings = Settings(data_dir, host, port, config_port, repair, allow_python_components)
    asyncio.run(serve_until_signal(settings, application, say_ready))
    if is_any_busy():  # a component that does not return; what it returned to would be half gone
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


@app.command()
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


@app.command()
def deploy(
    application: Annotated[Path, typer.Argument(help="A folder with services.xml, or its zip.")],
    config_url: ConfigUrl = _CONFIG,
) -> None:
    """Deploy an application package to a running service."""
    from paperwasp.client.deploy import deploy_package

    for line in deploy_package(config_url, application):
        typer.echo(line)


@app.command()
def feed(
    file: Annotated[Path, typer.Argument(help="JSON lines in Vespa's feed format; - reads standard input.")],
    url: ContainerUrl = _CONTAINER,
    connections: Annotated[int, typer.Option(help="Connections, each with one document in flight.")] = 16,
) -> None:
    """Feed documents: lines of {"put": "id:ns:type::1", "fields": {…}}, or "update", or "remove"."""
    from paperwasp.client.feed import feed_file

    if not feed_file(url, file, connections):
        raise typer.Exit(1)


@app.command()
def query(
    text: Annotated[str, typer.Argument(help="Words to search for, or YQL that begins with 'select'.")],
    parameters: Annotated[
        list[str] | None, typer.Argument(help="More parameters of the search API, e.g. ranking=title hits=3")
    ] = None,
    url: ContainerUrl = _CONTAINER,
    hits: Annotated[int, typer.Option("--hits", "-n", help="How many hits to show.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="Show the answer as it came.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each hit ranks where it does.")] = False,
) -> None:
    """Search, and show the hits for reading, with the words that matched highlighted."""
    from paperwasp.client.query import EXPLAIN, show_query

    asked = [f"hits={hits}", *(EXPLAIN if explain else ()), *(parameters or [])]
    if not show_query(url, text, asked, raw=json):
        raise typer.Exit(1)


@app.command()
def status(url: ContainerUrl = _CONTAINER, config_url: ConfigUrl = _CONFIG) -> None:
    """Say whether the service is up and what it serves."""
    from paperwasp.client.deploy import status_lines

    up, lines = status_lines(url, config_url)
    for line in lines:
        typer.echo(line)
    if not up:
        raise typer.Exit(1)
