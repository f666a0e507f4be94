"""Golden scripts of the query languages: cases between blank lines, each `input`, a line `---`, `output`.

The lines before the first blank line name the script's authority. PAPERWASP_REWRITE_SCRIPTS=1 writes what the code
says into the script instead of comparing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from paperwasp.query.items import (
    DEFAULT_ANNOTATIONS,
    Annotations,
    Item,
    PhraseItem,
    RangeItem,
    TermItem,
    WeakAndItem,
    WordItem,
)
from paperwasp.yql.user_text import UserQueryItem, UserTextItem

SCRIPTS = Path(__file__).parent / "scripts"


def run(path: Path, answer: Callable[[str], str]) -> None:
    """Compares `answer` of each input of a script with its output, or rewrites the script."""
    head, *cases = path.read_text().strip("\n").split("\n\n")
    parts = [_parts(case) for case in cases]
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        path.write_text("\n\n".join([head, *(f"{text}\n---\n{answer(text)}" for text, _ in parts)]) + "\n")
    for text, expected in parts:
        assert answer(text) == expected, f"{path.name}:\n{text}"


def _parts(case: str) -> tuple[str, str]:
    text, _, output = f"\n{case}".partition("\n---")
    return text[1:], output.removeprefix("\n")


def dump(item: Item | None) -> str:
    """A tree on one line: operators with their children, terms as index:what."""
    if item is None:
        return "nothing"
    if isinstance(item, TermItem):
        return f"{item.index}:{_term(item)}{_annotations(item.annotations)}"
    if isinstance(item, UserQueryItem):
        return "userQuery"
    if isinstance(item, UserTextItem):
        return _user_text(item)
    name = type(item).__name__.removesuffix("Item")
    if isinstance(item, WeakAndItem) and item.target_hits:
        name += f"[{item.target_hits}]"
    children = item.children_of()
    return f"{name}({', '.join(map(dump, children))})" if children else name


def _term(item: TermItem) -> str:
    if isinstance(item, WordItem):
        return repr(item.word)
    if isinstance(item, PhraseItem):
        return f"phrase{item.words}"
    assert isinstance(item, RangeItem)
    low = "" if item.low is None else repr(item.low)
    high = "" if item.high is None else repr(item.high)
    limit = f";{item.hit_limit}" if item.hit_limit else ""
    return f"{'<['[item.low_inclusive]}{low};{high}{limit}{'>]'[item.high_inclusive]}"


def _annotations(annotations: Annotations) -> str:
    said = [
        f"{field.name}={value!r}"
        for field in fields(Annotations)
        if (value := getattr(annotations, field.name)) != getattr(DEFAULT_ANNOTATIONS, field.name)
    ]
    return f"{{{', '.join(said)}}}" if said else ""


def _user_text(item: UserTextItem) -> str:
    text = f"@{item.parameter}" if item.parameter is not None else repr(item.text)
    more = [f" target_hits={item.target_hits}"] * bool(item.target_hits) + [" allow_empty"] * item.allow_empty
    return f"{item.default_index}:{item.type}({text}{''.join(more)}){_annotations(item.annotations)}"
