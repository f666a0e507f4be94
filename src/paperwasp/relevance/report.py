"""An evaluation as a page of HTML without anything from elsewhere: tables, plots, and why rankings differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, Final

from paperwasp.embedded.html import explanation_html
from paperwasp.relevance.measuring import Change, Evaluation, Measured
from paperwasp.relevance.rankings import RankedDocument, Ranking

Explain = Callable[[Ranking, str], list[Mapping[str, Any]]]
"""A ranking and the text of a query → its hits with their explanations."""
_WIDTH: Final = 720
_HEIGHT: Final = 160
_STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { padding: .2em .8em; text-align: left; vertical-align: top; }
th { border-bottom: 1px solid #999; } .good { color: #07710b; } .bad { color: #b00020; } .dim { color: #777; }
details { margin-left: 1em; } .sides { display: flex; gap: 2em; } .sides > div { flex: 1; min-width: 0; }
"""


def report(evaluation: Evaluation, changes: int, explain: Explain) -> str:
    """The page. `explain` is asked for the queries that changed most. Errors: those of asking."""
    body = "".join(_parts(evaluation, changes, explain))
    return f"<!doctype html><meta charset=utf-8><title>Evaluation</title><style>{_STYLE}</style><body>{body}</body>"


def _parts(evaluation: Evaluation, changes: int, explain: Explain) -> Iterator[str]:
    yield f"<h1>{len(evaluation.judged)} queries, {len(evaluation.measured)} rankings</h1>"
    yield means_html(evaluation)
    first = evaluation.measured[0]
    for each in evaluation.measured[1:]:
        name = evaluation.measures[0]
        yield f"<h2>{escape(each.ranking.name)} against {escape(first.ranking.name)}</h2>"
        yield _plot(evaluation, each, name)
        won, lost = evaluation.changes(each, name, changes)
        for title, found in (("Won", won), ("Lost", lost)):
            for change in found:
                yield _change(evaluation, change, title, first, each, explain)


def means_html(evaluation: Evaluation) -> str:
    """A table of all rankings by all measures, with what the others win and lose against the first one; and below it
    why they may score less than is meant."""
    head = "".join(f"<th>{escape(name)}</th>" for name in evaluation.measures)
    rows = []
    for each in evaluation.measured:
        cells = "".join(f"<td>{_mean(evaluation, each, name)}</td>" for name in evaluation.measures)
        rows.append(f"<tr><td>{escape(each.ranking.name)}</td>{cells}</tr>")
    notes = [f"{each.ranking.name}: {note}" for each in evaluation.measured for note in each.notes]
    told = "".join(f"<p class=bad>{escape(note)}</p>" for note in notes)
    return f"<table><tr><th>Ranking</th>{head}</tr>{''.join(rows)}</table>{told}"


def _mean(evaluation: Evaluation, measured: Measured, name: str) -> str:
    estimate = measured.estimate(name)
    shown = f"<b>{estimate.mean:.4f}</b> <span class=dim>{estimate.low:.3f} to {estimate.high:.3f}</span>"
    if measured is evaluation.measured[0]:
        return shown
    difference = evaluation.difference(measured, name)
    kind = "good" if difference.estimate.low > 0 else "bad" if difference.estimate.high < 0 else "dim"
    counts = f"{difference.won} won, {difference.lost} lost"
    return f"{shown}<br><span class={kind}>{difference.estimate.mean:+.4f}, p {difference.p_value:.3f}, {counts}</span>"


def _plot(evaluation: Evaluation, measured: Measured, name: str) -> str:
    """A bar for each query, the greatest gains first; its name shows where the pointer is."""
    gains = measured.values[name] - evaluation.measured[0].values[name]
    order = sorted(range(len(gains)), key=lambda place: -gains[place])
    width = _WIDTH / max(1, len(order))
    bars = []
    for at, place in enumerate(order):
        gain = float(gains[place])
        height = abs(gain) * _HEIGHT / 2
        top = _HEIGHT / 2 - (height if gain > 0 else 0)
        query = evaluation.judged[place]
        title = escape(f"{query}: {evaluation.queries[query]} ({gain:+.3f})")
        color = "#07710b" if gain > 0 else "#b00020"
        bars.append(
            f'<rect x="{at * width:.2f}" y="{top:.2f}" width="{max(width * 0.9, 0.5):.2f}" height="{height:.2f}" '
            f'fill="{color}"><title>{title}</title></rect>'
        )
    axis = f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT / 2}" y2="{_HEIGHT / 2}" stroke="#999"/>'
    caption = f"<p class=dim>{escape(name)}, query by query: up is better, down is worse; the height is 1.</p>"
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">{"".join(bars)}{axis}</svg>{caption}'


def _change(
    evaluation: Evaluation, change: Change, title: str, first: Measured, other: Measured, explain: Explain
) -> str:
    sides = []
    for number, measured in enumerate((first, other)):
        documents = "".join(_document(evaluation, change.query, pair[number]) for pair in change.documents)
        why = explanation_html(explain(measured.ranking, change.text))
        sides.append(f"<div><b>{escape(measured.ranking.name)}</b><ol>{documents}</ol>{why}</div>")
    values = f"{change.before:.3f} → {change.after:.3f}"
    heading = f"<h3>{title}: {escape(change.text)} <span class=dim>{values}</span></h3>"
    return f"{heading}<div class=sides>{''.join(sides)}</div>"


def _document(evaluation: Evaluation, query: str, document: RankedDocument | None) -> str:
    if document is None:
        return ""
    relevance = evaluation.relevance(query, document.id)
    kind = "dim" if relevance is None else "good" if relevance > 0 else "bad"
    judged = "not judged" if relevance is None else f"relevance {relevance}"
    return f"<li class={kind}>{escape(document.id)} {document.score:.4g} <span class=dim>{judged}</span></li>"
