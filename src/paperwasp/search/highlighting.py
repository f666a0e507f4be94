"""Which words of a shown text are words of the query, and the text with them marked: bolding and dynamic summaries.

A word is one of the query if it is indexed as that, or goes a little further than a long one (`stem_max_extend`).

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import regex

from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.schema.model import Field
from paperwasp.schema.teaser_settings import DEFAULT_SETTINGS, HI_TAGS, Tags, TeaserSettings
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.gram_marks import GRAM_TAGS, text_of_grams
from paperwasp.search.operators import SearchSpace
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.text import QueryPart, QueryWord, Target, Way
from paperwasp.search.teaser import Occurrence, Span, annotated, marked, teaser
from paperwasp.text.linguistics import TextProfile, document_language, index_terms, normalized
from paperwasp.text.linguistics.query import WORD_CHARACTERS, Forms
from paperwasp.text.linguistics.text import gram_spans

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
        """What the words of a text are indexed as: by its language, where that matters."""
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
        """Whether some word of the query is met."""
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
