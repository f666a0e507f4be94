"""The command `init`: from a file to an application, and to the first ranked hits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from paperwasp.cli.feed import Delimiter, Format
from paperwasp.cli.options import DEFAULT_DATA
from paperwasp.client.terminal import counted
from paperwasp.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from paperwasp.authoring.guessing import Sample
    from paperwasp.authoring.new_package import NewPackage
    from paperwasp.client.sources.operations import SourceOperation
    from paperwasp.client.sources.read import ReadOptions
    from paperwasp.embedded.service import Service

_WORD_CHARACTERS: Final = 4
_SHOWN_FIELDS: Final = 3


def init(
    source: Annotated[str, typer.Argument(metavar="FILE", help="CSV, TSV, JSONL, JSON, Parquet or Arrow; .gz, .zst.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Where the application is written; else a folder named as the file.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The schema's name; else as the file.")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column with the ids; else it is looked for.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="The words that are searched for at the end.")
    ] = None,
    feed: Annotated[bool, typer.Option(" /--no-feed", show_default=False, help="Write the application alone.")] = True,
    data_dir: Annotated[Path, typer.Option(help="Where the documents are kept.")] = DEFAULT_DATA,
    format: Format = None,
    delimiter: Delimiter = None,
) -> None:
    """Make an application of a file of rows, feed the file, and show the first hits.

    [bold]paperwasp init books.csv[/bold] guesses the type of each column, writes the folder books with services.xml and
    a schema that says in comments why each line is there, feeds all rows into paperwasp-data, and searches for a word
    of them. Then [bold]paperwasp serve[/bold] serves them.
    """
    from rich.console import Console

    from paperwasp.authoring.guessing import Use, field_name, guess, read_sample
    from paperwasp.authoring.new_package import NewPackage
    from paperwasp.client.sources.operations import plain_name
    from paperwasp.client.sources.read import ReadOptions
    from paperwasp.client.sources.rows import RowOptions

    stem = Path(plain_name(source)).stem
    schema = name or field_name(stem)
    if field_name(schema) != schema:
        raise InvalidInput(f"--name: '{schema}' is no name of a schema; '{field_name(schema)}' would be one")
    target = folder or Path(stem)
    if target.exists():
        raise Conflict(f"'{target}' is there already: name another folder, or remove it")
    if feed and data_dir.exists():
        raise Conflict(
            f"'{data_dir}' has documents already: name another with --data-dir, or write only with --no-feed"
        )
    reading = ReadOptions(format, delimiter, RowOptions(document_type=schema))
    sample = read_sample(source, reading)
    serve = _serve_command(target, data_dir if feed else DEFAULT_DATA)
    package = NewPackage(schema, guess(sample, id_column), source, format, delimiter, serve)
    for path, text in package.files().items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, "utf-8")
    console = Console(highlight=False, emoji=False)
    _say_fields(console, package, target)
    if feed:
        from paperwasp.embedded.service import Service

        with Service(target, data_dir) as service:
            _feed(console, service, package, reading)
            if package.guess.of(Use.TEXT):
                _search(console, service, package, query or _telling_word(sample, package))
    _say_next(console, package, is_fed=feed)


def _say_fields(console: Console, package: NewPackage, target: Path) -> None:
    from rich.table import Column, Table

    from paperwasp.client.sources.rows import ROW_NUMBER

    folding = (Column(name, overflow="fold") for name in ("Column", "Field", "Type", "Is", "Since"))
    table = Table(*folding, box=None, pad_edge=False)
    if package.guess.id == ROW_NUMBER:
        table.add_row("", "", "", "the id", "the number of the row: no column has another value in each")
    else:
        table.add_row(package.guess.id, "", "", "the id", "")
    for each in package.guess.columns:
        table.add_row(each.name, each.field, each.type, each.use.value, each.why)
    console.print(table)
    console.print(f"Wrote {', '.join(str(target / path) for path in package.files())}", markup=False, soft_wrap=True)


def _feed(console: Console, service: Service, package: NewPackage, reading: ReadOptions) -> None:
    """Feeds the whole file; says what was refused, by its reason."""
    from paperwasp.base.records import replace
    from paperwasp.client.sources.operations import BadInput
    from paperwasp.client.sources.read import read_file

    rows = replace(
        reading.rows,
        id=package.guess.id,
        fields=package.fields(),
        types=package.types(),
        missing=package.missing(),
    )
    unreadable: list[str] = []

    def operations() -> Iterator[SourceOperation]:
        for item in read_file(package.source, replace(reading, rows=rows)):
            if isinstance(item, BadInput):
                unreadable.append(item.message)
            else:
                yield item

    fed = service.feed(operations(), progress=console.is_terminal)
    rate = f" in {fed.seconds:.1f} s" if fed.seconds >= 0.1 else ""
    console.print(f"Fed {counted(fed.ok, 'document')}{rate}", markup=False)
    refused = [*unreadable, *(f"{each.id}: {each.message}" for each in fed.problems)]
    if failed := len(unreadable) + fed.failed:
        console.print(
            f"{counted(failed, 'row')} refused; the first: {refused[0]}", style="red", markup=False, soft_wrap=True
        )
    there = service.query(yql=f"select * from {package.schema} where true", hits=0).total
    if there < fed.ok:
        console.print(
            f"{counted(fed.ok - there, 'row')} took the place of an earlier one with the same {package.guess.id}: name "
            f"another column with --id, or --id '{{#}}' for the number of the row",
            style="red",
            markup=False,
            soft_wrap=True,
        )


def _telling_word(sample: Sample, package: NewPackage) -> str:
    """A word of the sample that some documents have, and most have not."""
    from collections import Counter

    title = package.guess.title
    assert title is not None
    texts = [str(value) for value in sample.values(title.name)]
    counts = Counter(word for text in texts for word in {each for each in text.split() if each.isalpha()})
    wanted = max(2, len(texts) // 50)
    long = {word: count for word, count in counts.items() if len(word) >= _WORD_CHARACTERS} or counts
    return min(long, key=lambda word: (abs(long[word] - wanted), word), default=texts[0])


def _search(console: Console, service: Service, package: NewPackage, words: str) -> None:
    from rich.table import Column, Table
    from rich.text import Text

    from paperwasp.authoring.guessing import Use

    found = service.query(yql=f"select * from {package.schema} where userInput(@words)", words=words, hits=5)
    console.print(f"\nQuery: {words}   ({counted(found.total, 'document')} found, in {package.schema})", markup=False)
    shown = [each for each in package.guess.columns if each.use is not Use.LEFT_OUT and each.use is not Use.VECTOR]
    first = package.guess.title
    fields = [each.field for each in sorted(shown, key=lambda each: each is not first)[:_SHOWN_FIELDS]]
    table = Table("Relevance", *(Column(field, max_width=44) for field in fields), box=None, pad_edge=False)
    for hit in found.hits:
        cells = (" ".join(str(hit.fields.get(field, "")).split())[:100] for field in fields)
        table.add_row(f"{hit.relevance:.3f}", *map(Text, cells))
    console.print(table)


def _serve_command(target: Path, data_dir: Path) -> str:
    where = [] if data_dir == DEFAULT_DATA else ["--data-dir", str(data_dir)]
    return shlex.join(["paperwasp", "serve", str(target), *where])


def _say_next(console: Console, package: NewPackage, *, is_fed: bool) -> None:
    lines = ["", "Next:", f"  {package.serve}"]
    if not is_fed:
        lines.append(f"  paperwasp feed {shlex.join(package.feed_arguments())}")
    lines += [f"  paperwasp query {shlex.quote(text)}" for text in package.queries()]
    console.print("\n".join(lines), markup=False, soft_wrap=True)
