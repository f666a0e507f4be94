"""Evaluations as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from paperwasp.relevance.evaluation import Change, Evaluation, Measured
from paperwasp.relevance.measuring import Difference
from paperwasp.relevance.rankings import RankedDocument

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
