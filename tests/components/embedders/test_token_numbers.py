"""`hugging-face-tokenizer`: the numbers of tokens as a tensor, by the tokenizer for a language."""

from __future__ import annotations

import pytest

from paperwasp.components.embedders.registry import check_components, embedders_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles
from tests.components.embedders.tiny_models import VOCABULARY, tiny_tokenizer, tokens_of

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
