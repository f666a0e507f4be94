"""The options and the help that several commands share, and how errors about a package are shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from paperwasp.errors import InvalidPackage

if TYPE_CHECKING:
    from rich.console import Group

    from paperwasp.client.connection import Access

# What `--help` of a command prints: names of options are whole in a terminal of any width, so that they can be typed.
#
# Typer gives each option a row of narrow columns and cuts what does not fit them.


_NAMES_WIDTH: Final = 28
"""Names that are longer stand on a line of their own, above their help."""
_INDENT: Final = 4


class Command(TyperCommand):
    """A command whose help has a panel for each group of options."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help."""
        from rich.console import Console
        from rich.padding import Padding
        from rich.panel import Panel
        from rich.text import Text

        console = Console(highlight=False)
        console.print(Padding(Text(self.get_usage(ctx), "bold"), 1))
        console.print(Padding(Text.from_markup(self.help or ""), (0, 1, 1, 1)))
        panels: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if each.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(record)
        for title in sorted(panels, key=["Arguments", "Options", *panels].index):
            console.print(Panel(_rows(panels[title]), title=title, title_align="left", border_style="dim"))


def _rows(records: list[tuple[str, str]]) -> Group:
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    parts: list[Table | Text | Padding] = []
    for names, said in records:
        shown = Text(names.removeprefix(" / "), "bold cyan")
        if len(names) > _NAMES_WIDTH:
            parts += [shown, Padding(Text(said), (0, 0, 0, _INDENT))]
        else:
            table = Table.grid(padding=(0, 2))
            table.add_column(width=_NAMES_WIDTH)
            table.add_column()
            table.add_row(shown, Text(said))
            parts.append(table)
    return Group(*parts)


DEFAULT_DATA: Final = Path("paperwasp-data")
CONTAINER: Final = "http://127.0.0.1:8080"
CONFIG: Final = "http://127.0.0.1:19071"
_ACCESS: Final = "Who you are"


def container_urls() -> list[str]:
    """Complete the value of `--url` in a shell."""
    return [CONTAINER]


def config_urls() -> list[str]:
    """Complete the value of `--config-url` in a shell."""
    return [CONFIG]


ContainerUrl = Annotated[
    str,
    typer.Option(
        "--url", "-u", help="Where the container listens.", envvar="PAPERWASP_URL", autocompletion=container_urls
    ),
]
ConfigUrl = Annotated[
    str,
    typer.Option(
        "--config-url",
        help="Where the config server listens.",
        envvar="PAPERWASP_CONFIG_URL",
        autocompletion=config_urls,
    ),
]
AllowPython = Annotated[
    bool,
    typer.Option(
        "--allow-python-components",
        help="Run components that are written in Python and come with an application: they may do whatever you may.",
    ),
]
QueryExpressions = Annotated[
    bool,
    typer.Option(
        " /--no-query-expressions",
        show_default=False,
        help="Refuse queries that bring ranking expressions, whatever services.xml says: they cost what they say.",
    ),
]
QueryMemory = Annotated[
    str | None,
    typer.Option(
        help="What the tensors of a query may take, like 256MiB, where services.xml does not say: 64MiB.",
        metavar="SIZE",
        envvar="PAPERWASP_QUERY_MEMORY",
        show_envvar=True,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        help="Sent as a bearer token with each request.",
        envvar="PAPERWASP_TOKEN",
        show_envvar=True,
        rich_help_panel=_ACCESS,
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(help="Your certificate (PEM), for https with client certificates.", rich_help_panel=_ACCESS),
]
PrivateKey = Annotated[Path | None, typer.Option(help="The key of your certificate (PEM).", rich_help_panel=_ACCESS)]
Ca = Annotated[
    Path | None,
    typer.Option(help="Trust services whose certificate these have signed (PEM).", rich_help_panel=_ACCESS),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", help="A header for each request, as 'Name: value'; repeatable.", rich_help_panel=_ACCESS),
]
DataDirectoryPath = Annotated[Path, typer.Option("--data-dir", help="Where documents and applications are kept.")]
Authenticate = Annotated[
    bool,
    typer.Option(
        "--authenticate",
        help="Let only those ask containers who send a key (`paperwasp key`) or show a client certificate, unless "
        "services.xml says otherwise of a container.",
    ),
]
AuthenticateDeployments = Annotated[
    bool,
    typer.Option(
        "--authenticate-deployments",
        help="Let only those deploy who send a key of scope deploy, or show a certificate of --config-tls-clients.",
    ),
]
ConfigCertificate = Annotated[
    Path | None, typer.Option(help="Speak TLS on the config port, with this certificate (PEM).")
]
ConfigKey = Annotated[Path | None, typer.Option(help="The key of that certificate (PEM).")]
ConfigClients = Annotated[
    Path | None,
    typer.Option(help="Certificates (PEM) of clients that may deploy, or of authorities that have signed theirs."),
]

_JUDGED_HITS: Final = "Documents of each query that count; above 400, a query profile has to say maxHits."
JudgedHits = Annotated[int, typer.Option("--hits", "-n", min=1, help=_JUDGED_HITS)]


def make_access(
    token: str | None,
    certificate: Path | None,
    private_key: Path | None,
    ca: Path | None,
    headers: list[str] | None = None,
) -> Access:
    """Return who asks, as the options say. Errors: InvalidInput."""
    from paperwasp.client.connection import Access, parse_headers

    return Access(token, parse_headers(headers or ()), certificate, private_key, ca)


@contextmanager
def shown_places(application: Path | None) -> Iterator[None]:
    """Errors that name places in the package are raised again with an excerpt of it; None: there is no package."""
    try:
        yield
    except InvalidPackage as error:
        if application is None:
            raise
        from paperwasp.application.package import load_package
        from paperwasp.client.terminal import excerpts

        lines = excerpts(error.message, load_package(application).files)
        raise InvalidPackage("\n".join(lines), error.findings) from None
