"""The words of indexes whose values are one word each, within a simple query: they may have any characters.

With `match: exact` a word ends at the field's terminator. With `match: word` it ends at white space, unless it stands
in quotes; stars, weights and the parentheses of a group at its end are not part of it, where they look like that.
Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#match
"""

from __future__ import annotations

from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.patterns import PrefixItem, SubstringItem, SuffixItem
from paperwasp.search.operators.word import WordItem

_RUN: Final = compile_later(r"\S+")
_STARS: Final = "*\uff0a"
_AFTER: Final = {
    True: compile_later(rf"(?:[{_STARS}]|!+[0-9]*|\))*(?=\s|\Z)"),
    False: compile_later(rf"(?:[{_STARS}]|!+[0-9]*)*(?=\s|\Z)"),
}
"""Whether a group is open → what may stand behind a word that ends."""


def terminated(index: str, text: str, at: int, terminator: str) -> tuple[Item | None, int]:
    """(the term from `at` to the terminator, where what follows it begins); without one it is all that is left. A star
    right behind the terminator asks for what begins with the word."""
    end = text.find(terminator, at)
    word, after = (text[at:], len(text)) if end < 0 else (text[at:end], end + len(terminator))
    is_open = bool(word) and text[after : after + 1] in tuple(_STARS)
    return (_term(index, word, star=False, is_open=is_open) if word else None), after + is_open


def whole_word(index: str, text: str, at: int, in_group: bool) -> tuple[Item | None, int]:
    """(the term that begins at `at`, where it ends); no term: there is nothing but white space."""
    run = _RUN.match(text, at)
    if run is None:
        return None, at
    star = text[at] in _STARS and len(run.group()) > 1
    quoted = _find_quoted(text, at + star, in_group)
    if quoted is not None:
        word, end = quoted
        is_open = text[end : end + 1] in tuple(_STARS)
    else:
        start = at + star
        end = start + _length(text[start : run.end()], in_group)
        word = text[start:end]
        is_open = text[end : end + 1] in tuple(_STARS)
    return _term(index, word, star, is_open), end + is_open


def _find_quoted(text: str, at: int, in_group: bool) -> tuple[str, int] | None:
    """The text between the quote here and the one that ends a word; None: there is no such pair."""
    if text[at : at + 1] != '"':
        return None
    end = text.find('"', at + 1)
    while end >= 0 and not _AFTER[in_group].match(text, end + 1):
        end = text.find('"', end + 1)
    return None if end < 0 else (text[at + 1 : end], end + 1)


def _length(run: str, in_group: bool) -> int:
    """How much of a run of characters is the word: less one star, one weight, and the ends of groups behind it."""
    end, stars, weights = len(run), 1, 1
    while end > 1:
        digits = len(run[:end]) - len(run[:end].rstrip("0123456789"))
        last = run[end - digits - 1 : end - digits]
        if last == "!" and weights:
            end, weights = len(run[: end - digits].rstrip("!")), 0
        elif not digits and stars and last in _STARS:
            end, stars = end - 1, 0
        elif not digits and in_group and last == ")":
            end -= 1
        else:
            break
    return max(end, 1)


def _term(index: str, word: str, star: bool, is_open: bool) -> Item:
    if star:
        return SubstringItem(index, word) if is_open else SuffixItem(index, word)
    return PrefixItem(index, word) if is_open else WordItem(index, word)
