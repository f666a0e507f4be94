"""The terms of the simple query language: field, weight, quotes, stars, ranges, elements, host names.

A run of characters without white space (`foo-bar`, `c++`, `http://a.b/c`) becomes one WordItem with its text as
written, because only its field knows how to make tokens of it. Of several tokens all are required; between quotes, as
a phrase. A plain number is a WordItem too, which a numeric attribute reads as a number.

In an index whose values are one word each a word may have any characters. With `match: exact` it ends at the field's
terminator. With `match: word` it ends at white space, unless it stands in quotes; stars, weights and the parentheses of
a group at its end are not part of it.
Vespa: https://docs.vespa.ai/en/reference/querying/simple-query-language.html and
https://docs.vespa.ai/en/reference/schemas/schemas.html#match
"""

from __future__ import annotations

from typing import Final
from unicodedata import category

import regex

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.core.clock import check_time
from paperwasp.errors import IllegalQuery
from paperwasp.query_languages.yql.indexes import Indexes, Reading
from paperwasp.search.operators.boolean import AndItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.patterns import PrefixItem, SubstringItem, SuffixItem
from paperwasp.search.operators.phrase import PhraseItem, UriItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import IN_PIECES, TOKEN, WordItem, is_one_token

DEFAULT_INDEX: Final = "default"
"""The index of words without one, in a request that names none for them."""

_SPACES = compile_later(r"\s*")
_NO_SPACE = compile_later(r"\S*")
_QUOTES = '"\u201c\u201d\u201e\u201f\u2039\u203a\u00ab\u00bb\u301d\u301e\u301f\uff02'
_STARS: Final = "*\uff0a"
_BREAKS = r"\s()\[\];<>!" + _QUOTES
_RUN = compile_later(rf"[^{_BREAKS}]+")
_ELEMENT_RUN = compile_later(rf"[^}}{_BREAKS}]+")
_QUOTED = compile_later(rf"[{_QUOTES}]+([^{_QUOTES}]*)[{_QUOTES}]*")
_WORD_CHARACTER = r"\p{L}\p{N}\p{M}\p{So}'"
_BEGINNING = regex.compile(rf"[{_STARS}]*[{_WORD_CHARACTER}]|-[0-9]")
"""The beginning of a word or a number."""
_NO_TERM: Final = ")];!\t\n\r "
"""The characters before which a sign never stands."""
_NO_WORD = regex.compile(rf"[^{_BREAKS}\p{{L}}\p{{N}}\p{{M}}\p{{So}}]+")
_INDEX = compile_later(r"\[?([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*):")
_WEIGHT = compile_later(r"!(?:([0-9]{1,9})|!*)")
_NUMBER = r"-?[0-9]{1,308}(?:\.[0-9]{1,308})?"
_ALL_SPACES = r"\s*(?!\s)"
_RANGE = compile_later(
    rf"\[{_ALL_SPACES}({_NUMBER})?{_ALL_SPACES};{_ALL_SPACES}({_NUMBER})?{_ALL_SPACES}"
    rf"(?:;{_ALL_SPACES}(-?[0-9]{{1,9}})?{_ALL_SPACES})?\]?(?=[\s\];)}}!]|\Z)"
    rf"|([<>])({_NUMBER})(?=[\s\];)}}!]|\Z)"
)


def too_many_items(count: int, limit: int = limits.QUERY_ITEMS) -> IllegalQuery:
    """The error of a query with this number of items, or more."""
    return IllegalQuery(f"Query tree exceeds allowed item count. Configured limit: {limit} - Item count: {count}")


class TermReader:
    """A cursor over the text of a query that reads one term at a time."""

    def __init__(self, text: str, default_index: str | None, indexes: Indexes) -> None:
        """Without a default index words are searched in `default`, and read as text, however its fields match."""
        self.text = text
        self.at = 0
        self.depth = 0
        """How many parentheses are open."""
        self.empty_groups: set[int] = set()
        """Where parentheses begin that hold nothing, which is found out once."""
        self.default_index = DEFAULT_INDEX if default_index is None else default_index
        self._indexes = indexes
        self._is_plain = default_index is not None and indexes.reading(default_index).is_whole
        """True where only white space has a meaning: a default index that the request names has whole words."""
        self._skips_noise = default_index is not None
        """True where a term may begin with characters of no word: its index is known. `StructuredParser.java`."""
        self._run = _RUN
        self._terms = 0

    def skip_spaces(self) -> bool:
        """Move to the next character that is not white space; False at the end. Errors: OutOfTime."""
        check_time()
        self.at = _SPACES.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at < len(self.text)

    def skip(self) -> None:
        """Move past what no term starts with: a run or a quote with nothing to search for, or one character.

        Where terms begin with a word (`_skips_noise` is False), up to the word behind it, or to the sign before that.
        """
        quoted = _QUOTED.match(self.text, self.at)
        if quoted or self._skips_noise:
            noise = quoted or _RUN.match(self.text, self.at)
            self.at = noise.end() if noise else self.at + 1
            return
        start = self.at
        none = _NO_WORD.match(self.text, start)
        if none is not None:
            kept = none.group()
            if self.text[none.end() : none.end() + 1].strip(_NO_TERM):
                kept = kept.rstrip(_STARS + "'") if self.text[none.end()].isalnum() else kept
                self.at = start + len(kept) - kept.endswith(("+", "-"))
            else:
                self.at = none.end()
        self.at = max(self.at, start + 1)

    def prefix(self, character: str) -> bool:
        """Move past `character` if it is here and something that is not white space follows."""
        if self._is_plain:
            return False
        after = self.at + 1
        found = self.text.startswith(character, self.at) and not self.text[after : after + 1].isspace()
        self.at += found
        return found

    def term(self) -> tuple[Item | None, bool]:
        """Read the term here, with its field and weight, and whether it names its field; no term: the cursor stays.

        Errors: IllegalQuery beyond `limits.QUERY_ITEMS` terms, before the rest of a text is read in vain.
        """
        start = self.at
        named = None if self._is_plain else self._index()
        index = self.default_index if named is None else named
        reading = self._indexes.reading(index)
        if reading.is_whole and (self._is_plain or named is not None):
            item = self._whole(index, reading)
        else:
            item = self._range(index) or self._phrase(index) or self._same_element(named)
            if item is None and (self._skips_noise or named is not None or _BEGINNING.match(self.text, self.at)):
                item = self._word(index)
        if item is None:
            self.at = start
            return None, named is not None
        self._terms += 1
        if self._terms > limits.QUERY_ITEMS:
            raise too_many_items(self._terms)
        return self._with_weight(item), named is not None

    def _index(self) -> str | None:
        """Read the index that is named here; None: there is none. A name with nothing behind it is skipped."""
        while (match := _INDEX.match(self.text, self.at)) and (name := self._indexes.canonical(match.group(1))):
            self.at = match.end()
            if self._indexes.reading(name).is_whole or self._something_ahead():
                return name
            self.skip_spaces()
        return None

    def _something_ahead(self) -> bool:
        """Tell whether anything to search for follows without white space between; if not, move past what does."""
        ahead = _QUOTED.match(self.text, self.at) or _NO_SPACE.match(self.text, self.at)
        assert ahead is not None
        if _searchable(ahead.group()):
            return True
        self.at = ahead.end()
        return False

    def _whole(self, index: str, reading: Reading) -> Item | None:
        """Read a word of any characters, up to its end."""
        if reading.terminator:
            item, self.at = terminated(index, self.text, self.at, reading.terminator)
            return item
        self.skip_spaces()
        item, self.at = whole_word(index, self.text, self.at, self.depth > 0)
        return item

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
        lowest, highest = _number(low), _number(high)
        if lowest is not None and highest is not None and lowest > highest:
            lowest, highest = highest, lowest
        return RangeItem(index, lowest, highest, hit_limit=int(limit or 0))

    def _phrase(self, index: str) -> Item | None:
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            return None
        words = tuple(word for word in match.group(1).split() if _searchable(word))
        if not words:
            return None
        self.at = match.end()
        if len(words) == 1:
            return _read_starred(index, words[0]) or WordItem(index, words[0])
        return PhraseItem(index, words)

    def _same_element(self, index: str | None) -> Item | None:
        """`field:{a:x b:y}`: an element of the field in which all of the terms match."""
        if index is None or not self.text.startswith("{", self.at):
            return None
        start = self.at
        self.at += 1
        below = Indexes(name[len(index) + 1 :] for name in self._indexes if name.startswith(f"{index}."))
        inner, self._indexes, self._run = (self._indexes, self._run), below, _ELEMENT_RUN
        children = []
        while self.skip_spaces() and (item := self.term())[1] and item[0] is not None:
            children.append(item[0])
        self._indexes, self._run = inner
        if not children or not self.text.startswith("}", self.at):
            self.at = start
            return None
        self.at += 1
        return SameElementItem(index, tuple(children))

    def _word(self, index: str) -> Item | None:
        match = self._run.match(self.text, self.at)
        if match is None or not _searchable(match.group()):
            return None
        self.at = match.end()
        word = match.group()
        if index.endswith(".hostname"):
            return _host_name(index, word)
        starred = _read_starred(index, word)
        if starred is not None:
            return starred
        word = word.strip(_STARS)
        reading = self._indexes.reading(index)
        if reading.is_whole and not is_one_token(word):
            return _tokens(index, word, reading.phrases)
        if reading.phrases or is_one_token(word):
            return WordItem(index, word)
        return WordItem(index, word, annotations=IN_PIECES)

    def _with_weight(self, item: Item) -> Item:
        match = _WEIGHT.match(self.text, self.at)
        if match is None or not isinstance(item, TermItem):
            return item
        self.at = match.end()
        weight = int(match.group(1)) if match.group(1) else 100 + 50 * len(match.group())
        return replace(item, annotations=replace(item.annotations, weight=weight))


def _tokens(index: str, text: str, is_phrase: bool) -> Item:
    """The tokens of a text whose field would take it for one value; together they are an and, or a phrase."""
    words = TOKEN.findall(text)
    if len(words) == 1:
        return WordItem(index, words[0])
    return PhraseItem(index, tuple(words)) if is_phrase else AndItem(tuple(WordItem(index, word) for word in words))


def _read_starred(index: str, word: str) -> Item | None:
    """The item of `word*`, `*word` or `*word*`; None for other words: stars elsewhere only separate words."""
    inner = word.strip(_STARS)
    if inner == word or not TOKEN.fullmatch(inner):
        return None
    if word[0] not in _STARS:
        return PrefixItem(index, inner)
    return SubstringItem(index, inner) if word[-1] in _STARS else SuffixItem(index, inner)


def _host_name(index: str, word: str) -> Item:
    """The end of a host name; `^` in front ties its start too, a star behind sets its end free."""
    return UriItem(index, word.strip("^$" + _STARS), start_anchor=word[0] == "^", end_anchor=word[-1] not in _STARS)


def _searchable(text: str) -> bool:
    return text.isalnum() or any(c.isalnum() or category(c) == "So" for c in text)


def _number(text: str | None) -> int | float | None:
    if text is None:
        return None
    return float(text) if "." in text else int(text)


# Indexes whose values are one word each

_UNBROKEN: Final = compile_later(r"\S+")
_AFTER: Final = {
    True: compile_later(rf"(?:[{_STARS}]|!+[0-9]*|\))*(?=\s|\Z)"),
    False: compile_later(rf"(?:[{_STARS}]|!+[0-9]*)*(?=\s|\Z)"),
}
"""The characters that may stand behind a word; True: in an open group."""


def terminated(index: str, text: str, at: int, terminator: str) -> tuple[Item | None, int]:
    """(the term from `at` to the terminator, where what follows it begins); without one it is all that is left. A star
    right behind the terminator asks for what begins with the word."""
    end = text.find(terminator, at)
    word, after = (text[at:], len(text)) if end < 0 else (text[at:end], end + len(terminator))
    is_open = bool(word) and text[after : after + 1] in tuple(_STARS)
    return (_term(index, word, star=False, is_open=is_open) if word else None), after + is_open


def whole_word(index: str, text: str, at: int, in_group: bool) -> tuple[Item | None, int]:
    """(the term that begins at `at`, where it ends); no term: there is nothing but white space."""
    run = _UNBROKEN.match(text, at)
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
    """Return the length of the word in a run of characters: less one star, one weight, and ends of groups behind it."""
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
