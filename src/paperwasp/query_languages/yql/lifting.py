"""Statements that differ only in their literals share one reading: the literals are lifted out, and filled in again.

    title contains "blue" and year > 1959   →   outline: title contains □ and year > □     literals: blue, 1959

A literal is lifted where the statement is the same tree whatever it says: its value is copied into an item and decides
nothing. Which literals these are shows when a statement is read: each is read as a value that knows its number (a
slot), and those that arrive in the tree as they were can be replaced there. All others are fixed: statements that
differ in them are read separately. The same holds for the values of parameters (`@name`).

Where there are no escapes and comments, literals are found at once; else token by token, as the parser finds them. A
comment, and all that follows a `|`, is of the outline as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import Slot, SlotText, slot_of, unescaped

_NUMBER: Final = r"(?:(?<=[=<>])|(?<=[=<>][ ]))-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?![\w.])"
"""A number after a sign of comparison."""
_LITERAL: Final = compile_later(rf"""("[^"\\]*"|'[^'\\]*'|{_NUMBER})""", re.ASCII)
"""A string without escapes, or such a number."""
_MARK: Final = compile_later("[\"'=<>]")
"""The characters that stand around a literal, or before it."""
_UNCLEAR: Final = compile_later(r"""["'\\]|//|/\*""")
"""A sign, between literals, that strings may be elsewhere: in a comment, around a `|`, with escapes."""
_ESCAPE: Final = r"""\\(?:[btnfr"'\\/]|u[0-9a-fA-F]{4})"""
_TOKEN: Final = compile_later(
    rf"""("[^"\\]*(?:{_ESCAPE}[^"\\]*)*"|'[^'\\]*(?:{_ESCAPE}[^'\\]*)*'|{_NUMBER})"""
    r"""|("[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|//[^\r\n]*|/\*.*?\*/|\|.*)""",
    re.ASCII | re.DOTALL,
)
"""A literal, its string perhaps with escapes; or what literals are not looked for in: a string with escapes that are
none, a comment, all that follows a `|`. As the tokens of YQL are."""
_GAP: Final = "\0"


Values = Sequence[str | int | float]
"""The values of a statement's slots: of its literals, then of its parameters."""
Fill = Callable[[Values], Item]


class Outline(NamedTuple):
    """A statement without its literals, whose kinds it keeps: `"` for a string, `i` and `f` for numbers."""

    text: str
    kinds: str = ""


def outline_of(statement: str) -> tuple[Outline, Sequence[str]]:
    """The outline of a statement, and its literals as they are written."""
    before, bar, grouping = statement.partition("|")
    if not _MARK.search(before):
        return Outline(statement), ()
    parts = _LITERAL.split(before)
    text, literals = _GAP.join(parts[::2]), parts[1::2]
    if _UNCLEAR.search(text):
        return _outline_by_tokens(statement)
    return Outline(text + bar + grouping, "".join([_kind(each) for each in literals])), literals


def _outline_by_tokens(statement: str) -> tuple[Outline, Sequence[str]]:
    """The same, of any statement."""
    if _GAP in statement:
        return Outline(statement), ()
    parts = _TOKEN.split(statement)
    literals = [each for each in parts[1::3] if each is not None]
    # Of each token one of two parts is there: a literal leaves a gap, all else stays as it is.
    parts[1::3] = [None if each is None else _GAP for each in parts[1::3]]
    return Outline("".join(filter(None, parts)), "".join([_kind(each) for each in literals])), literals


def _kind(literal: str) -> str:
    return '"' if literal[0] in "\"'" else "f" if "." in literal else "i"


def value_of(literal: str) -> str | int | float:
    """The value of a literal that was lifted."""
    if literal[0] in "\"'":
        return unescaped(literal[1:-1])
    return float(literal) if "." in literal else int(literal)


def slots_of(statement: str) -> dict[int | str, Slot]:
    """The values of the literals of an outline, as slots, by their offset in the statement."""
    _, literals = outline_of(statement)
    if not literals:
        return {}
    starts = [match.start() for match in _TOKEN.finditer(statement) if match[1] is not None]
    found = enumerate(zip(starts, literals, strict=True))
    return {start: slot_of(value_of(literal), number) for number, (start, literal) in found}


class Template(Struct, frozen=True):
    """A tree with slots. `fill` gives the tree for other values; None: there are no slots in it."""

    tree: Item
    slots: tuple[int, ...]
    """The numbers of the slots in it, as often as they are."""
    fill: Fill | None


def template_of(tree: Item) -> Template:
    """The template of a tree that was read with slots."""
    return Template(tree, tuple(_slots(tree)), _fill_of(tree))


def _slots(item: Item) -> Iterator[int]:
    values = (getattr(item, name) for name in item.copied)
    yield from (value.slot for value in (*values, *item.parts_of()) if isinstance(value, Slot))
    for part in item.parts_of():
        if isinstance(part, Item):
            yield from _slots(part)


def _fill_of(item: Item) -> Fill | None:
    """Return the function that makes the item from the values; None where the item has no slot."""
    parts = item.parts_of()
    if parts:
        fills = [
            _fill_of(part) if isinstance(part, Item) else itemgetter(part.slot) if isinstance(part, SlotText) else None
            for part in parts
        ]
        return _fill_parts(item, fills, parts) if any(fills) else None
    own = {name: value.slot for name in item.copied if isinstance(value := getattr(item, name), Slot)}
    if not own:
        return None
    if type(item) is WordItem:
        slot, index, annotations = own["word"], item.index, item.annotations
        return lambda values: WordItem(index, values[slot], annotations=annotations)  # type: ignore[arg-type]
    changes = tuple(own.items())
    return lambda values: replace(item, **{name: values[slot] for name, slot in changes})


def _fill_parts(item: Item, fills: Sequence[Callable[[Values], Any] | None], parts: tuple[str | Item, ...]) -> Fill:
    """Return the function that makes the item; each of `fills` makes a part of it, None for one without a slot."""
    pairs = tuple(zip(parts, fills, strict=True))

    def make_parts(values: Values) -> tuple[Any, ...]:
        return tuple([part if make is None else make(values) for part, make in pairs])

    kind: Any = type(item)
    if item.__struct_fields__ == ("children",):
        return lambda values: kind(make_parts(values))
    return lambda values: item.with_parts(make_parts(values))
