"""Results as HTML for notebooks: tables with what matched marked, and trees to unfold.

Colours follow those of the page, light or dark. Where a page takes styles out, as code hosts do, tables, marks and
trees are still what they are. There are no scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later

# Values of fields as the cells of tables. All text is escaped: what documents hold is never taken for HTML.


_CELL_CHARACTERS: Final = 300
_LEAD_CHARACTERS: Final = 60
"""Of a text that is cut, how much comes before the first mark."""
_NUMBERS: Final = 4
"""Of a vector, how many are shown."""
_MEMBERS: Final = 8
"""Of an object, how many are shown."""
_MARKED: Final = compile_later(r"<hi>(.*?)</hi>", re.DOTALL)
_HALF_TAG: Final = compile_later(r"<(?:/(?:hi?)?|hi?)?$")
_GAP: Final = "<sep />"


def cell(value: Any) -> str:
    """A cell of a table."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{value_html(value)}</td>"
    return f'<td class="number">{number(value)}</td>'


def value_html(value: Any) -> str:
    """A value: text with marks, the first numbers of a tensor, a line for each member of an object."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return marked(value)
    if isinstance(value, Mapping):
        return _object(value)
    return marked(_json(value))


def _object(value: Mapping[str, Any]) -> str:
    """Objects of which all members are plain, as match-features are, are shown member by member."""
    if str(value.get("type", "")).startswith("tensor"):
        return _tensor(value)
    members = list(value.items())
    if any(isinstance(member, list | Mapping) for _, member in members[:_MEMBERS]):
        return marked(_json(value))
    lines = [
        f'<span class="line">{escape(str(name))} <b>{value_html(member)}</b></span>'
        for name, member in members[:_MEMBERS]
    ]
    return "<br>".join([*lines, f"… {len(members) - _MEMBERS} more"] if len(members) > _MEMBERS else lines)


def _tensor(value: Mapping[str, Any]) -> str:
    """The first cells; the type shows where the pointer is."""
    cells = next((value[name] for name in ("values", "cells", "blocks") if name in value), ())
    if isinstance(cells, list) and all(isinstance(each, int | float) for each in cells[:_NUMBERS]):
        more = f", … {len(cells)} values" if len(cells) > _NUMBERS else ""
        shown = f"[{', '.join(number(each) for each in cells[:_NUMBERS])}{more}]"
    else:
        shown = marked(_json(cells))
    return f'<span class="line" title="{escape(str(value["type"]))}">{shown}</span>'


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def marked(text: str) -> str:
    """Escaped text in which what the service has put in <hi> is marked. Of long text the part around the first mark is
    shown; no mark is cut in two, and a tag without its other half is text."""
    cut = _cut(text) if len(text) > _CELL_CHARACTERS else text
    parts = _MARKED.split(cut)
    shown = [f"<mark>{_plain(part)}</mark>" if place % 2 else _plain(part) for place, part in enumerate(parts)]
    return "".join(shown)


def _plain(text: str) -> str:
    return escape(text).replace(escape(_GAP), " … ")


def _cut(text: str) -> str:
    start = 0
    first = text.find("<hi>")
    if first > _CELL_CHARACTERS - _LEAD_CHARACTERS:
        start = text.find(" ", first - _LEAD_CHARACTERS, first) + 1 or first - _LEAD_CHARACTERS
    kept = text[start : start + _CELL_CHARACTERS]
    if start + _CELL_CHARACTERS < len(text):
        kept = _HALF_TAG.sub("", kept)
        if kept.rfind("<hi>") > kept.rfind("</hi>"):
            kept = kept[: kept.rindex("<hi>")] or _MARKED.sub(r"\1", text[start:])[:_CELL_CHARACTERS]
        kept += "…"
    return f"…{kept}" if start else kept


def number(value: float) -> str:
    """A number with at most six digits that count."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_LEFT_OUT: Final = ("sddocname", "documentid")
_MOST_ROWS: Final = 100
_MOST_COLUMNS: Final = 40
_MOST_EXPLAINED: Final = 20
_ID_START: Final = compile_later(r"id:[^:]*:[^:]*:[^:]*:")
_LINE: Final = "color-mix(in srgb, currentColor 18%, transparent)"
_STYLE: Final = f"""<style>
div.paperwasp {{ overflow-x: auto; color: inherit; font-size: 13px; line-height: 1.45; }}
div.paperwasp table {{ border-collapse: collapse; margin: 0 0 .6em; font-size: inherit; }}
div.paperwasp caption {{ caption-side: top; text-align: left; padding: .2em .7em; opacity: .7; white-space: nowrap; }}
div.paperwasp :is(th, td) {{ padding: .3em .7em; text-align: left; vertical-align: top; white-space: normal;
  max-width: 30em; overflow-wrap: break-word; border: 0; border-bottom: 1px solid {_LINE}; }}
div.paperwasp th {{ font-weight: 600; white-space: nowrap; border-bottom-width: 2px; }}
div.paperwasp td.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
div.paperwasp mark {{ background: #ffe08a; color: #1f1f1f; border-radius: 2px; padding: 0 .15em; }}
div.paperwasp .line {{ white-space: nowrap; }}
div.paperwasp p {{ margin: .2em .7em .6em; }}
div.paperwasp p.problem {{ border-left: 3px solid #d33; padding: .3em .7em;
  background: color-mix(in srgb, #d33 14%, transparent); }}
div.paperwasp details {{ margin: .15em 0 .15em 1em; }}
div.paperwasp summary {{ cursor: pointer; }}
div.paperwasp .leaf {{ margin: .15em 0 .15em 2.1em; }}
div.paperwasp code {{ background: none; color: inherit; padding: 0; }}
div.paperwasp .dim {{ opacity: .7; }}
div.paperwasp .good {{ color: #2a9d4a; }}
div.paperwasp .bad {{ color: #e0405a; }}
</style>"""

Row = Mapping[str, Any]


def framed(*parts: str) -> str:
    """Return HTML for a notebook, with its style."""
    return f'<div class="paperwasp">{_STYLE}{"".join(parts)}</div>'


def hits_html(rows: Sequence[Row], total: int, problems: Iterable[str]) -> str:
    """A table of hits with how many there are, and above it what is wrong. Ids that say nothing, and a source that all
    hits have in common, are left out; what all ids begin with is said once."""
    said = "".join(f'<p class="problem">{escape(problem)}</p>' for problem in problems)
    counted = f"{len(rows)} of {total} hits"
    if not rows:
        return f"{said}<p>{counted}</p>"
    left_out = {*_LEFT_OUT, *_common(rows)}
    shown = [{name: value for name, value in row.items() if name not in left_out} for row in rows]
    if "id" not in left_out and (start := _common_start([str(row.get("id", "")) for row in rows])):
        shown = [{**row, "id": str(row["id"]).removeprefix(start)} for row in shown]
        counted += f"; ids begin with {start}"
    return said + table_html(shown, counted)


def _common_start(ids: Sequence[str]) -> str | None:
    """`id:namespace:type::`, where the ids of all hits begin alike."""
    starts = {found[0] if (found := _ID_START.match(each)) else None for each in ids}
    return starts.pop() if len(starts) == 1 else None


def _common(rows: Sequence[Row]) -> Iterable[str]:
    if len({row.get("source") for row in rows}) == 1:
        yield "source"
    if all(str(row.get("id", "")).startswith("index:") for row in rows):
        yield "id"


def table_html(rows: Sequence[Row], caption: str) -> str:
    """A table with a column for each name that any row has, in the order of first sight; not more than a page shows."""
    shown = rows[:_MOST_ROWS]
    names = list(dict.fromkeys(name for row in shown for name in row))
    for count, most, what in ((len(rows), _MOST_ROWS, "rows"), (len(names), _MOST_COLUMNS, "columns")):
        if count > most:
            caption += f"; the first {most} of {count} {what}"
    names = names[:_MOST_COLUMNS]
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(cell(row[name]) if name in row else '<td></td>' for name in names)}</tr>" for row in shown
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def explanation_html(hits: Sequence[Row]) -> str:
    """A tree to unfold for each hit: phases, and below each the expression with its values."""
    shown = "".join(_explained(place, hit) for place, hit in enumerate(hits[:_MOST_EXPLAINED], 1))
    if not hits:
        return "<p>0 hits</p>"
    return shown + (f"<p>… {len(hits) - _MOST_EXPLAINED} more hits</p>" if len(hits) > _MOST_EXPLAINED else "")


def _explained(place: int, hit: Row) -> str:
    explanation = hit.get("explanation", {})
    note = f"<div>{escape(str(explanation['note']))}</div>" if "note" in explanation else ""
    phases = "".join(_phase(phase) for phase in explanation.get("phases", ()))
    title = f"#{place} <b>{value_html(hit.get('relevance', 0.0))}</b> {marked(_name(hit))}"
    return _folded(title, note + phases, is_open=place == 1)


def _name(hit: Row) -> str:
    """Return the field that people know the hit by."""
    fields = hit.get("fields", {})
    identity = str(fields.get("documentid") or hit.get("id", ""))
    if not identity.startswith("index:"):
        return identity
    return next((value for value in fields.values() if isinstance(value, str)), identity)


def _phase(phase: Row) -> str:
    note = f"<div>{escape(str(phase['note']))}</div>" if "note" in phase else ""
    tree = _node(phase["tree"]) if "tree" in phase else ""
    return _folded(f"<b>{number(phase['score'])}</b> {escape(str(phase['phase']))}", note + tree, is_open=True)


def _node(node: Row) -> str:
    title = f"<code>{escape(str(node['expression']))}</code>"
    if "feature" in node:
        title += f" = <i>{escape(str(node['feature']))}</i>"
    if node.get("taken") is False:
        title = f"<s>{title}</s> not taken"
    elif "value" in node:
        title = f"<b>{value_html(node['value'])}</b> {title}"
    if "shown" in node:
        title += " (shown above)"
    below = "".join(_node(child) for child in node.get("children", ()))
    if "cut" in node:
        below += f"<div>… {escape(str(node['cut']))}</div>"
    return _folded(title, below, is_open=False) if below else f'<div class="leaf">{title}</div>'


def _folded(title: str, content: str, *, is_open: bool) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{title}</summary>{content}</details>"
