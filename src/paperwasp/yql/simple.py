"""The simple query language: what people type into a search box.

Every text is a valid query: what makes no sense is skipped. A run of characters without white space (`foo-bar`,
`c++`, `http://a.b/c`) becomes one WordItem with its text as written, because only its field knows how to make tokens
of it; of several tokens it is a phrase. A plain number is a WordItem too, which a numeric attribute reads as a number.

The grammar has two layers: `_Reader` knows the terms, with field, weight, quotes and ranges; a query type knows how
terms are put together. Types are in one table at the end.
Vespa: https://docs.vespa.ai/en/reference/querying/simple-query-language.html and `model.type` in the query API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from unicodedata import category

import regex

from paperwasp import limits
from paperwasp.errors import IllegalQuery, LanguageError
from paperwasp.parsing.tokens import position_of
from paperwasp.query.items import (
    AndItem,
    Annotations,
    Item,
    NotItem,
    OrItem,
    PhraseItem,
    RangeItem,
    RankItem,
    TermItem,
    TrueItem,
    WeakAndItem,
    WordItem,
)
from paperwasp.yql.canonical import canonical

_SPACES = re.compile(r"\s*")
_NO_SPACE = re.compile(r"\S*")
_QUOTES = '"\u201c\u201d\u201e\u201f\u2039\u203a\u00ab\u00bb\u301d\u301e\u301f\uff02'
_BREAKS = r"\s()\[\];<>!" + _QUOTES
_RUN = re.compile(rf"[^{_BREAKS}]+")
_QUOTED = re.compile(rf"[{_QUOTES}]+([^{_QUOTES}]*)[{_QUOTES}]*")
_INDEX = re.compile(r"\[?([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*):")
_WEIGHT = re.compile(r"!(?:([0-9]{1,9})|!*)")
_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+(?:'[\p{L}\p{N}\p{M}]+)*|\p{So}")
_NUMBER = r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?"
_RANGE = re.compile(
    rf"\[\s*+({_NUMBER})?\s*+;\s*+({_NUMBER})?\s*+(?:;\s*+(-?[0-9]{{1,9}})?\s*+)?\]?(?=[\s\];)!]|\Z)"
    rf"|([<>])({_NUMBER})(?=[\s\];)!]|\Z)"
)
_NOTHING: Final[frozenset[str]] = frozenset()


class _Reader:
    """A cursor over the text of a query that reads one term, or one group of terms, at a time."""

    def __init__(self, text: str, default_index: str, indexes: frozenset[str]) -> None:
        self.text = text
        self.at = 0
        self.in_group = False
        self.default_index = default_index
        self._indexes = indexes

    def skip_spaces(self) -> bool:
        """Moves to the next character that is not white space; False at the end."""
        self.at = _SPACES.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at < len(self.text)

    def skip(self) -> None:
        """Moves past what no term starts with: a run or a quote with nothing to search for, or one character."""
        noise = _QUOTED.match(self.text, self.at) or _RUN.match(self.text, self.at)
        self.at = noise.end() if noise else self.at + 1

    def prefix(self, character: str) -> bool:
        """Moves past `character` if it is here and something that is not white space follows."""
        after = self.at + 1
        found = self.text.startswith(character, self.at) and not self.text[after : after + 1].isspace()
        self.at += found
        return found

    def term(self) -> tuple[Item | None, bool]:
        """The term here, with its field and weight, and whether it names its field; no term: the cursor stays."""
        start = self.at
        index = self._index()
        item = self._range(index) or self._phrase(index) or self._word(index)
        if item is None:
            self.at = start
        return (self._weighted(item) if item else None), index is not self.default_index

    def _index(self) -> str:
        while (match := _INDEX.match(self.text, self.at)) and match.group(1) in self._indexes:
            self.at = match.end()
            if self._something_ahead():
                return match.group(1)
            self.skip_spaces()
        return self.default_index

    def _something_ahead(self) -> bool:
        """Whether anything to search for follows without white space between; if not, moves past what does."""
        ahead = _QUOTED.match(self.text, self.at) or _NO_SPACE.match(self.text, self.at)
        assert ahead is not None
        if _searchable(ahead.group()):
            return True
        self.at = ahead.end()
        return False

    def _range(self, index: str) -> Item | None:
        match = _RANGE.match(self.text, self.at)
        if match is None:
            return None
        low, high, limit, sign, bound = match.groups()
        if sign is None and low is None and high is None:
            return None
        self.at = match.end()
        if sign == "<":
            return RangeItem(index, None, _number(bound), high_inclusive=False)
        if sign == ">":
            return RangeItem(index, _number(bound), None, low_inclusive=False)
        return _closed_range(index, _number(low), _number(high), int(limit or 0))

    def _phrase(self, index: str) -> Item | None:
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            return None
        words = tuple(word for word in match.group(1).split() if _searchable(word))
        if not words:
            return None
        self.at = match.end()
        return WordItem(index, words[0]) if len(words) == 1 else PhraseItem(index, words)

    def _word(self, index: str) -> Item | None:
        match = _RUN.match(self.text, self.at)
        if match is None or not _searchable(match.group()):
            return None
        word = match.group()
        if "*" in word or "\uff0a" in word:
            word = self._without_stars(word)
        self.at = match.end()
        return WordItem(index, word)

    def _without_stars(self, word: str) -> str:
        """Stars inside a run separate words; at the ends of a single word they ask for more than the word."""
        inner = word.strip("*\uff0a")
        if inner != word and inner.isalnum():
            raise LanguageError(
                f"'{word}' asks for a prefix, suffix or substring search, which is not supported yet",
                position_of(self.text, self.at, "query"),
            )
        return inner

    def _weighted(self, item: Item) -> Item:
        match = _WEIGHT.match(self.text, self.at)
        if match is None or not isinstance(item, TermItem):
            return item
        self.at = match.end()
        weight = int(match.group(1)) if match.group(1) else 100 + 50 * len(match.group())
        return replace(item, annotations=Annotations(weight=weight))


def _searchable(text: str) -> bool:
    return text.isalnum() or any(c.isalnum() or category(c) == "So" for c in text)


def _number(text: str | None) -> int | float | None:
    if text is None:
        return None
    return float(text) if "." in text else int(text)


def _closed_range(index: str, low: int | float | None, high: int | float | None, hit_limit: int) -> RangeItem:
    if low is not None and high is not None and low > high:
        low, high = high, low
    return RangeItem(index, low, high, hit_limit=hit_limit)


Compose = Callable[[tuple[Item, ...]], Item]


def _all_terms(reader: _Reader, compose: Compose) -> Item | None:
    """`+` and nothing in front ask for the same; `-` excludes; `(a b)` asks for one of them."""
    positives: list[Item] = []
    negatives: list[Item] = []
    while reader.skip_spaces():
        start = reader.at
        if (item := _excluded(reader, compose)) is not None:
            negatives.append(item)
        elif (item := _included(reader) or _term_or_group(reader)) is not None:
            positives.append(item)
        elif reader.at == start:
            reader.skip()
    return _without(compose(tuple(positives)), negatives) if positives else None


def _term_or_group(reader: _Reader) -> Item | None:
    return reader.term()[0] or _group(reader)


def _included(reader: _Reader) -> Item | None:
    start = reader.at
    if not reader.prefix("+"):
        return None
    item = _term_or_group(reader)
    if item is None and reader.at == start + 1:
        reader.at = start
    return item


def _excluded(reader: _Reader, compose: Compose, *, signed_numbers: bool = True) -> Item | None:
    """An item after `-`. With `signed_numbers`, `-5` without a field is a number below zero instead."""
    start = reader.at
    if not reader.prefix("-"):
        return None
    item, names_index = reader.term()
    if item is None:
        item = _group(reader)
        if item is None and reader.at == start + 1:
            reader.at = start
        return compose(item.children) if isinstance(item, OrItem) else item
    if signed_numbers and not names_index and isinstance(item, WordItem) and _is_number(item.word):
        reader.at = start
        return None
    return item


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdecimal()


def _without(item: Item, negatives: list[Item]) -> Item:
    return NotItem((item, *negatives)) if negatives else item


def _group(reader: _Reader) -> Item | None:
    """`(…)`: terms as of type any. Parentheses inside mean nothing. Moves past a group that holds nothing."""
    if reader.in_group or not reader.text.startswith("(", reader.at):
        return None
    reader.at += 1
    reader.in_group = True
    item = _any_terms(reader)
    reader.in_group = False
    return item


def _any_terms(reader: _Reader) -> Item | None:
    """`+` is required and `-` excluded; the rest are alternatives, or only rank when something is required."""
    required: list[Item] = []
    negatives: list[Item] = []
    optional: list[tuple[Item, bool]] = []
    while reader.skip_spaces():
        start = reader.at
        if reader.in_group and reader.text[start] == ")":
            reader.at += 1
            break
        if (item := _included(reader)) is not None:
            required.append(item)
        elif (item := _excluded(reader, AndItem, signed_numbers=False)) is not None:
            negatives.append(item)
        elif (item := reader.term()[0]) is not None:
            optional.append((item, False))
        elif (item := _group(reader)) is not None:
            optional.append((item, True))
        elif reader.at == start:
            reader.skip()
    return _combined(required, negatives, _alternatives(optional))


def _combined(required: list[Item], negatives: list[Item], optional: Item | None) -> Item | None:
    if not required:
        return None if optional is None else _without(optional, negatives)
    must = _without(AndItem(tuple(required)), negatives)
    return must if optional is None else RankItem((must, *_parts(optional)))


def _alternatives(items: list[tuple[Item, bool]]) -> Item | None:
    """One of the items; but a single term right before a group only ranks what the group finds."""
    if not items:
        return None
    if [is_group for _, is_group in items[:2]] == [False, True]:
        groups = [item for item, is_group in items if is_group]
        return RankItem((*reversed(groups), *(item for item, is_group in items if not is_group)))
    return OrItem(tuple(item for item, _ in items))


def _parts(item: Item) -> tuple[Item, ...]:
    return item.children if isinstance(item, OrItem | RankItem) else (item,)


def _web_terms(reader: _Reader) -> Item | None:
    """As type all without groups, and a capital `OR` between terms asks for one of its sides."""
    alternatives: list[list[Item]] = [[]]
    negatives: list[Item] = []
    while reader.skip_spaces():
        if (item := _excluded(reader, AndItem)) is not None:
            negatives.append(item)
            continue
        item = _included(reader) or reader.term()[0]
        if item is None:
            reader.skip()
        elif alternatives[-1] and isinstance(item, WordItem) and item.word == "OR":
            alternatives.append([])
        else:
            alternatives[-1].append(item)
    sides = tuple(AndItem(tuple(side)) for side in alternatives if side)
    return _without(OrItem(sides), negatives) if sides else None


def _tokens(reader: _Reader) -> list[Item]:
    return [WordItem(reader.default_index, word) for word in _TOKEN.findall(reader.text)]


def _phrase_of_all(reader: _Reader) -> Item | None:
    words = tuple(_TOKEN.findall(reader.text))
    if len(words) < 2:
        return WordItem(reader.default_index, words[0]) if words else None
    return PhraseItem(reader.default_index, words)


def _weak_and_of_all(reader: _Reader) -> Item | None:
    words = _tokens(reader)
    return WeakAndItem(tuple(words)) if words else None


def _one_word(reader: _Reader) -> Item | None:
    return WordItem(reader.default_index, reader.text) if reader.text else None


def _raw_word(reader: _Reader) -> Item | None:
    return WordItem(reader.default_index, reader.text, annotations=_RAW) if reader.text else None


_RAW: Final = Annotations(implicit_transforms=False)

QUERY_TYPES: Final[Mapping[str, Callable[[_Reader], Item | None]]] = MappingProxyType(
    {
        "all": lambda reader: _all_terms(reader, AndItem),
        "any": _any_terms,
        "weakAnd": lambda reader: _all_terms(reader, WeakAndItem),
        "web": _web_terms,
        "phrase": _phrase_of_all,
        "tokenize": _weak_and_of_all,
        "linguistics": _weak_and_of_all,
        "raw": _raw_word,
        "segment": _one_word,
    }
)
"""Query type → what reads a query of it. `raw` and `segment` exist for YQL's userInput and text only."""

_PLAIN_COMPOSE: Final[Mapping[str, Compose]] = MappingProxyType({"all": AndItem, "any": OrItem, "weakAnd": WeakAndItem})


def query_type(name: str) -> str:
    """The query type of that name, in any case. Errors: IllegalQuery."""
    for known in QUERY_TYPES:
        if known.lower() == name.lower() and known not in ("raw", "segment"):
            return known
    if name.lower() in ("advanced", "programmatic", "select", "yql", "json"):
        raise IllegalQuery(f"Could not set 'model.type' to '{name}': this query type is not supported yet")
    raise IllegalQuery(f"Could not set 'model.type' to '{name}': no such query type")


@lru_cache(maxsize=4096)
def parse_simple(
    text: str, type: str = "weakAnd", default_index: str = "default", indexes: frozenset[str] = _NOTHING
) -> Item | None:
    """The canonical tree of a text in the simple query language; None when it holds nothing to search for.

    `indexes` are the names that may stand before a colon; after any other the colon is part of the word.
    Errors: LanguageError where the text asks for what is not supported yet; IllegalQuery if it is too long.
    """
    if len(text) > limits.QUERY_TEXT_BYTES:
        raise IllegalQuery(f"The query has {len(text)} characters; at most {limits.QUERY_TEXT_BYTES}")
    compose = _PLAIN_COMPOSE.get(type)
    if compose is not None and text.replace(" ", "").isalnum():
        words = tuple(WordItem(default_index, word) for word in text.split())
        return words[0] if len(words) == 1 else compose(words)
    item = QUERY_TYPES[type](_Reader(text, default_index, indexes))
    return None if item is None or isinstance(item, TrueItem) else canonical(item)
