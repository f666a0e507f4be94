"""Texts cut into tokens: several together are what the library makes of each alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.components.embedders.text_tokenizer import TextTokenizer, Tokens
from tests.components.embedders.tiny_models import WORDS, tiny_tokenizer

WORD = st.sampled_from([*WORDS, "Walking", "cats", "nowhere", "ünïcode", "a.b"])
TEXTS = st.lists(st.one_of(st.lists(WORD, max_size=30).map(" ".join), st.text(max_size=20)), min_size=1, max_size=4)


@pytest.mark.parametrize("adds_special_tokens", [True, False])
@pytest.mark.parametrize("most", [3, 8, 512])
@given(texts=TEXTS)
def test_as_the_library_makes_of_one_text(most: int, adds_special_tokens: bool, texts: list[str]) -> None:
    one = Tokenizer.from_str(tiny_tokenizer().decode())
    one.enable_truncation(most)
    made = [one.encode(text, add_special_tokens=adds_special_tokens) for text in texts]
    expected = [Tokens(each.ids, each.attention_mask, each.type_ids) for each in made]
    file = ModelFile("tokenizer.json", tiny_tokenizer())
    found = TextTokenizer(file, most, adds_special_tokens=adds_special_tokens).encode(texts)
    assert found == expected
