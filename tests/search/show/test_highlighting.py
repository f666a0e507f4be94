"""Bolding: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding"""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.schema.teaser_settings import HI_TAGS, NO_TAGS, TeaserSettings
from paperwasp.search.operators.text import QueryPart, QueryWord
from paperwasp.search.show.marking import Highlighter, text_of_grams
from paperwasp.text.linguistics import TextProfile, document_language, index_terms, profile_of

ENGLISH = profile_of("best", True, None)


def words(*terms: str) -> list[QueryPart]:
    """Each of the terms is a part of the query."""
    return [((QueryWord(frozenset([term])),),) for term in terms]


def phrase(*terms: str) -> QueryPart:
    return (tuple(QueryWord(frozenset([term])) for term in terms),)


@pytest.mark.parametrize(
    ("parts", "text", "bolded"),
    [
        (words("cat"), "Cats and dogs; a cat, concatenate", "<hi>Cats</hi> and dogs; a <hi>cat</hi>, concatenate"),
        (words("facade"), "Façade of façades", "<hi>Façade</hi> of <hi>façades</hi>"),
        (words("étude"), "étude", "étude"),
        (words("cat", "dog"), "cat-dog", "<hi>cat</hi>-<hi>dog</hi>"),
        (words("4"), "4 of 44", "<hi>4</hi> of 44"),
        (words("cat"), "", ""),
        ([phrase("cat", "dog")], "cat, a cat-dog, dog", "cat, a <hi>cat</hi>-<hi>dog</hi>, dog"),
        ([phrase("cat", "dog"), *words("dog")], "cat dog, dog", "<hi>cat</hi> <hi>dog</hi>, <hi>dog</hi>"),
        ([((QueryWord(frozenset(["ca"]), prefix=True),),)], "cat cart dog", "<hi>cat</hi> <hi>cart</hi> dog"),
        ([(*words("cat")[0], *phrase("a", "dog"))], "a cat, a dog", "a <hi>cat</hi>, <hi>a</hi> <hi>dog</hi>"),
    ],
)
def test_examples(parts: list[QueryPart], text: str, bolded: str) -> None:
    assert Highlighter(parts, ENGLISH).bold(text) == bolded


def test_a_repeated_part_of_the_query_is_looked_for_once() -> None:
    highlighter = Highlighter(words(*["cat", "dog"] * 100), ENGLISH)
    text = "cat dog bird " * 50
    _, found = highlighter._look(text, highlighter._meanings(text, "en"))
    assert len(found) == 100
    assert {occurrence.weight for occurrence in found} == {100}


@pytest.mark.parametrize(
    ("settings", "text", "bolded"),
    [
        # a word of six letters and more is met by words up to three letters longer, one of five by itself alone
        (TeaserSettings(), "conduct conductor conductors", "<hi>conduct</hi> <hi>conductor</hi> <hi>conductors</hi>"),
        (TeaserSettings(), "conductance organist organs", "conductance organist organs"),
        (TeaserSettings(stem_min_length=7), "conduct conductor", "<hi>conduct</hi> conductor"),
        (TeaserSettings(stem_max_extend=0), "conduct conductor", "<hi>conduct</hi> conductor"),
        (TeaserSettings(stem_min_length=4), "organist", "<hi>organist</hi>"),
    ],
)
def test_words_that_go_a_little_further(settings: TeaserSettings, text: str, bolded: str) -> None:
    parts = [*words("conduct", "organ")]
    profile = profile_of("none", True, None)
    assert Highlighter(parts, profile, settings=settings).bold(text) == bolded
    assert Highlighter([*parts, phrase("zzz", "zzz")], profile, settings=settings).bold(text) == bolded


def test_words_of_a_phrase_go_no_further() -> None:
    profile = profile_of("none", True, None)
    highlighter = Highlighter([phrase("conduct", "music")], profile)
    assert highlighter.bold("conducts music, conduct music") == "conducts music, <hi>conduct</hi> <hi>music</hi>"


def test_without_tags_a_text_is_itself() -> None:
    assert Highlighter(words("cat"), ENGLISH, NO_TAGS).bold("a cat") == "a cat"


def test_a_whole_value_is_one_word() -> None:
    profile = profile_of("none", False, "word")
    assert Highlighter(words(*profile.terms("X-1 y")), profile).bold("x-1 Y") == "<hi>x-1 Y</hi>"


texts = st.text(alphabet="cCaAtTsS dDoOgG-éÉxX1ß.", max_size=8)


@given(st.lists(texts, max_size=12).map(" ".join), st.lists(texts, max_size=3))
def test_the_same_as_looking_at_every_word(text: str, queries: list[str]) -> None:
    profile = TextProfile()
    language = document_language(text)
    terms = {form for query in queries for forms in index_terms(profile, query, language) for form in forms}

    def mark(match: regex.Match[str]) -> str:
        found = index_terms(profile, word := match.group(), language)
        return f"<hi>{word}</hi>" if len(found) == 1 and any(map(is_met, found[0])) else word

    def is_met(form: str) -> bool:
        longer = (term for term in terms if len(term) > 5 and form.startswith(term))
        return form in terms or any(len(form) <= len(term) + 3 for term in longer)

    expected = regex.sub(r"[\p{L}\p{N}\p{M}]+", mark, text)
    assert (Highlighter(words(*terms), profile).bold(text) if terms else text) == expected
    if terms:  # looking for phrases too takes the other way through the text
        parts = [*words(*terms), phrase("zzz", "zzz")]
        assert Highlighter(parts, profile).bold(text) == expected


@pytest.mark.parametrize(
    ("size", "grams", "text", "bolded"),
    [
        (3, ["lue"], "Blue reds", "B<hi>lue</hi> reds"),
        (3, ["blu", "lue"], "Blue reds", "<hi>Blue</hi> reds"),
        (3, ["red"], "Blue, reds!", "Blue, <hi>red</hi>s!"),
        (3, ["en"], "en gul en", "<hi>en</hi> gul <hi>en</hi>"),
        # two marked grams that touch are marked as one; of one that overlaps with a marked one, only the rest
        (3, ["abc", "def"], "abcdef", "<hi>abcdef</hi>"),
        (3, ["abc", "cde"], "abcdef", "<hi>abc</hi>d<hi>e</hi>f"),
        (2, ["am", "er"], "amsterdam", "<hi>am</hi>st<hi>er</hi>d<hi>am</hi>"),
        (1, ["b"], "abcb", "a<hi>b</hi>c<hi>b</hi>"),
        (2, ["夢想"], "滿腦子的夢想", "滿腦子的<hi>夢想</hi>"),
        (2, ["x"], "", ""),
    ],
)
def test_grams_are_marked_in_the_text_that_they_are_of(size: int, grams: list[str], text: str, bolded: str) -> None:
    """Worked by hand from NGramSearcher.recombineNGrams and JuniperSearcher.insertTags of Vespa's container-search."""
    profile = profile_of("none", False, "gram", gram_size=size)
    assert Highlighter(words(*grams), profile).bold(text) == bolded
    assert Highlighter(words(*grams), profile).teaser(text) == bolded
    assert Highlighter(words(*grams), profile, NO_TAGS).bold(text) == text


def test_the_example_of_grams_that_become_a_text() -> None:
    """That of NGramSearcher: grams of three."""
    assert text_of_grams("blulue rededs", 3, HI_TAGS) == "blue reds"
    assert text_of_grams("blulue\x1erededs", 3, HI_TAGS) == "blue<sep />reds"


@given(st.text(st.sampled_from("ab é字☕,.")), st.integers(1, 4))
def test_texts_of_grams_are_shown_as_they_are(text: str, size: int) -> None:
    profile = profile_of("none", False, "gram", gram_size=size)
    bolded = Highlighter(words("a", "ab", "aba", "abab"), profile).bold(text)
    assert bolded.replace("<hi>", "").replace("</hi>", "") == text
