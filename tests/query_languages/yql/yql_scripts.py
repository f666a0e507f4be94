"""Golden scripts of the query languages: cases between blank lines, each `input`, a line `---`, `output`.

The lines before the first blank line name the script's authority. PAPERWASP_REWRITE_SCRIPTS=1 writes what the code
says into the script instead of comparing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import NODEFAULT

from paperwasp.query_languages.yql.user_items import UserQueryItem, UserTextItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.labeled import LabeledItem
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, Annotations
from tests.struct_fields import defaults_of

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
    children = [dump(child) for child in item.children_of()]
    if isinstance(item, NearItem):
        count = len(item.children)
        children = [*children[:count], *(f"!{child}" for child in children[count:])]
    annotations = _annotations(item.annotations) if isinstance(item, EquivItem) else ""
    return f"{_name(item)}({', '.join(children)}){annotations}" if children else _name(item)


def _name(item: Item) -> str:
    name = type(item).__name__.removesuffix("Item")
    settings: list[object] = []
    if isinstance(item, WeakAndItem) and item.target_hits:
        settings = [item.target_hits]
    elif isinstance(item, LabeledItem):
        settings = [item.label, item.score]
    elif isinstance(item, NearItem):
        name = "ONear" if item.ordered else name
        settings = [item.distance, *([item.exclusion_distance] if item.exclusion_distance >= 0 else [])]
    elif isinstance(item, SameElementItem):
        settings = [item.index, *item.elements]
    return f"{name}[{' '.join(map(str, settings))}]" if settings else name


def _term(item: TermItem) -> str:
    if isinstance(item, WordItem):
        return repr(item.word)
    if isinstance(item, PhraseItem):
        return f"phrase({', '.join(repr(word) if isinstance(word, str) else dump(word) for word in item.words)})"
    if isinstance(item, RangeItem):
        low = "" if item.low is None else repr(item.low)
        high = "" if item.high is None else repr(item.high)
        limit = f";{item.hit_limit}" if item.hit_limit else ""
        return f"{'<['[item.low_inclusive]}{low};{high}{limit}{'>]'[item.high_inclusive]}"
    return f"{type(item).__name__.removesuffix('Item')}({', '.join(_settings(item))})"


def _settings(item: TermItem) -> list[str]:
    """What the item says, without what is as by default."""
    return [
        repr(value) if default is NODEFAULT else f"{name}={value!r}"
        for name, default in defaults_of(item).items()
        if name not in ("index", "annotations") and (value := getattr(item, name)) != default
    ]


def _annotations(annotations: Annotations) -> str:
    said = [
        f"{name}={value!r}"
        for name in Annotations.__struct_fields__
        if (value := getattr(annotations, name)) != getattr(DEFAULT_ANNOTATIONS, name)
    ]
    return f"{{{', '.join(said)}}}" if said else ""


def _user_text(item: UserTextItem) -> str:
    text = f"@{item.parameter}" if item.parameter is not None else repr(item.text)
    grammar = item.grammar.name or ("userInput" if item.fields_allowed else "text")
    parts = [f" {name}={value}" for name in _PARTS if (value := getattr(item.grammar, name))]
    more = [f" {name}={value}" for name in ("target_hits", "distance") if (value := getattr(item, name))]
    flags = [f" {name}" for name in ("allow_empty", "nfkc") if getattr(item, name)]
    return f"{item.default_index}:{grammar}({text}{''.join(parts + more + flags)}){_annotations(item.annotations)}"


_PARTS = ("composite", "tokenization", "syntax", "profile")
