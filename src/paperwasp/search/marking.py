"""Bolding and teasers by the kernels `core/text/text_marker.cpp` and `core/text/teaser.cpp`, and by `Highlighter` where
they do not know how.

The kernels mark words of letters and digits in any script. Texts that are one term (`match: word`), texts of grams, and
parts of words (in streaming search) are left to the Highlighter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.schema.model import Field, SummaryField
from paperwasp.schema.teaser_settings import DEFAULT_SETTINGS, HI_TAGS, Tags, TeaserSettings
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.highlighting import Highlighter, names_of, query_parts
from paperwasp.search.operators import SearchSpace
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.text import QueryPart, QueryWord
from paperwasp.search.query import Show
from paperwasp.text.linguistics import ENGLISH, UNKNOWN, Language, TextProfile, document_language
from paperwasp.text.linguistics.detection import FOREIGN
from paperwasp.text.linguistics.query import vocabulary_of


@dataclass(frozen=True, slots=True)
class Style:
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
        """What the kernel knows of teasers; None: the whole text is shown."""
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
        """What makes of a text its teaser, or marks the words of the query; None: it is shown as it is.

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
