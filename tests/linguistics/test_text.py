"""Text to terms: what is indexed and what is asked must be cut, lower-cased and stemmed alike."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.linguistics import ENGLISH, NO_STEMMING, TextProfile, profile_of

PROFILES = {
    "default": profile_of("best", True, None),
    "not normalizing": profile_of("none", False, None),
    "word": profile_of("best", True, "word"),
    "exact": profile_of("best", True, "exact"),
    "cased": profile_of("best", True, None, cased=True),
    "cased word": profile_of("best", True, "word", cased=True),
}
everyday = st.text(alphabet=st.sampled_from("aAbB1éÉß ñ́ 'ä-_.,;İıΣς中文کｆﬁ٣\n\0"), max_size=30)
TEXTS = st.one_of(everyday, st.text(st.characters(exclude_categories=("Cs",)), max_size=30))


def indexed_words(profile: TextProfile, text: str) -> list[str]:
    """The words that the compiled tokenizer finds, before stemming."""
    lexicon = _core.Lexicon()
    plain = profile.plain and text.isascii()
    ids, _, _ = lexicon.tokenize([text if plain else profile.canonical(text)], np.zeros(1, np.uint32), 1)
    return [lexicon.text(number) for number in ids.tolist()]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@given(text=TEXTS)
def test_a_query_finds_the_words_that_were_indexed(profile: TextProfile, text: str) -> None:
    assert [word for word in profile.words(text) if word] == indexed_words(profile, text)


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
        ("☕ – ☕", []),
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
    assert profile.terms("Running Trains are RUN") == ["run", "train", "are", "run"]
    assert profile.terms("Running", stem=False) == ["running"]
    assert profile.stems(["running", "trains"]) == [profile.stem("running"), profile.stem("trains")]


@pytest.mark.parametrize(
    ("stemming", "match", "cased", "expected"),
    [
        ("best", None, False, ENGLISH),
        ("none", None, False, NO_STEMMING),
        ("best", "word", False, NO_STEMMING),
        ("best", "exact", False, NO_STEMMING),
        ("best", "text", True, NO_STEMMING),
    ],
)
def test_what_is_stemmed(stemming: str, match: str | None, cased: bool, expected: int) -> None:
    assert profile_of(stemming, True, match, cased).stemming == expected


def test_threads_stem_alike() -> None:
    words = [f"{start}ing" for start in ("runn", "jump", "sing", "walk")] * 200
    with ThreadPoolExecutor(4) as threads:
        stems = list(threads.map(lambda _: tuple(PROFILES["default"].stems(words)), range(8)))
    assert len(set(stems)) == 1
