"""Bolding: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding"""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.content.bolding import Bolder
from paperwasp.linguistics import TextProfile, profile_of

ENGLISH = profile_of("best", True, None)


@pytest.mark.parametrize(
    ("terms", "text", "bolded"),
    [
        ({"cat"}, "Cats and dogs; a cat, concatenate", "<hi>Cats</hi> and dogs; a <hi>cat</hi>, concatenate"),
        ({"facad"}, "Façade of façades", "<hi>Façade</hi> of <hi>façades</hi>"),
        ({"étud"}, "étude", "étude"),
        ({"cat", "dog"}, "cat-dog", "<hi>cat</hi>-<hi>dog</hi>"),
        ({"4"}, "4 of 44", "<hi>4</hi> of 44"),
        ({"cat"}, "", ""),
    ],
)
def test_examples(terms, text, bolded):
    assert Bolder(terms, ENGLISH).bold(text) == bolded


def test_a_whole_value_is_one_word():
    profile = profile_of("none", False, "word")
    assert Bolder(set(profile.terms("X-1 y")), profile).bold("x-1 Y") == "<hi>x-1 Y</hi>"


words = st.text(alphabet="cCaAtTsS dDoOgG-éÉxX1ß.", max_size=8)


@given(st.lists(words, max_size=12).map(" ".join), st.lists(words, max_size=3))
def test_the_same_as_looking_at_every_word(text, queries):
    profile = TextProfile()
    terms = {term for query in queries for term in profile.terms(query)}

    def mark(match: regex.Match[str]) -> str:
        word = match.group()
        return f"<hi>{word}</hi>" if len(found := profile.terms(word)) == 1 and found[0] in terms else word

    expected = regex.sub(r"[\p{L}\p{N}\p{M}]+", mark, text)
    assert (Bolder(terms, profile).bold(text) if terms else text) == expected
