"""Values of fields as the cells of tables. All text is escaped: what documents hold is never taken for HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later

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
