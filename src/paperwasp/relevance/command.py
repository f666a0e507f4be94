"""The commands `paperwasp evaluate` and `paperwasp features`: tables for a terminal, and training data."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from msgspec import Struct
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from paperwasp.embedded.frames import write_parquet
from paperwasp.errors import InvalidInput
from paperwasp.relevance.collection import check_fit, read_judgments, read_queries
from paperwasp.relevance.measuring import DEFAULT, Change, Difference, Evaluation, Measured, check_measures, evaluate
from paperwasp.relevance.rankings import YQL, Ask, RankedDocument, Ranking, asking, identity_of
from paperwasp.relevance.report import report
from paperwasp.relevance.training_data import collect_features

_YQL: Final = "yql"
_PROFILE: Final = "ranking.profile"
_QUERY_PROFILE: Final = "queryProfile"
_EXPRESSION: Final = "ranking.firstPhase.expression"
_FEATURES: Final = "ranking.matchFeatures.expression"
_TIMEOUT: Final = "20s"
_EXPLAINED_HITS: Final = 3


class Asked(Struct, frozen=True):
    """A measurement to be made: queries, judgments, and who is asked."""

    queries: Path
    judgments: Path
    application: Path | None
    feed: Sequence[Path]
    url: str
    yql: str | None
    parameters: Sequence[str]
    hits: int
    id_field: str | None

    def to_parameters(self) -> dict[str, object]:
        """Return the parameters of each query. Errors: InvalidInput for what is no `name=value`."""
        asked: dict[str, object] = {"hits": self.hits, "timeout": _TIMEOUT}
        for text in self.parameters:
            name, is_pair, value = text.partition("=")
            if not is_pair:
                raise InvalidInput(f"--parameter: '{text}' is not name=value")
            asked[name] = value
        return asked


def evaluate_rankings(
    asked: Asked,
    profiles: Sequence[str],
    expressions: Sequence[str],
    query_profiles: Sequence[str],
    measures: Sequence[str],
    *,
    changes: int,
    report_file: Path | None,
    as_json: bool,
) -> None:
    """Measures, and shows what came of it. Errors: BadCollection, NoMeasures; those of the service."""
    if report_file is not None:
        _check_folder(report_file)
    queries, judgments = read_queries(asked.queries), read_judgments(asked.judgments)
    judged = check_fit(queries, judgments)
    # Feeding may take long, and is for nothing where a measure is mistyped.
    check_measures(judgments, judged, measures or DEFAULT)
    rankings = list(_rankings(asked.yql, profiles, expressions, query_profiles))
    parameters = asked.to_parameters()
    with asking(asked.url, asked.application, asked.feed) as ask, _progress() as progress:
        task = progress.add_task("Asking", total=len(judged) * len(rankings))
        found = evaluate(
            ask,
            queries,
            judgments,
            judged,
            rankings,
            measures or DEFAULT,
            parameters,
            asked.id_field,
            lambda: progress.advance(task),
        )
        if report_file is not None:
            page = report(found, changes, lambda *given: _explained(ask, parameters, *given))
            report_file.write_text(page, encoding="utf-8")
    console = Console()
    if as_json:
        console.print_json(orjson.dumps(found.to_json()).decode())
    else:
        show(found, console, changes)


def _rankings(
    yql: str | None, profiles: Sequence[str], expressions: Sequence[str], query_profiles: Sequence[str]
) -> Iterator[Ranking]:
    """The rank profiles, the expressions over the first of them, and the query profiles, which may say how documents
    match where the command does not. Without any, the rank profile `default`."""
    names = profiles or ([] if query_profiles and not expressions else ["default"])
    matching = {_YQL: yql or YQL}
    yield from (Ranking(name, {**matching, _PROFILE: name}) for name in names)
    yield from (Ranking(text, {**matching, _PROFILE: names[0], _EXPRESSION: text}) for text in expressions)
    given = {} if yql is None else {_YQL: yql}
    yield from (Ranking(name, {**given, _QUERY_PROFILE: name}) for name in query_profiles)


def _explained(ask: Ask, parameters: Mapping[str, object], ranking: Ranking, text: str) -> list[Mapping[str, Any]]:
    why = {"trace.level": 1, "trace.explainLevel": 1, "hits": _EXPLAINED_HITS}
    answer = ask({**parameters, **ranking.parameters, **why, "query": text})
    hits: list[Mapping[str, Any]] = answer["root"].get("children", [])
    return hits


def write_features(asked: Asked, profile: str, features: Sequence[str], output: Path) -> None:
    """Writes the rows. Errors: InvalidInput, BadCollection; those of the service."""
    queries, judgments = read_queries(asked.queries), read_judgments(asked.judgments)
    wanted = check_fit(queries, judgments)
    if output.suffix not in _WRITERS:
        raise InvalidInput(f"'{output}' is to end in one of {', '.join(_WRITERS)}")
    _check_folder(output)
    parameters = {**asked.to_parameters(), _YQL: asked.yql or YQL, _PROFILE: profile}
    if features:
        parameters[_FEATURES] = " ".join(features)
    with asking(asked.url, asked.application, asked.feed) as ask, _progress() as progress:
        task = progress.add_task("Asking", total=len(wanted))
        rows = list(
            collect_features(
                ask,
                queries,
                judgments,
                wanted,
                parameters,
                lambda hit: identity_of(hit, asked.id_field),
                lambda: progress.advance(task),
            )
        )
    _WRITERS[output.suffix](output, rows)
    relevant = sum(row["relevance"] > 0 for row in rows)
    Console().print(f"{len(rows)} rows of {len(wanted)} queries, {relevant} of them relevant, in {output}")


def _check_folder(output: Path) -> None:
    """Errors: InvalidInput where a file could not be written, before anything is asked for it."""
    if not output.parent.is_dir():
        raise InvalidInput(f"'{output}' cannot be written: there is no folder '{output.parent}'")


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def _write_json_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


_WRITERS: Final = {".parquet": write_parquet, ".csv": _write_csv, ".jsonl": _write_json_lines}


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


# Evaluations as tables for a terminal.


_LINE_CHARACTERS = 70
_BARS = 30
_LEAST_P = 0.001


def show(evaluation: Evaluation, console: Console, changes: int) -> None:
    """Prints the measures, the differences from the first ranking, and the queries that changed most."""
    for part in _parts(evaluation, changes):
        console.print(part)


def _parts(evaluation: Evaluation, changes: int) -> Iterator[RenderableType]:
    yield _means(evaluation)
    if doubt := evaluation.doubt():
        yield Text(f"\n{doubt}", "yellow")
    for each in evaluation.measured:
        yield from (Text(f"\n{each.ranking.name}: {note}", "yellow") for note in each.notes)
    first = evaluation.measured[0]
    for each in evaluation.measured[1:]:
        yield _plot(evaluation, each)
        won, lost = evaluation.changes(each, evaluation.measures[0], changes)
        if won or lost:
            yield Text("Before each document is its judgment (-: none), after it its score", "dim")
        for title, found in (("won", won), ("lost", lost)):
            for change in found:
                text = change.text[:_LINE_CHARACTERS]
                yield Text(
                    f"\n{title}: query {change.query} “{text}” {change.before:.3f} → {change.after:.3f}", "italic"
                )
                yield _change(evaluation, change, first, each)


def _means(evaluation: Evaluation) -> Table:
    count = len(evaluation.judged)
    queries = "1 query" if count == 1 else f"{count} queries"
    table = Table(title=f"{queries}; 95 % intervals", box=None, padding=(0, 2, 0, 0))
    table.add_column("ranking")
    for name in evaluation.measures:
        table.add_column(name, justify="right")
    for each in evaluation.measured:
        cells = []
        for name in evaluation.measures:
            estimate = each.estimate(name)
            text = Text(f"{estimate.mean:.4f}", "bold").append(
                f"\n{estimate.low:.3f} to {estimate.high:.3f}", "not bold dim"
            )
            if each is not evaluation.measured[0]:
                text.append("\n").append_text(_verdict(evaluation.difference(each, name)))
            cells.append(text)
        table.add_row(each.ranking.name, *cells)
    return table


def _verdict(difference: Difference) -> Text:
    """Green or red where the interval of the difference does not hold 0."""
    estimate = difference.estimate
    style = "green" if estimate.low > 0 else "red" if estimate.high < 0 else "dim"
    chance = "p<0.001" if difference.p_value < _LEAST_P else f"p={difference.p_value:.3f}"
    return Text(f"{estimate.mean:+.4f} {chance}\n{difference.won} won, {difference.lost} lost", style)


def _plot(evaluation: Evaluation, measured: Measured) -> Text:
    """A bar for each query, by how much it won or lost: the greatest gains first."""
    name = evaluation.measures[0]
    gains = sorted((measured.values[name] - evaluation.measured[0].values[name]).tolist(), reverse=True)
    step = max(1, -(-len(gains) // _BARS))
    if not any(gains):
        return Text(f"\n{measured.ranking.name} changes {name} of no query")
    text = Text(f"\n{name} of {measured.ranking.name}, query by query, against {evaluation.measured[0].ranking.name}\n")
    for start in range(0, len(gains), step):
        group = gains[start : start + step]
        mean = sum(group) / len(group)
        bar = "█" * round(abs(mean) * _BARS)
        left, right = (bar.rjust(_BARS), "") if mean < 0 else (" " * _BARS, bar)
        text.append(left, "red").append("│").append(right, "green").append("\n")
    return text


def _change(evaluation: Evaluation, change: Change, first: Measured, other: Measured) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for each in (first, other):
        table.add_column(each.ranking.name, no_wrap=True, overflow="ellipsis")
    for before, after in change.documents:
        table.add_row(_document(evaluation, change.query, before), _document(evaluation, change.query, after))
    return table


def _document(evaluation: Evaluation, query: str, document: RankedDocument | None) -> Text:
    """The document, green where it is relevant, red where it is judged and is not."""
    if document is None:
        return Text("")
    relevance = evaluation.relevance(query, document.id)
    style = "dim" if relevance is None else "green" if relevance > 0 else "red"
    judged = "-" if relevance is None else str(relevance)
    return Text(f"{judged} {document.id} ", style).append(f"{document.score:.4g}", "dim")
