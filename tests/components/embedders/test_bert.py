"""`bert-embedder`: word pieces of a vocabulary, and the vector of a text, against a plain twin."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.components.embedders.registry import check_components, embedders_of
from paperwasp.components.embedders.text_tokenizer import WordPieces
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import LanguageError
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles
from tests.components.embedders.tiny_models import END, START, VOCABULARY, assert_near, tiny_bert, tokens_of, twin

VOCAB = "\n".join(VOCABULARY).encode()
FILES = PackageFiles({"m.onnx": tiny_bert(), "vocab.txt": VOCAB})
MODELS = {
    "transformer-model@path": "m.onnx",
    "tokenizer-vocab@path": "vocab.txt",
    "transformer-output": "last_hidden_state",
    "transformer-start-sequence-token": str(START),
    "transformer-end-sequence-token": str(END),
}


def embedded(texts: Sequence[str], type_: str = "tensor<float>(x[16])", **settings: str) -> list[np.ndarray]:
    said = MODELS | {name.replace("_", "-"): value for name, value in settings.items()}
    bert = Component("component", "b", "bert-embedder", settings=said)
    assert list(check_components([bert], FILES)) == []
    (found,) = embedders_of([bert], FILES).values()
    return [each.cells[0] for each in found.embed(texts, TensorType.parse(type_), Context("v"))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat walks.", ("the", "cat", "walk", "##s", ".")),
        ("  blue,sky!! ", ("blue", ",", "sky", "!", "!")),
        ("wàlkíng", ("walk", "##ing")),
        ("unknown cat", ("cat",)),
        ("walkx cat", ("walk", "cat")),
        ("", ()),
    ],
)
def test_word_pieces(text: str, words: tuple[str, ...]) -> None:
    """What no entry fits is left out, from there to the end of the word."""
    found = WordPieces(ModelFile("v", VOCAB)).encode(text, 100)
    assert found == [VOCABULARY.index(word) for word in words]


@given(st.text(st.sampled_from("catwlksing. #!àé0"), max_size=30))
def test_pieces_are_the_longest_that_fit(text: str) -> None:
    """By the definition: every piece is an entry, and no longer entry fits in its place."""
    numbers = WordPieces(ModelFile("v", VOCAB)).encode(text, 1000)
    assert all(0 <= number < len(VOCABULARY) for number in numbers)
    for before, after in pairwise(numbers):
        if VOCABULARY[after].startswith("##") and not VOCABULARY[before].startswith("##"):
            joined = VOCABULARY[before] + VOCABULARY[after][2:]
            assert joined not in VOCABULARY
    assert WordPieces(ModelFile("v", VOCAB)).encode(text, 3) == numbers[:3]


@pytest.mark.parametrize(("content", "problem"), [(b"", "it is empty"), (b"a\n\xff", "not UTF-8 at byte 2")])
def test_a_damaged_vocabulary(content: bytes, problem: str) -> None:
    with pytest.raises(LanguageError, match=f"v.txt is no vocabulary: {problem}"):
        WordPieces(ModelFile("v.txt", content))


@pytest.mark.parametrize(("strategy", "place"), [("mean", None), ("cls", 0)])
def test_vectors(strategy: str, place: int | None) -> None:
    for found, words in zip(
        embedded(["the cat walks", "blue"], pooling_strategy=strategy),
        (("the", "cat", "walk", "##s"), ("blue",)),
        strict=True,
    ):
        whole = twin(tokens_of(*words))
        assert_near(found, whole.mean(axis=0) if place is None else whole[place])


def test_long_texts_are_cut() -> None:
    (found,) = embedded(["the cat is a blue dog"], max_tokens="4")
    assert_near(found, twin(tokens_of("the", "cat")).mean(axis=0))


def test_a_word_is_cut_no_further_than_it_is_needed() -> None:
    """All pieces of this one would take as long as the square of its length."""
    content = b"[PAD]\na\n##a\nb"
    assert WordPieces(ModelFile("v", content)).encode("a" * 5_000_000 + " b", 4) == [1, 2, 2, 2]
    assert WordPieces(ModelFile("v", content)).encode("b aa b", 3) == [3, 1, 2]
