"""Bolding and teasers by the kernels `core/text/text_marker.cpp` and `core/text/teaser.cpp`, and by `Highlighter` where
they do not know how.

The kernels mark words of letters and digits in any script. Texts that are one term (`match: word`), texts of grams, and
parts of words (in streaming search) are left to the Highlighter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any, Final

import regex
from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.schema.model import Field, SummaryField
from paperwasp.schema.teaser_settings import DEFAULT_SETTINGS, HI_TAGS, Tags, TeaserSettings
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.operators import SearchSpace
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.text import QueryPart, QueryWord, Target, Way
from paperwasp.search.query import Show
from paperwasp.search.show.teaser import Occurrence, Span, annotated, marked, teaser
from paperwasp.text.linguistics import (
    ENGLISH,
    UNKNOWN,
    Language,
    TextProfile,
    document_language,
    index_terms,
    normalized,
)
from paperwasp.text.linguistics.detection import FOREIGN
from paperwasp.text.linguistics.query import WORD_CHARACTERS, Forms, vocabulary_of
from paperwasp.text.linguistics.text import gram_spans, is_in_word


class Style(Struct, frozen=True):
    """How the words of a query are shown in the texts of a field."""

    tags: Tags = HI_TAGS
    settings: TeaserSettings = DEFAULT_SETTINGS
    is_teaser: bool = False
    """Whether a part of the text is shown, not all of it."""
    is_annotated: bool = False
    """Whether teasers measure words with what they are indexed as."""


_PLAIN: Final = Style()


class Marking:
    """Marks the words of one query in texts of one field: a function of a text and the language its document says."""

    def __init__(self, parts: Sequence[QueryPart], profile: TextProfile, style: Style = _PLAIN) -> None:
        self._parts = parts
        self._profile = profile
        self._style = style
        self._markers: dict[Language, _core.TextMarker] = {}

    def __call__(self, text: str, language: str = UNKNOWN) -> str | None:
        """The text with its words of the query marked, or its teaser, which an empty text has none of (None).

        An empty language: it is detected. Errors: OutOfTime.
        """
        if self._style.is_teaser and not text:
            return None
        if self._is_compiled:
            known = document_language(text, language) if self._profile.is_stemmed else UNKNOWN
            marked = _core.mark(text, self._marker(known))
            if marked is not None:
                return marked
        return self._general.teaser(text, language) if self._style.is_teaser else self._general.bold(text, language)

    def of_member(self, key: bytes) -> _core.MemberMarker | None:
        """How the kernel marks the texts of one member of JSON objects; None: it cannot."""
        if not self._is_compiled:
            return None
        if self._profile.is_stemmed:
            return key, self._marker(ENGLISH), FOREIGN
        return key, self._marker(UNKNOWN), None

    @cached_property
    def _is_compiled(self) -> bool:
        return self._profile.plain and not any(word.within for word in self._words)

    @property
    def _words(self) -> list[QueryWord]:
        return [word for part in self._parts for way in part for word in way]

    @cached_property
    def _general(self) -> Highlighter:
        style = self._style
        return Highlighter(self._parts, self._profile, style.tags, style.settings, style.is_annotated)

    @cached_property
    def _query(self) -> _core.QueryParts:
        parts = [
            (count, [[(list(word.terms), word.prefix) for word in way] for way in part])
            for part, count in Counter(self._parts).items()
        ]
        settings = self._style.settings
        return _core.QueryParts(parts, settings.stem_min_length, settings.stem_max_extend, self._firsts())

    def _firsts(self) -> str | None:
        """The letters that words of the query begin with: no other word of ASCII is looked at. None where all words
        are: for teasers, and where the query has phrases."""
        if self._style.is_teaser or any(len(way) > 1 for part in self._parts for way in part):
            return None
        firsts = {term[0] for word in self._words for term in word.terms}
        return "".join(letter for first in firsts for letter in (first, first.upper()))

    def _marker(self, language: Language) -> _core.TextMarker:
        found = self._markers.get(language)
        if found is None:
            tags = self._style.tags.open, self._style.tags.close, self._style.tags.separator
            vocabulary = vocabulary_of(self._profile, language)
            found = self._markers[language] = _core.TextMarker(self._query, vocabulary, tags, self._teaser())
        return found

    def _teaser(self) -> tuple[int, int, int, bool, int, int, float, int, bool] | None:
        """The settings of teasers for the kernel; None: the whole text is shown."""
        if not self._style.is_teaser:
            return None
        settings = self._style.settings
        return (
            settings.length,
            settings.max_matches,
            settings.min_length,
            settings.prefix,
            settings.surround_max,
            settings.winsize,
            settings.winsize_fallback_multiplier,
            settings.max_match_candidates,
            self._style.is_annotated,
        )


class Markings:
    """How one query marks its words in the fields of a document type. Fields that are searched by the same names, and
    whose texts become terms the same way, share what is made of the query."""

    def __init__(self, tree: Item, space: SearchSpace, show: Show) -> None:
        self._tree = tree
        self._space = space
        self._bolding = show.bolding
        self._tags = show.marks
        self._known: dict[object, Marking | None] = {}

    def of(self, field: SummaryField, source: Field, together: Sequence[Field] = ()) -> Marking | None:
        """Return the marking of a field, which makes teasers or marks words; None: its texts are shown as they are.

        `together`: fields whose texts are in it as well.
        """
        if source.index is None or not (self._bolding or field.dynamic):
            return None
        searched = [each for each in together if each.index is not None] or [source]
        style = self._style(field)
        if len(searched) > 1:
            return self._made(searched, text_profile(source), style)
        names = names_of(self._tree, searched[0], self._space)
        profile = text_profile(source)
        key = names, profile, text_profile(searched[0]), searched[0].match_settings.algorithm, style
        if key not in self._known:
            self._known[key] = self._made(searched, profile, style)
        return self._known[key]

    def _style(self, field: SummaryField) -> Style:
        if not field.dynamic:
            return Style(self._tags)
        return Style(self._tags, self._space.schema.teasers.of(field.name), True, not self._space.streamed)

    def _made(self, searched: Sequence[Field], profile: TextProfile, style: Style) -> Marking | None:
        found = chain.from_iterable(query_parts(self._tree, each, self._space) for each in searched)
        parts = tuple(dict.fromkeys(found))
        return Marking(parts, profile, style) if parts or style.is_teaser else None


# Words of the query in a shown text, and the text with them marked: bolding and dynamic summaries.
#
# A word is one of the query if it is indexed as that, or goes a little further than a long one (`stem_max_extend`).
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding


_ASCII: Final = "A-Za-z0-9"
_ASCII_WORDS: Final = compile_later(f"[{_ASCII}]+")
_UNICODE_WORDS: Final = regex.compile(f"[{WORD_CHARACTERS}]+")


def query_parts(item: Item, field: Field, space: SearchSpace) -> tuple[QueryPart, ...]:
    """The words and phrases that the query looks for in a field: not those that only filter, only rank, or exclude."""
    return tuple(part for part in item.shown(Target(field, space, text_profile(field))) if part)


def names_of(item: Item, field: Field, space: SearchSpace) -> frozenset[str]:
    """The names by which the query searches a field: of itself, or of fieldsets. Fields that are searched by the same
    names, and whose texts become terms the same way, have the same parts."""
    names = {each.index for each in item.walk() if isinstance(each, TermItem)}
    target = Target(field, space, text_profile(field))
    return frozenset(name for name in names if target.is_named_by(name or field.name))


class Highlighter:
    """Marks the words of one query in texts of one field.

    A word of a phrase is marked where the whole phrase stands. What each word means is remembered while the query
    lasts.
    """

    def __init__(
        self,
        parts: Sequence[QueryPart],
        profile: TextProfile,
        tags: Tags = HI_TAGS,
        settings: TeaserSettings = DEFAULT_SETTINGS,
        annotated: bool = False,
    ) -> None:
        """`annotated`: whether teasers measure words with what they are indexed as."""
        self._parts = tuple(Counter(parts).items())
        self._annotated = annotated
        self._profile = profile
        self._tags = tags
        self._settings = settings
        self._known: dict[str, _Meanings] = {}
        words = [word for part in parts for way in part for word in way]
        self._pieces = tuple({term for word in words if word.within for term in word.terms})
        self._single = not self._pieces and all(len(way) == 1 for part in parts for way in part)
        self._singles = frozenset().union(*(word.terms for word in words if not word.prefix))
        self._prefixes = tuple({term for word in words if word.prefix for term in word.terms})
        alone = (way[0] for part in parts for way in part if len(way) == 1 and not (way[0].prefix or profile.whole))
        self._extended = frozenset(
            term for word in alone for term in word.terms if len(term) > settings.stem_min_length
        )
        self._beginning_with = self._parts_by_first_term()
        self._with_prefix = [
            number for number, (part, _) in enumerate(self._parts) if any(way[0].prefix for way in part)
        ]
        self._terms = {term for word in words for term in word.terms}

    def bold(self, text: str, language: str = "") -> str:
        """The text with its words of the query marked. `language`: what its document says; empty: it is detected.

        Errors, as of `teaser`: OutOfTime.
        """
        check_time()
        meanings = self._meanings(text, language)
        if self._profile.gram_size:
            return self._bold_grams(text, meanings)
        if self._profile.whole:
            return self._marked_if_met(text, meanings)
        if not self._single:
            spans, found = self._look(text, meanings)
            places = sorted({number for occurrence in found for number in occurrence.words})
            return marked(text, [spans[place] for place in places], self._tags)
        bolded: str = self._candidates.pattern(text).sub(
            lambda match: self._marked_if_met(match.group(), meanings), text
        )
        return bolded

    def teaser(self, text: str, language: str = "") -> str:
        """The dynamic summary of the text."""
        meanings = self._meanings(text, language)
        spans, found = self._look(text, meanings)
        if self._profile.gram_size:
            with_terms, spans = _with_terms(text, spans, meanings)
            shown = teaser(with_terms, spans, found, self._settings, GRAM_TAGS)
            return text_of_grams(shown, self._profile.gram_size, self._tags)
        if self._annotated:
            text, spans = _with_terms(text, spans, meanings)
        return teaser(text, spans, found, self._settings, self._tags)

    @cached_property
    def _candidates(self) -> _Candidates:
        return _Candidates(self._terms, self._profile)

    def _bold_grams(self, text: str, meanings: _Meanings) -> str:
        spans, found = self._look(text, meanings)
        places = sorted({number for occurrence in found for number in occurrence.words})
        with_terms, spans = _with_terms(text, spans, meanings)
        shown = marked(with_terms, [spans[place] for place in places], GRAM_TAGS, readable=True)
        return text_of_grams(shown, self._profile.gram_size, self._tags)

    def _parts_by_first_term(self) -> dict[str, list[int]]:
        """Term → the numbers of the parts that may begin with it."""
        found: dict[str, list[int]] = {}
        for number, (part, _) in enumerate(self._parts):
            for term in frozenset().union(*(way[0].terms for way in part)):
                found.setdefault(term, []).append(number)
        return found

    def _marked_if_met(self, word: str, meanings: _Meanings) -> str:
        return f"{self._tags.open}{word}{self._tags.close}" if self._begins(meanings[word]) else word

    def _meanings(self, text: str, said: str) -> _Meanings:
        """Return the indexed forms of the words of a text: by its language, where that matters."""
        language = document_language(text, said) if self._profile.is_stemmed else ""
        return self._known.setdefault(language, _Meanings(self._profile, language))

    def _look(self, text: str, meanings: _Meanings) -> tuple[list[Span], list[Occurrence]]:
        """Where the words of the text stand, and which of them the parts of the query are."""
        check_time()
        if self._profile.whole:
            spans = [(0, len(text))] if text else []
        elif self._profile.gram_size:
            spans = list(gram_spans(text, self._profile.gram_size))
        else:
            spans = [match.span() for match in (_ASCII_WORDS if text.isascii() else _UNICODE_WORDS).finditer(text)]
        if self._pieces:
            spans = [piece for span in spans for piece in _cut_out(text, span, self._pieces, self._profile)]
        forms = [meanings[text[start:end]] for start, end in spans]
        begun = (at for at, found in enumerate(forms) if self._begins(found))
        return spans, [found for at in begun for found in self._at(forms, at)]

    def _begins(self, forms: Forms) -> bool:
        """Whether a word of the query matches."""
        return any(
            form in self._singles or (bool(self._prefixes) and form.startswith(self._prefixes)) for form in forms
        ) or bool(self._extended and self._goes_further(forms, self._extended))

    def _goes_further(self, forms: Forms, terms: frozenset[str]) -> bool:
        """Whether one of the terms is a form's beginning, up to a few letters."""
        cuts = range(1, self._settings.stem_max_extend + 1)
        return any(form[:-cut] in terms for form in forms for cut in cuts if cut < len(form))

    def _meets(self, way: Way, forms: Sequence[Forms]) -> bool:
        """Whether the words of a way are those of a text; those of a phrase exactly."""
        if all(map(QueryWord.is_met_by, way, forms)):
            return True
        return len(way) == 1 and self._goes_further(forms[0], way[0].terms & self._extended)

    def _at(self, forms: Sequence[Forms], at: int) -> Iterator[Occurrence]:
        """The parts of the query that begin at a word."""
        check_time()
        cuts = range(1, self._settings.stem_max_extend + 1) if self._extended else ()
        terms = {form[: len(form) - cut] for form in forms[at] for cut in (0, *cuts) if cut < len(form)}
        begun = {number for term in terms for number in self._beginning_with.get(term, ())}
        for number in sorted(begun.union(self._with_prefix)):
            part, weight = self._parts[number]
            for way in part:
                following = forms[at : at + len(way)]
                if len(following) == len(way) and self._meets(way, following):
                    yield Occurrence(number, range(at, at + len(way)), weight)
                    break


def _with_terms(text: str, spans: Sequence[Span], meanings: _Meanings) -> tuple[str, list[Span]]:
    return annotated(text, spans, [meanings[text[start:end]] for start, end in spans])


def _cut_out(text: str, span: Span, wanted: Sequence[str], profile: TextProfile) -> Iterator[Span]:
    """The parts of a word: what is wanted apart from what is around it."""
    start, end = span
    folded = [normalized(character, profile.cased, profile.normalizing) for character in text[start:end]]
    places = [at for at, found in enumerate(folded, start) for _ in found]
    word = "".join(folded)
    cuts = {start, end}
    for part in wanted:
        at = word.find(part)
        while at >= 0:
            cuts |= {places[at], places[at + len(part) - 1] + 1}
            at = word.find(part, at + len(part))
    return pairwise(sorted(cuts))


class _Meanings(dict[str, Forms]):
    """Word → what it is indexed as; nothing where it is cut in pieces."""

    def __init__(self, profile: TextProfile, language: str) -> None:
        self._profile = profile
        self._language = language

    def __missing__(self, word: str) -> Forms:
        terms = index_terms(self._profile, word, self._language)
        self[word] = forms = terms[0] if len(terms) == 1 else ()
        return forms


class _Candidates:
    """Finds in a text the words that may be those of the query.

    Stemming keeps a word's first letter, so only words with the first letter of some term are looked at.
    """

    def __init__(self, terms: set[str], profile: TextProfile) -> None:
        firsts = re.escape("".join(sorted({form for term in terms for form in (term[0], term[0].upper())})))
        start = f"[{firsts}]" if profile.plain else f"[{_ASCII}]"
        self._in_ascii = re.compile(f"(?<![{_ASCII}]){start}[{_ASCII}]*")
        start = rf"(?:[{firsts}]|[^\x00-\x7f])" if profile.plain else ""
        self._in_unicode: Any = regex.compile(
            rf"(?<![{WORD_CHARACTERS}])(?=[{WORD_CHARACTERS}]){start}[{WORD_CHARACTERS}]*"
        )

    def pattern(self, text: str) -> Any:
        return self._in_ascii if text.isascii() else self._in_unicode


# Marked texts of fields that match grams: of overlapping grams the text that they are of.
#
# Vespa highlights the grams of such a text, each on its own, and makes the text of them again afterwards. The mark of a
# gram that overlaps with what is shown already moves to where the gram begins.
#
# Vespa: NGramSearcher.java and JuniperSearcher.java of its container-search
# Differs: teasers that have another name than their field are made texts again as well; Vespa shows their grams.


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
