"""Marked texts of fields that match grams: of overlapping grams the text that they are of.

Vespa highlights the grams of such a text, each on its own, and makes the text of them again afterwards. The mark of a
gram that overlaps with what is shown already moves to where the gram begins.

Vespa: NGramSearcher.java and JuniperSearcher.java of its container-search
Differs: teasers that have another name than their field are made texts again as well; Vespa shows their grams.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from paperwasp.schema.teaser_settings import Tags
from paperwasp.text.linguistics.text import is_in_word

_MARK: Final = "\x1f"
_LEFT_OUT: Final = "\x1e"
GRAM_TAGS: Final = Tags(_MARK, _MARK, _LEFT_OUT)
"""The marks in a text of grams, until it is a text again."""

_is_in_word = lru_cache(maxsize=4096)(is_in_word)


def text_of_grams(marked: str, size: int, tags: Tags) -> str:
    """The text of grams of `size` characters that are marked by GRAM_TAGS, with other tags."""
    return _tagged(_joined(marked, size), tags).replace(_LEFT_OUT, tags.separator)


def _joined(marked: str, size: int) -> str:
    shown: list[str] = []
    overlap = size - 1
    in_word = 0
    is_marked = False
    at = 0
    while at < len(marked):
        character, following = marked[at], marked[at + 1 : at + 2]
        at += 1
        if character == _MARK == following:
            at += 1  # what is marked goes on
        elif _is_in_word(character):
            in_word += 1
            if in_word < size or in_word % size == 0:
                shown.append(character)
        else:
            is_mark = character == _MARK
            is_marked ^= is_mark
            if not (is_mark and _is_in_word(following)):
                in_word = 0
            before = max(0, len(shown) - overlap)
            begins_before = is_mark and is_marked and len(shown) >= overlap and all(map(_is_in_word, shown[before:]))
            shown.insert(before if begins_before else len(shown), character)
    return "".join(shown)


def _tagged(marked: str, tags: Tags) -> str:
    """The text with tags for the marks; marked parts that touch are one."""
    first, *pieces = marked.split(_MARK)
    written = [first]
    is_open = False
    for number, piece in enumerate(pieces):
        is_inside = number % 2 == 0
        if is_inside and not is_open:
            written.append(tags.open)
        is_open = is_inside or (piece == "" and number + 1 < len(pieces))
        if not is_open:
            written.append(tags.close)
        written.append(piece)
    return "".join([*written, tags.close] if is_open else written)
