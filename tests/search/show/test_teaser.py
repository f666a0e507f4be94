"""Dynamic summaries: https://docs.vespa.ai/en/querying/document-summaries.html#dynamic-snippets

Expected values are worked by hand from the rules and defaults of Vespa's `juniperrc`: 256 bytes, three matches, at most
128 bytes around each.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.schema.teaser_settings import NO_TAGS, Tags, TeaserSettings
from paperwasp.search.show.teaser import Occurrence, annotated, teaser

FILL = "abcde fghij " * 40
"""480 bytes, 80 words of five letters."""
WORDS = re.compile(r"\w+")


def teaser_of(text: str, *parts: str, settings: TeaserSettings | None = None, tags: Tags | None = None) -> str:
    """The teaser for a query of these words, or phrases."""
    spans = [match.span() for match in WORDS.finditer(text)]
    words = [text[start:end].lower() for start, end in spans]
    phrases = [part.split() for part in parts]
    found = [
        Occurrence(number, range(at, at + len(phrase)))
        for at in range(len(words))
        for number, phrase in enumerate(phrases)
        if words[at : at + len(phrase)] == phrase
    ]
    return teaser(text, spans, found, settings or TeaserSettings(), tags or Tags())


def test_a_short_text_is_shown_whole() -> None:
    text = "  The cat. Another   cat!  "
    assert teaser_of(text, "cat") == "  The <hi>cat</hi>. Another   <hi>cat</hi>!  "
    assert teaser_of(text, "cat", tags=NO_TAGS) == text
    assert teaser_of("x" * 287, "x" * 287) == f"<hi>{'x' * 287}</hi>"


def test_without_a_match_it_is_the_beginning() -> None:
    assert teaser_of("short", "cat") == "short"
    # 42 words of six bytes with their spaces are 252; the next one would end at 257
    assert teaser_of(FILL, "cat") == FILL[:251] + "<sep />"
    assert teaser_of(FILL, "cat", tags=NO_TAGS) == FILL[:251] + "..."
    assert teaser_of(FILL, "cat", settings=TeaserSettings(prefix=False)) == ""
    assert teaser_of("x" * 300 + " y", "cat") == "<sep />"


def test_an_indexed_text_has_the_terms_of_its_words() -> None:
    """As annotation_converter.cpp of Vespa's searchsummary writes it."""
    found = annotated("The cats, é!", [(0, 3), (4, 8), (10, 11)], [("the",), ("cat", "cats"), ("é",)])
    assert found == (
        "\ufff9The\ufffathe\ufffb\x1f \x1f\ufff9cats\ufffacat cats\ufffb\x1f, \x1fé\x1f!\x1f",
        [(0, 9), (12, 27), (31, 32)],
    )
    assert annotated("", [], []) == ("", [])
    assert annotated("...", [], []) == ("...\x1f", [])


def annotated_teaser_of(text: str, word: str, settings: TeaserSettings) -> str:
    """Of a text whose words are indexed without their capitals."""
    spans = [match.span() for match in WORDS.finditer(text)]
    terms = [(text[start:end].lower(),) for start, end in spans]
    found = [Occurrence(0, (number,)) for number, (term,) in enumerate(terms) if term == word]
    return teaser(*annotated(text, spans, terms), found, settings)


def test_the_terms_of_an_indexed_text_take_room() -> None:
    # A piece takes a byte more than what it shows; "Abcde " is 5 + 9 + 5 + 1 + 2 bytes
    plain, capitals = "abcde " * 60, "Abcde " * 60
    narrow, short = TeaserSettings(surround_max=40), TeaserSettings(length=60)
    assert annotated_teaser_of(plain + "cat", "cat", narrow) == "<sep />" + "abcde " * 5 + "<hi>cat</hi>"
    assert annotated_teaser_of(capitals + "cat", "cat", narrow) == "<sep />" + "Abcde " * 2 + "<hi>cat</hi>"
    assert annotated_teaser_of(plain, "cat", short) == ("abcde " * 10).strip() + "<sep />"
    assert annotated_teaser_of(capitals, "cat", short) == "Abcde Abcde Abcde<sep />"


def test_a_word_with_its_term_is_never_cut() -> None:
    word = "X" + "x" * 200
    shown = annotated_teaser_of("cat " + word + " dog " * 100, "cat", TeaserSettings(surround_max=10, length=100))
    assert shown == f"<hi>cat</hi> {word}<sep />"


def test_a_word_that_is_twice_in_the_query_weighs_more() -> None:
    text = "cat one " + FILL * 4 + "dog two " + FILL * 4
    spans = [match.span() for match in WORDS.finditer(text)]
    places = {text[start:end]: number for number, (start, end) in enumerate(spans)}
    for heavier, shown in (("cat", "one"), ("dog", "two")):
        found = [
            Occurrence(number, (places[word],), 2 if word == heavier else 1)
            for number, word in enumerate(("cat", "dog"))
        ]
        assert f" {shown} " in teaser(text, spans, found, TeaserSettings(max_matches=1, min_length=1))


def test_one_match_has_text_on_both_sides() -> None:
    # 3 bytes of the match leave (256 - 3) / 2 = 126 to each side; both sides are cut, and nothing is left to give
    before, after = (FILL * 2)[-126:], (" " + FILL)[:126]
    assert before.startswith("fghij abcde")
    assert after.endswith("fghij abcde")
    assert teaser_of(FILL * 2 + "cat " + FILL, "cat") == f"<sep />{before}<hi>cat</hi>{after}<sep />"


def test_a_match_at_the_end_leaves_its_room_to_the_beginning() -> None:
    # cut on one side only, which gets 126 bytes and what the other leaves, 256 - 3 - 125 less ten in reserve: 244.
    # That is within a word, which is shown whole
    shown = teaser_of(FILL * 2 + "cat", "cat")
    assert shown == f"<sep />{(FILL * 2)[-246:]}<hi>cat</hi>"


def test_matches_with_more_words_of_the_query_are_better() -> None:
    text = "cat " + FILL + "cat dog " + FILL + "dog " + FILL
    shown = teaser_of(text, "cat", "dog", settings=TeaserSettings(max_matches=1, min_length=1))
    assert "<hi>cat</hi> <hi>dog</hi>" in shown
    assert shown.count("<hi>") == 2


def test_words_of_a_phrase_count_together() -> None:
    text = "black " + FILL + "black cat " + FILL
    shown = teaser_of(text, "black cat")
    assert shown.count("<hi>") == 2
    assert "<hi>black</hi> <hi>cat</hi>" in shown


def test_matches_are_shown_in_the_order_of_the_text() -> None:
    text = FILL + "cat one " + FILL * 9 + "cat two " + FILL * 3
    shown = teaser_of(text, "cat")
    assert shown.index("one") < shown.index("two")
    assert shown.count("<sep />") == 3


def test_lengths_are_bytes_and_no_character_is_cut() -> None:
    text = "é" * 50 + " " + "öäü " * 200 + "katze " + "öäü " * 200
    shown = teaser_of(text, "katze", tags=NO_TAGS)
    assert 200 < len(shown.encode()) < 270
    assert set(shown) <= set("öäü katze.")
    assert len(teaser_of("字" * 3000 + " cat " + "字" * 3000, "cat", tags=NO_TAGS).encode()) < 400


def test_neighbours_share_the_text_between_them() -> None:
    text = FILL + "cat and a dog " + FILL
    assert "<hi>cat</hi> and a <hi>dog</hi>" in teaser_of(text, "cat", "dog")


@pytest.mark.parametrize("length", [0, 1, 10, 50, 256, 1000])
def test_lengths_are_kept_about(length: int) -> None:
    text = "cat " + FILL + "cat dog " + FILL * 3 + "dog " + FILL
    shown = teaser_of(text, "cat", "dog", settings=TeaserSettings(length=length), tags=NO_TAGS)
    assert len(shown) < length + 120


ALPHABET = st.sampled_from(["cat", "dog", "é", "字字", "and", "-", ".", "\ud800", "🐈", "a" * 70, "\n"])


@given(
    st.lists(ALPHABET, max_size=400).map(" ".join),
    st.builds(
        TeaserSettings,
        length=st.integers(0, 400),
        max_matches=st.integers(0, 4),
        min_length=st.integers(0, 300),
        surround_max=st.integers(0, 200),
        winsize=st.integers(1, 300),
        max_match_candidates=st.sampled_from([1, 5, 1000]),
    ),
)
def test_any_text_gives_parts_of_it(text: str, settings: TeaserSettings) -> None:
    tags = Tags("\x01", "\x02", "\x03")
    shown = teaser_of(text, "cat", "dog and", settings=settings, tags=tags)
    at = 0
    readable = text.encode("utf-8", "replace").decode()
    for part in shown.replace("\x01", "").replace("\x02", "").split("\x03"):
        at = readable.index(part, at) + len(part)
    marked = re.findall("\x01(.*?)\x02", shown)
    assert set(marked) <= {"cat", "dog", "and"}
    # With too few candidates, one that is too old takes the only ones with it: so it is in Vespa's Matcher.cpp.
    if settings.max_matches and settings.max_match_candidates == 1000 and re.search(r"\bcat\b", text):
        assert "cat" in marked or "dog" in marked
