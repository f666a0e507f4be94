"""Texts cut into tokens: several together are what the library makes of each alone.

The numbers of tokens as a tensor are those of the tokenizer for a language (`hugging-face-tokenizer`).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.components.embedders.registry import check_components, embedders_of
from paperwasp.components.embedders.text_tokenizer import TextTokenizer, Tokens
from paperwasp.document.tensor.types import TensorType
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles
from tests.components.embedders.tiny_models import VOCABULARY, WORDS, tiny_tokenizer, tokens_of

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


WITHOUT = tiny_tokenizer(post_processor=None)
FILES = PackageFiles({"t.json": tiny_tokenizer(), "en.json": WITHOUT})


def numbers(text: str, type_: str, language: str = "", **settings: str) -> list[float]:
    said = {name.replace("__", "#").replace("_at_", "@"): value for name, value in settings.items()}
    tokenizer = Component("component", "t", "hugging-face-tokenizer", settings=said or {"model@path": "t.json"})
    assert list(check_components([tokenizer], FILES)) == []
    (found,) = embedders_of([tokenizer], FILES).values()
    (tensor,) = found.embed([text], TensorType.parse(type_), Context("v", language))
    values: list[float] = tensor.cells[0].tolist()
    return values


def test_cut_filled_or_as_long_as_the_text() -> None:
    tokens = tokens_of("the", "cat")
    assert numbers("the cat", "tensor<float>(x[6])") == [*tokens, 0, 0]
    assert numbers("the cat", "tensor<float>(x[3])") == tokens[:3]
    assert numbers("the cat", "tensor<float>(x[])") == tokens


def test_languages() -> None:
    both = {"model_at_path": "t.json", "model__2_at_path": "en.json", "model__2_at_language": "en"}
    assert numbers("cat", "tensor<float>(x[])", "en", **both) == [VOCABULARY.index("cat")]
    assert numbers("cat", "tensor<float>(x[])", "de", **both) == tokens_of("cat")
    with pytest.raises(ValueError, match="No model for language de"):
        numbers("cat", "tensor<float>(x[])", "de", model_at_path="en.json", model_at_language="en")


def test_types_that_it_does_not_make() -> None:
    for type_ in ("tensor<float>(x{})", "tensor<float>(x[2],y[2])"):
        with pytest.raises(ValueError, match="Don't know how to embed with target tensor type"):
            numbers("cat", type_)
