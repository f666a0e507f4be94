"""Results as HTML for notebooks: tables with what matched marked, and trees to unfold. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import orjson

_CELL_CHARACTERS: Final = 300
_MARKS: Final = (("&lt;hi&gt;", "<mark>"), ("&lt;/hi&gt;", "</mark>"), ("&lt;sep /&gt;", " … "))
_LEFT_OUT: Final = ("sddocname", "documentid")
_NUMBER: Final = ' style="text-align:right"'

Row = Mapping[str, Any]


def hits_html(rows: Sequence[Row], total: int, problems: Iterable[str]) -> str:
    """A table of hits, below it how many there are and what is wrong."""
    shown = [{name: value for name, value in row.items() if name not in _LEFT_OUT} for row in rows]
    said = "".join(f'<p style="color:#b00">{escape(problem)}</p>' for problem in problems)
    return table_html(shown, f"{len(rows)} of {total} hits") + said


def table_html(rows: Sequence[Row], caption: str) -> str:
    """A table with a column for each name that any row has, in the order of first sight."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(_cell(row[name]) if name in row else '<td></td>' for name in names)}</tr>" for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return f"<td>{marked('' if value is None else str(value))}</td>"
    if isinstance(value, int | float):
        return f"<td{_NUMBER}>{number(value)}</td>"
    return f"<td>{marked(orjson.dumps(value).decode())}</td>"


def marked(text: str) -> str:
    """Escaped text in which what the service has put in <hi> is marked. Long text is cut, never within a mark."""
    cut = escape(text if len(text) <= _CELL_CHARACTERS else _cut(text))
    for said, mark in _MARKS:
        cut = cut.replace(said, mark)
    return cut


def _cut(text: str) -> str:
    start = text[:_CELL_CHARACTERS]
    if start.count("<hi>") > start.count("</hi>"):
        start = start[: start.rindex("<hi>")]
    return start + "…"


def number(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def explanation_html(hits: Sequence[Mapping[str, Any]]) -> str:
    """A tree to unfold for each hit: phases, and below each the expression with its values."""
    return "".join(_explained(place, hit) for place, hit in enumerate(hits, 1))


def _explained(place: int, hit: Mapping[str, Any]) -> str:
    explanation = hit.get("explanation", {})
    note = f"<div>{escape(str(explanation['note']))}</div>" if "note" in explanation else ""
    phases = "".join(_phase(phase) for phase in explanation.get("phases", ()))
    title = f"#{place} {escape(str(hit.get('id', '')))} <b>{number(hit.get('relevance', 0.0))}</b>"
    return _folded(title, note + phases, is_open=place == 1)


def _phase(phase: Mapping[str, Any]) -> str:
    note = f"<div>{escape(str(phase['note']))}</div>" if "note" in phase else ""
    tree = _node(phase["tree"]) if "tree" in phase else ""
    return _folded(f"<b>{number(phase['score'])}</b> {escape(phase['phase'])}", note + tree, is_open=True)


def _node(node: Mapping[str, Any]) -> str:
    title = f"<code>{escape(str(node['expression']))}</code>"
    if "feature" in node:
        title += f" = <i>{escape(str(node['feature']))}</i>"
    if node.get("taken") is False:
        title = f"<s>{title}</s> not taken"
    elif "value" in node:
        value = node["value"]
        shown = number(value) if isinstance(value, int | float) else escape(str(value))
        title = f"<b>{shown}</b> {title}"
    if "shown" in node:
        title += " (shown above)"
    below = "".join(_node(child) for child in node.get("children", ()))
    if "cut" in node:
        below += f"<div>… {escape(str(node['cut']))}</div>"
    return _folded(title, below, is_open=False) if below else f'<div style="margin-left:1.2em">{title}</div>'


def _folded(title: str, content: str, *, is_open: bool) -> str:
    opened = " open" if is_open else ""
    return f'<details{opened} style="margin-left:1em"><summary>{title}</summary>{content}</details>'
