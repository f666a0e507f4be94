"""Dynamic summaries: of a long text, the parts around the words of the query.

    … words <hi>query</hi> words <sep />words around another <hi>match</hi> …

Matches are places where words of the query stand close together. The best of them (most words of the query, least
between them, first) are shown, each word with text around it, as much as the length allows. All lengths are bytes of
UTF-8, and parts begin and end with whole words.

In a text that is indexed, Vespa measures the words with what they are indexed as: `annotated` makes that form. So the
teaser of a field with an index is shorter than that of the same text in streaming search.

Vespa: https://docs.vespa.ai/en/querying/document-summaries.html#dynamic-snippets, and its configuration `juniperrc`
and annotation_converter.cpp of its searchsummary
Differs: nested operators of the query are seen as one list of words and phrases.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct, field

from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.schema.teaser_settings import DEFAULT_SETTINGS, HI_TAGS, Tags, TeaserSettings

Span = tuple[int, int]
"""Where something begins and ends."""

MIN_GAP: Final = 8
"""Bytes below which nothing is left out: the mark for what is left out would be as long."""
MIN_SURROUND: Final = 10
LONGEST_WORD: Final = 64
"""Bytes after which a word may be cut."""

# How Vespa writes a word and what it is indexed as, and what it puts after each piece of such a text.
_ANCHOR: Final = "\ufff9"
_SEPARATOR: Final = "\ufffa"
_TERMINATOR: Final = "\ufffb"
_UNIT_END: Final = "\x1f"
_ANNOTATION: Final = compile_later(f"{_ANCHOR}([^{_SEPARATOR}]*){_SEPARATOR}[^{_TERMINATOR}]*{_TERMINATOR}|{_UNIT_END}")


class Occurrence(NamedTuple):
    """One place in a text where a part of the query, a word or a phrase, stands."""

    part: int
    """The number of the part in the query."""
    words: Sequence[int]
    """The numbers of the words in the text."""
    weight: int = 1
    """How many times the query has the part."""


def marked(text: str, places: Sequence[Span], tags: Tags = HI_TAGS, readable: bool = False) -> str:
    """The whole text, with tags around these places, which rise and do not overlap. `readable`: without annotations."""
    pieces, end = [], 0
    show: Callable[[str], str] = _without_annotations if readable else str
    for start, stop in places:
        pieces += [show(text[end:start]), tags.open, show(text[start:stop]), tags.close]
        end = stop
    return "".join([*pieces, show(text[end:])])


def annotated(text: str, words: Sequence[Span], terms: Sequence[tuple[str, ...]]) -> tuple[str, list[Span]]:
    """The text with each word's terms, where they are not the word itself, and where its words then stand."""
    pieces: list[str] = []
    spans: list[Span] = []
    at = end = 0
    for (start, stop), found in zip(words, terms, strict=True):
        gap = text[end:start] + _UNIT_END if start > end else ""
        word = text[start:stop]
        if found and found != (word,):
            word = f"{_ANCHOR}{word}{_SEPARATOR}{' '.join(found)}{_TERMINATOR}"
        at += len(gap)
        spans.append((at, at + len(word)))
        pieces += [gap, word, _UNIT_END]
        at += len(word) + 1
        end = stop
    rest = text[end:] + _UNIT_END if end < len(text) else ""
    return "".join([*pieces, rest]), spans


def teaser(
    text: str,
    words: Sequence[Span],
    occurrences: Sequence[Occurrence],
    settings: TeaserSettings = DEFAULT_SETTINGS,
    tags: Tags = HI_TAGS,
) -> str:
    """The teaser of a text whose words stand at `words`; `occurrences` rise with their first word.

    Without occurrences it is the beginning of the text, or nothing if `settings.prefix` is off.
    """
    places = sorted({number for found in occurrences for number in found.words})
    if not places and not settings.prefix:
        return ""
    if text.isascii():
        encoded, spans = text.encode(), words
    else:
        encoded = text.encode("utf-8", "replace")
        spans = _in_bytes(text, words)
    if not places:
        return _beginning(encoded, spans, settings, tags)
    return _Teaser(encoded, spans, places, settings, tags).of(occurrences)


def _in_bytes(text: str, spans: Sequence[Span]) -> list[Span]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    sizes[(codes >= 0xD800) & (codes < 0xE000)] = 1  # a half of a pair becomes a question mark
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return [(int(ends[start]), int(ends[stop])) for start, stop in spans]


def _beginning(encoded: bytes, words: Sequence[Span], settings: TeaserSettings, tags: Tags) -> str:
    """Whole words of the beginning."""
    if len(encoded) <= settings.length:
        return _readable(encoded)
    end_of_unit = _UNIT_END.encode()
    fitting = bisect_right(words, settings.length, key=lambda span: span[1] - encoded.count(end_of_unit, 0, span[1]))
    return _readable(encoded[: words[fitting - 1][1] if fitting else 0]) + tags.separator


def _readable(encoded: bytes) -> str:
    """A piece of a text, without annotations."""
    return _without_annotations(encoded.decode())


def _without_annotations(text: str) -> str:
    return _ANNOTATION.sub(r"\1", text) if _UNIT_END in text or _ANCHOR in text else text


class _Match(Struct):
    """Words of the query that stand close together: at most one occurrence of each part."""

    first: Occurrence
    parts: set[int] = field(default_factory=set)
    weight: int = 0
    """How many times the query has these parts."""
    places: set[int] = field(default_factory=set)
    """The numbers of their words."""

    def add(self, found: Occurrence) -> None:
        self.parts.add(found.part)
        self.weight += found.weight
        self.places.update(found.words)

    @property
    def words(self) -> list[int]:
        return sorted(self.places)

    def rank(self) -> tuple[int, int, int]:
        """Lower is better: parts of the query there, words between them, place."""
        first, last = min(self.places), max(self.places)
        return -self.weight, last + 1 - first - len(self.places), first


class _Teaser(Struct, frozen=True):
    """One text."""

    encoded: bytes
    words: Sequence[Span]
    places: Sequence[int]
    """The numbers of all words to mark."""
    settings: TeaserSettings
    tags: Tags

    def of(self, occurrences: Sequence[Occurrence]) -> str:
        if self.settings.length + 4 * MIN_GAP > len(self.encoded):
            return self._written([(0, len(self.encoded))])
        chosen, length = self._chosen(sorted(self._matches(occurrences), key=_Match.rank))
        if not chosen:
            return _beginning(self.encoded, self.words, self.settings, self.tags)
        keys = sorted({number for match in chosen for number in match.words})
        return self._written(self._completed(self._segments(keys, self._around(chosen, keys, length))))

    # Matches

    def _matches(self, occurrences: Sequence[Occurrence]) -> Iterator[_Match]:
        """Every match that some occurrence begins. Those that are not complete end with their window, once there are
        enough complete ones."""
        parts = len({found.part for found in occurrences})
        fallback = self.settings.winsize * self.settings.winsize_fallback_multiplier
        complete_wanted = self.settings.max_matches
        open_matches: list[_Match] = []
        for found in occurrences:
            check_time()
            start = self._start(found)
            if complete_wanted <= 0:
                while open_matches and start - self._start(open_matches[0].first) >= self.settings.winsize:
                    yield open_matches.pop(0)
            if len(open_matches) < self.settings.max_match_candidates:
                open_matches.append(_Match(found))
            kept: list[_Match] = []
            while open_matches and found.part not in open_matches[-1].parts:
                match = open_matches.pop()
                match.add(found)
                if start - self._start(match.first) >= fallback:
                    continue
                if len(match.parts) == parts:
                    complete_wanted -= 1
                    yield match
                else:
                    kept.append(match)
            open_matches += reversed(kept)
        yield from open_matches

    def _start(self, found: Occurrence) -> int:
        return self.words[found.words[0]][0]

    def _chosen(self, matches: Sequence[_Match]) -> tuple[list[_Match], int]:
        """The best matches that do not overlap, in the order of the text, and about how long a teaser of them would be:
        as many as wanted, and more while it would be short."""
        surround = self._surround
        chosen: list[_Match] = []
        length = 0
        for match in matches:
            words = match.words
            if any(self._overlap(words, other.words) for other in chosen):
                continue
            chosen.append(match)
            length += self.words[words[-1]][1] - self.words[words[0]][0] + 2 * surround + MIN_GAP
            length -= max(0, surround - words[0])
            if len(chosen) >= self.settings.max_matches and length >= self.settings.min_length:
                break
        return sorted(chosen, key=lambda match: match.words), length

    def _overlap(self, a: list[int], b: list[int]) -> bool:
        """As Vespa compares them: the byte where the first ends with the number of the second's first word. So matches
        are further apart than they need to be."""
        first, second = sorted((a, b))
        return self.words[first[-1]][1] > second[0]

    @property
    def _surround(self) -> int:
        return max(self.settings.surround_max, MIN_SURROUND)

    # How much is around each word

    def _around(self, chosen: Sequence[_Match], keys: Sequence[int], length: int) -> int:
        """Bytes before and after each word of the query that the wanted length leaves room for."""
        if length <= self.settings.length:
            return self._surround
        sides = 2 * sum(len(match.parts) for match in chosen)
        share = max(MIN_SURROUND, int((self.settings.length - 5 * sides / 2) / sides))
        length, cut, marked_bytes = self._outcome(keys, share)
        share = max(MIN_SURROUND, int((self.settings.length - marked_bytes) / sides))
        if cut and self.settings.length > length + MIN_SURROUND:
            spare = int((self.settings.length - marked_bytes - (length + MIN_SURROUND)) / cut)
            share = max(MIN_SURROUND, share + spare)
        return share

    def _outcome(self, keys: Sequence[int], around: int) -> tuple[int, int, int]:
        """(about the bytes around the words of the query, how many of their sides are cut, the bytes of the words)."""
        length = cut = marked_bytes = end = 0
        most = around, around  # of the first gap: how much of it is left whole, how much is shown of a longer one
        for key in keys:
            start, stop = self.words[key]
            gap = start - end
            if gap <= 0:
                continue
            marked_bytes += stop - start
            cut += 0 if gap <= most[0] else 2 if end else 1
            length += gap if gap <= most[0] else most[1]
            most = 2 * around, 2 * around + MIN_GAP
            end = stop
        after = len(self.encoded) - self.words[keys[-1]][1]
        return length + min(after, around), cut + (after >= around), marked_bytes

    def _segments(self, keys: Sequence[int], around: int) -> list[Span]:
        """Return the spans that are shown, before words are completed."""
        segments = [(max(0, self.words[keys[0]][0] - around), self.words[keys[0]][1])]
        for key in keys[1:]:
            start, end = self.words[key]
            if start - segments[-1][1] <= 2 * around + MIN_GAP:
                segments[-1] = segments[-1][0], end
            else:
                segments[-1] = segments[-1][0], segments[-1][1] + around
                segments.append((start - around, end))
        segments[-1] = segments[-1][0], min(segments[-1][1] + around, len(self.encoded))
        return segments

    def _completed(self, segments: Sequence[Span]) -> list[Span]:
        """Segments that begin and end with whole words, those that meet joined."""
        completed: list[Span] = []
        for start, end in segments:
            start = self._word_start(start) if start > 0 else 0
            end = self._word_end(end) if end < len(self.encoded) else end
            if completed and start <= completed[-1][1]:
                completed[-1] = completed[-1][0], end
            else:
                completed.append((start, end))
        return completed

    def _word_start(self, at: int) -> int:
        """The start of the word that `at` is in, or of the next one."""
        number = bisect_right(self.words, at, key=lambda span: span[1])
        if number == len(self.words):
            return at
        start = self.words[number][0]
        return start if at - start <= LONGEST_WORD or self._is_annotated(start) else self._character_start(at)

    def _word_end(self, at: int) -> int:
        """The end of the word that `at` is in, or of the one before."""
        number = bisect_left(self.words, at, key=lambda span: span[0]) - 1
        if number < 0:
            return at
        start, end = self.words[number]
        return end if end - at <= LONGEST_WORD or self._is_annotated(start) else self._character_start(at)

    def _is_annotated(self, start: int) -> bool:
        """Whether a word stands there with what it is indexed as: such a word is never cut."""
        return self.encoded.startswith(_ANCHOR.encode(), start)

    def _character_start(self, at: int) -> int:
        while self.encoded[at] & 0xC0 == 0x80:
            at -= 1
        return at

    # The text

    def _written(self, segments: Sequence[Span]) -> str:
        pieces = []
        for start, end in segments:
            if start > 0:
                pieces.append(self.tags.separator)
            pieces.append(self._piece(start, end))
        if segments[-1][1] < len(self.encoded):
            pieces.append(self.tags.separator)
        return "".join(pieces)

    def _piece(self, start: int, end: int) -> str:
        """A part of the text, with every word of the query in it marked, also those of no chosen match."""
        pieces = []
        first = bisect_left(self.places, start, key=lambda place: self.words[place][0])
        for place in self.places[first:]:
            word_start, word_end = self.words[place]
            if word_end > end:
                break
            word = _readable(self.encoded[word_start:word_end])
            pieces += [_readable(self.encoded[start:word_start]), self.tags.open, word, self.tags.close]
            start = word_end
        return "".join([*pieces, _readable(self.encoded[start:end])])
