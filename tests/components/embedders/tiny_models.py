"""A tiny BERT with random weights, its tokenizer, and a plain twin that computes what the model computes.

The twin works on one text at a time, in float64, from the definition (Devlin et al., 2018), and knows nothing of ONNX.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from minilm import bert_model

SIZE, HEADS, LAYERS, PLACES, WIDE = 16, 2, 2, 64, 32
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (
    "a",
    "blue",
    "cat",
    "dog",
    "is",
    "query:",
    "red",
    "sky",
    "the",
    "walk",
    "##s",
    "##ing",
    "!",
    ".",
    ",",
    "passage:",
)
VOCABULARY = (*SPECIAL, *WORDS)
PAD, UNKNOWN, START, END, MASK = range(5)

Vectors = NDArray[np.float64]


@cache
def tiny_weights() -> Mapping[str, NDArray[np.float32]]:
    """Random weights by the names of Hugging Face's BertModel; the same in every run."""
    chance = np.random.default_rng(20)

    def normal(*shape: int) -> NDArray[np.float32]:
        return chance.normal(0, 0.3, shape).astype(np.float32)

    def dense(name: str, outputs: int, inputs: int) -> dict[str, NDArray[np.float32]]:
        return {f"{name}.weight": normal(outputs, inputs), f"{name}.bias": normal(outputs)}

    def norm(name: str) -> dict[str, NDArray[np.float32]]:
        return {f"{name}.weight": 1 + normal(SIZE), f"{name}.bias": normal(SIZE)}

    weights = {
        "embeddings.word_embeddings.weight": normal(len(VOCABULARY), SIZE),
        "embeddings.position_embeddings.weight": normal(PLACES, SIZE),
        "embeddings.token_type_embeddings.weight": normal(2, SIZE),
        **norm("embeddings.LayerNorm"),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            weights |= dense(f"{layer}.attention.self.{part}", SIZE, SIZE)
        weights |= dense(f"{layer}.attention.output.dense", SIZE, SIZE) | norm(f"{layer}.attention.output.LayerNorm")
        weights |= dense(f"{layer}.intermediate.dense", WIDE, SIZE)
        weights |= dense(f"{layer}.output.dense", SIZE, WIDE) | norm(f"{layer}.output.LayerNorm")
    return weights


@cache
def tiny_bert() -> bytes:
    """The model: input_ids, attention_mask, token_type_ids → last_hidden_state of 16 dimensions."""
    return bert_model(tiny_weights(), LAYERS, HEADS)


@cache
def tiny_masked_bert() -> bytes:
    """The same without an input for the types of tokens."""
    made = onnx.load_model_from_string(tiny_bert())
    made.graph.input.pop()
    made.graph.node.insert(0, onnx.helper.make_node("Sub", ["input_ids", "input_ids"], ["token_type_ids"]))
    return bytes(made.SerializeToString())


def tiny_tokenizer(vocabulary: Sequence[str] = VOCABULARY, **changes: Any) -> bytes:
    """A `tokenizer.json` of word pieces in lower case, [CLS] before and [SEP] after them."""
    special = [
        {
            "id": number,
            "content": word,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for number, word in enumerate(SPECIAL)
    ]
    around = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    around.append({"SpecialToken": {"id": "[SEP]", "type_id": 0}})
    told = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": around,
            "pair": around,
            "special_tokens": {
                word: {"id": word, "ids": [VOCABULARY.index(word)], "tokens": [word]} for word in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: number for number, word in enumerate(vocabulary)},
        },
    }
    return json.dumps(told | changes).encode()


def tokens_of(*words: str) -> list[int]:
    """The numbers of words, between those of start and end."""
    return [START, *(VOCABULARY.index(word) for word in words), END]


def twin(ids: Sequence[int], mask: Sequence[int] | None = None) -> Vectors:
    """What the tiny BERT makes of the tokens of one text: (tokens, 16). `mask`: 0 for what is not attended to."""
    weights = {name: values.astype(np.float64) for name, values in tiny_weights().items()}
    hidden = weights["embeddings.word_embeddings.weight"][list(ids)]
    hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
    hidden = hidden + weights["embeddings.position_embeddings.weight"][: len(ids)]
    hidden = _norm(hidden, weights, "embeddings.LayerNorm")
    for number in range(LAYERS):
        hidden = _layer(hidden, weights, f"encoder.layer.{number}", mask or [1] * len(ids))
    return hidden


def _layer(hidden: Vectors, weights: Mapping[str, Vectors], layer: str, mask: Sequence[int]) -> Vectors:
    query, key, value = (
        _dense(hidden, weights, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")
    )
    size = SIZE // HEADS
    mixed = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = query[:, part] @ key[:, part].T / math.sqrt(size)
        scores[:, [place for place, seen in enumerate(mask) if not seen]] = -np.inf
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        mixed.append(shares / shares.sum(axis=1, keepdims=True) @ value[:, part])
    attended = _dense(np.concatenate(mixed, axis=1), weights, f"{layer}.attention.output.dense")
    between = _norm(attended + hidden, weights, f"{layer}.attention.output.LayerNorm")
    wide = _dense(between, weights, f"{layer}.intermediate.dense")
    wide = np.array([[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row] for row in wide])
    narrow = _dense(wide, weights, f"{layer}.output.dense")
    return _norm(narrow + between, weights, f"{layer}.output.LayerNorm")


def _dense(values: Vectors, weights: Mapping[str, Vectors], name: str) -> Vectors:
    return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(values: Vectors, weights: Mapping[str, Vectors], name: str) -> Vectors:
    centred = values - values.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def assert_near(found: Any, expected: Vectors) -> None:
    """That what was computed in float32 is what the twin computes."""
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=1e-4, atol=1e-4)
