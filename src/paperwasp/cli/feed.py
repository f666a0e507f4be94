"""The commands `feed` and `visit`: documents of files to a service, and those of a service to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from paperwasp.cli.options import CONTAINER, Ca, Certificate, ContainerUrl, Headers, PrivateKey, Token, make_access
from paperwasp.errors import InvalidInput

if TYPE_CHECKING:
    from paperwasp.client.sources.operations import Kind
    from paperwasp.client.sources.rows import RowOptions

_ROWS: Final = "Rows of CSV, Parquet, Arrow, or JSON without document ids"
_SENDING: Final = "How operations are sent"
_ERRORS: Final = "When something goes wrong"


def feed_formats(incomplete: str) -> list[str]:
    """Complete the value of `--format` in a shell."""
    from paperwasp.client.sources.read import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


Format = Annotated[
    str | None,
    typer.Option(
        help="json, jsonl, csv, tsv, parquet or arrow, where the name of a file does not say it.",
        autocompletion=feed_formats,
    ),
]
Schema = Annotated[
    str | None, typer.Option("--schema", "--type", help="The document type of rows.", rich_help_panel=_ROWS)
]
Namespace = Annotated[
    str | None, typer.Option(help="The namespace of their ids; else the document type.", rich_help_panel=_ROWS)
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="The column with the id, or a text with columns in braces, like '{shop}-{isbn}'; else the column "
        "documentid or id. '{#}' is the number of the row.",
        rich_help_panel=_ROWS,
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="column=field, for a column that is not named as its field; column= leaves it out; repeatable.",
        rich_help_panel=_ROWS,
    ),
]
FieldType = Annotated[
    list[str] | None,
    typer.Option(
        help="field=type, for texts that are something else: int, float, bool, json, timestamp, array<string>, …; "
        "auto: JSON where it is that; *=type for all others; repeatable.",
        rich_help_panel=_ROWS,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="A text that stands for no value in fields of another type, like n/a; repeatable.",
        rich_help_panel=_ROWS,
    ),
]
Separator = Annotated[str, typer.Option(help="Between the elements of array<…> in a text.", rich_help_panel=_ROWS)]
Delimiter = Annotated[
    str | None, typer.Option(help="Between the cells of CSV; else by its first line.", rich_help_panel=_ROWS)
]
Timestamps = Annotated[
    str, typer.Option(help="Times become numbers since 1970 of s, ms, us or ns.", rich_help_panel=_ROWS)
]
Operation = Annotated[str, typer.Option(help="What rows are: put, update or remove.", rich_help_panel=_ROWS)]
Condition = Annotated[
    str | None,
    typer.Option(
        help="Done only to documents for which this selection holds; an operation's own condition stays.",
        rich_help_panel=_SENDING,
    ),
]
Create = Annotated[
    bool, typer.Option("--create", help="Updates make documents that are not there.", rich_help_panel=_SENDING)
]
Route = Annotated[str | None, typer.Option(help="The route of the document API.", rich_help_panel=_SENDING)]
Trace = Annotated[
    int, typer.Option(help="From 1 to 9: show what the service tells of its work.", rich_help_panel=_SENDING)
]
Timeout = Annotated[float, typer.Option(help="Seconds for one operation; 0: the service's.", rich_help_panel=_SENDING)]
Connections = Annotated[int, typer.Option(help="Connections to the service.", min=1, rich_help_panel=_SENDING)]
Streams = Annotated[
    int, typer.Option(help="Most operations under way on one connection.", min=1, rich_help_panel=_SENDING)
]
Compression = Annotated[
    str, typer.Option(help="auto, of bodies above 512 bytes; none; or gzip, of all.", rich_help_panel=_SENDING)
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Read the files, show the first operations and what is wrong, and send nothing."),
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Go on behind what cannot be read.", rich_help_panel=_ERRORS)
]
MaxErrors = Annotated[
    int, typer.Option(help="End when this number of operations has failed; 0: never.", min=0, rich_help_panel=_ERRORS)
]
ErrorsTo = Annotated[
    Path | None,
    typer.Option(help="Write operations that fail to this file, to be fed again.", rich_help_panel=_ERRORS),
]


def feed(
    files: Annotated[list[str], typer.Argument(help="JSON, JSONL, CSV, TSV, Parquet, Arrow; .gz, .zst; - reads JSON.")],
    url: ContainerUrl = CONTAINER,
    format: Format = None,
    schema: Schema = None,
    namespace: Namespace = None,
    id_template: Id = None,
    columns: Map = None,
    field_type: FieldType = None,
    missing: Missing = None,
    separator: Separator = ";",
    delimiter: Delimiter = None,
    timestamps: Timestamps = "s",
    operation: Operation = "put",
    condition: Condition = None,
    create: Create = False,
    route: Route = None,
    trace: Trace = 0,
    timeout: Timeout = 0,
    connections: Connections = 8,
    streams: Streams = 128,
    compression: Compression = "auto",
    dry_run: DryRun = False,
    keep_going: KeepGoing = False,
    max_errors: MaxErrors = 0,
    errors_to: ErrorsTo = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as `vespa feed` does.")] = False,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
    header: Headers = None,
) -> None:
    """Feed documents from files: Vespa's JSON, or rows of tables.

    [bold]paperwasp feed docs.jsonl[/bold] sends operations like {"put": "id:shop:book::1", "fields": {…}}, also
    "update" and "remove", one a line or in an array.

    [bold]paperwasp feed books.csv --schema book --id isbn --field-type 'tags=array<string>'[/bold] makes a put of each
    row, its columns the fields of the same names. Try it with [bold]--dry-run[/bold] first.
    """
    from paperwasp.client.feed_files import ClientSender, FeedPolicy, SendOptions, check_files, feed_files
    from paperwasp.client.sources.read import ReadOptions

    rows = _row_options(schema, namespace, id_template, columns, field_type, missing, separator, timestamps, operation)
    options = ReadOptions(format, delimiter, rows)
    policy = FeedPolicy(keep_going, max_errors, errors_to, verbose=trace > 0)
    policy.check_errors_to(files)
    if dry_run:
        done = check_files(files, options, policy)
    else:
        access = make_access(token, certificate, private_key, ca, header)
        times = timeout or None
        sending = SendOptions(
            url, access, connections, streams, compression, times, route, trace or None, condition, create
        )
        done = feed_files(files, options, ClientSender(sending), policy, as_json=json)
    if not done:
        raise typer.Exit(1)


def _row_options(
    schema: str | None,
    namespace: str | None,
    id_template: str | None,
    columns: list[str] | None,
    field_type: list[str] | None,
    missing: list[str] | None,
    separator: str,
    timestamps: str,
    operation: str,
) -> RowOptions:
    from paperwasp.client.sources.rows import RowOptions

    _check_choice("--operation", operation, ("put", "update", "remove"))
    _check_choice("--timestamps", timestamps, ("s", "ms", "us", "ns"))
    return RowOptions(
        schema,
        namespace,
        id_template,
        _pairs("--map", columns),
        _pairs("--field-type", field_type),
        tuple(missing or ()),
        separator,
        timestamps,
        cast("Kind", operation),
    )


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInput(f"{option}: '{value}' is not one of {', '.join(choices)}")


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput(f"{option}: '{text}' is not like name=value")
        pairs[name] = value
    return pairs


def visit(
    url: ContainerUrl = CONTAINER,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A file; .jsonl, .csv, .tsv or .parquet; - writes JSON lines."),
    ] = Path("-"),
    selection: Annotated[
        str | None, typer.Option("--selection", "-s", help="Only documents for which it holds: 'book.year > 1990'.")
    ] = None,
    schema: Annotated[str | None, typer.Option("--schema", "--type", help="Only documents of this type.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Of this content cluster; else of all.")] = None,
    field_set: Annotated[
        str | None, typer.Option(help="The fields that are written: 'book:title,year', '[id]', '[all]'.")
    ] = None,
    slices: Annotated[int, typer.Option(help="Parts that are read at the same time.", min=1, max=1024)] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds for one request; 0: the service's.")] = 0,
    continue_from: Annotated[
        Path | None, typer.Option(help="Go on where a visit was interrupted: the file that it left beside its output.")
    ] = None,
    token: Token = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    ca: Ca = None,
    header: Headers = None,
) -> None:
    """Write all documents, or a selection of them, to a file that `paperwasp feed` reads.

    [bold]paperwasp visit -o all.jsonl[/bold], or [bold]-o books.parquet --schema book --slices 4[/bold].
    """
    from paperwasp.client.visit import VisitOptions, VisitOutput, visit

    access = make_access(token, certificate, private_key, ca, header)
    options = VisitOptions(url, access, cluster, schema, selection, field_set, slices, timeout or None)
    count = visit(options, VisitOutput(output, continue_from))
    typer.echo(f"{count} documents visited", err=True)
