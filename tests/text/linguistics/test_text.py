"""Text to terms: what is indexed and what is asked must be cut, lower-cased and stemmed alike."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.text.linguistics import TextProfile, profile_of, stem_words

PROFILES = {
    "default": profile_of("best", True, None),
    "not normalizing": profile_of("none", False, None),
    "word": profile_of("best", True, "word"),
    "exact": profile_of("best", True, "exact"),
    "cased": profile_of("best", True, None, cased=True),
    "cased word": profile_of("best", True, "word", cased=True),
    "cased, not normalizing": profile_of("none", False, None, cased=True),
    "grams": profile_of("none", False, "gram", gram_size=2),
    "grams of three": profile_of("none", False, "gram", gram_size=3),
    "short": profile_of("none", True, None, max_length=7, max_token_length=3),
}
SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
everyday = st.text(alphabet=st.sampled_from("aAbB1éÉß ñ́ 'ä-_.,;İıΣς中文کｆﬁ٣\n\0"), max_size=30)
TEXTS = st.one_of(everyday, st.text(st.characters(exclude_categories=SURROGATES), max_size=30))


def indexed_words(profile: TextProfile, text: str) -> list[str]:
    """The words that the compiled tokenizer finds, before stemming."""
    lexicon = _core.Lexicon()
    ids, *_ = lexicon.tokenize(
        [profile.canonical(text)],
        np.zeros(1, np.uint32),
        1,
        profile.cased,
        profile.whole,
        profile.max_token_length,
    )
    return [lexicon.text(number) for number in ids.tolist()]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@given(text=TEXTS)
def test_a_query_finds_the_words_that_were_indexed(profile: TextProfile, text: str) -> None:
    assert profile.words(text) == indexed_words(profile, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rock'n'Roll, 1959!", ["rock", "n", "roll", "1959"]),
        ("snake_case kebab-case", ["snake", "case", "kebab", "case"]),
        ("Café CAFÉ Cafe\u0301", ["cafe", "cafe", "cafe"]),
        ("Ångström naïve Ñandú", ["angstrom", "naive", "nandu"]),
        ("ﬁne Ｆｕｌｌ", ["fine", "full"]),
        ("Straße", ["straße"]),
        ("мир、труд", ["мир", "труд"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("☕ – ☕", ["☕", "☕"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert PROFILES["default"].words(text) == words
    assert indexed_words(PROFILES["default"], text) == words


def test_without_normalizing_accents_stay() -> None:
    assert PROFILES["not normalizing"].words("Café Ñandú") == ["café", "ñandú"]


def test_match_word_makes_one_term_of_the_text() -> None:
    profile = PROFILES["word"]
    assert indexed_words(profile, "Kind of Blue!") == profile.words("kind of blue!") != profile.words("kind of blue")
    assert len(indexed_words(profile, " two\nlines ")) == 1


def test_cased_terms_differ_by_case_only_there() -> None:
    cased, uncased = PROFILES["cased"], PROFILES["default"]
    assert cased.terms("Blue") != cased.terms("blue") == ["blue"]
    assert uncased.terms("Blue") == uncased.terms("blue")


def test_stemming() -> None:
    profile = PROFILES["default"]
    assert profile.terms("Hardwired Trains are POLICIES") == ["hardwire", "train", "are", "policy"]
    assert profile.terms("Trains", stem=False) == ["trains"]


@pytest.mark.parametrize(
    ("stemming", "match", "cased", "stemmed"),
    [
        ("best", None, False, True),
        ("shortest", None, False, True),
        ("multiple", "text", False, True),
        ("none", None, False, False),
        ("best", "word", False, False),
        ("best", "exact", False, False),
        ("best", "gram", False, False),
        ("best", "text", True, True),
    ],
)
def test_what_is_stemmed(stemming: str, match: str | None, cased: bool, stemmed: bool) -> None:
    assert profile_of(stemming, True, match, cased).is_stemmed is stemmed


@pytest.mark.parametrize("stemmer", ["krovetz", "german"])
def test_threads_stem_alike(stemmer: str) -> None:
    words = [f"{start}{end}" for start in ("haus", "train", "policie") for end in ("es", "s", "en")] * 200
    with ThreadPoolExecutor(4) as threads:
        stems = list(threads.map(lambda _: tuple(stem_words(stemmer, words)), range(8)))
    assert len(set(stems)) == 1
