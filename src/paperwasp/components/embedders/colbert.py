"""`colbert-embedder`: a vector for each token of a text, for late interaction.

    query       start, mark of queries, tokens, end, and mask tokens up to `max-query-tokens`: a vector for each
    document    start, mark of documents, tokens without punctuation, end: a vector for each, of int8 packed into bits

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#colbert-embedder, ColBertEmbedder.java
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Final

import numpy as np

from paperwasp.components.embedders.base import Settings, TextEmbedder, embedder
from paperwasp.components.embedders.text_tokenizer import TextTokenizer, Tokens
from paperwasp.components.embedders.transformer import Output, Transformer
from paperwasp.components.embedders.vectors import check_finite, packed
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import LanguageError
from paperwasp.indexing.components import Context

_AROUND: Final = 3
"""The tokens around those of a text: start, mark and end."""


@embedder("colbert-embedder")
class ColBertEmbedder(TextEmbedder[Tokens, Output]):
    """Makes tensors of one mapped dimension, the token's place, and one indexed one."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        most = settings.integer("max-tokens", 512)
        self._most = {
            True: min(settings.integer("max-query-tokens", 32), most),
            False: min(settings.integer("max-document-tokens", 512), most),
        }
        self._mark = {True: settings.integer("query-token-id", 1), False: settings.integer("document-token-id", 2)}
        self._start = settings.integer("transformer-start-sequence-token", 101)
        self._end = settings.integer("transformer-end-sequence-token", 102)
        self._mask = settings.integer("transformer-mask-token", 103)
        self._attends_to_mask = settings.flag("attend-to-expansion-tokens")
        self._transformer = _transformer(settings)
        tokenizer = settings.model("tokenizer-model")
        self._tokenizer = TextTokenizer(tokenizer, most, adds_special_tokens=False)
        self._skipped = {each for sign in self._tokenizer.encode(list(string.punctuation)) for each in sign.ids}

    def check(self) -> None:
        """Errors: LanguageError."""
        if len(self._transformer.check()) != 3:
            raise LanguageError("Expected onnx result to have 3-dimensions [batch, sequence, dim]")
        if min(self._most.values()) < _AROUND:
            raise LanguageError(f"a text needs {_AROUND} tokens at least: those around it")

    def load(self) -> None:
        self._transformer.load()

    def check_type(self, type: TensorType, context: Context) -> None:
        if len(type.dimensions) != 2 or len(type.indexed) != 1:
            problem = "Invalid colbert embedder tensor target destination."
            raise ValueError(f"{problem} Wanted a mixed 2-d mapped-indexed tensor, got {type}")
        if context.is_query and type.cell_type == "int8":
            raise ValueError("ColBert query embed does not accept int8 tensor value type")
        if self._transformer.dimensions is not None:
            _check_size(self._transformer.dimensions, type, context)

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Tokens]:
        return [self._around(tokens.ids, is_query) for tokens in self._tokenizer.encode(texts)]

    def length(self, item: Tokens) -> int:
        return len(item.ids)

    def run(self, items: Sequence[Tokens]) -> Sequence[Output]:
        return [output.astype(np.float32) for output in self._transformer.run(items)]

    def size_bytes(self, made: Output) -> int:
        return made.nbytes

    def tensor(self, made: Output, type: TensorType, context: Context) -> Tensor:
        check_finite(made)
        _check_size(made.shape[1], type, context)
        cells = packed(made) if type.cell_type == "int8" else as_cells(made.astype(np.float64), type.cell_type)
        return Tensor(type, tuple((str(place),) for place in range(len(made))), cells)

    def _around(self, ids: Sequence[int], is_query: bool) -> Tokens:
        """The tokens of a text, marked, cut, and those of a query with mask tokens behind them."""
        most = self._most[is_query]
        kept = list(ids) if is_query else [each for each in ids if each not in self._skipped]
        whole = [self._start, self._mark[is_query], *kept[: most - _AROUND], self._end]
        added = most - len(whole) if is_query else 0
        mask = [1] * len(whole) + [int(self._attends_to_mask)] * added
        return Tokens([*whole, *[self._mask] * added], mask, [0] * (len(whole) + added))


def _check_size(given: int, type_: TensorType, context: Context) -> None:
    """Errors: ValueError for a type that does not fit token vectors of this many dimensions."""
    size = type_.shape[0]
    if type_.cell_type == "int8":
        if given != 8 * size:
            raise ValueError(f"Not possible to pack {given} + dimensions into {size} dimensions")
    elif given != size:
        if context.is_query:
            raise ValueError(f"Token vector dimensionality does not match indexed dimensionality of {size}")
        raise ValueError(f"Not possible to map token vector embedding with {given} dimensions into tensor with {size}")


def _transformer(settings: Settings) -> Transformer:
    return Transformer(
        settings.model("transformer-model"),
        settings.session(),
        settings.text("transformer-input-ids", "input_ids"),
        settings.text("transformer-attention-mask", "attention_mask"),
        "",
        settings.text("transformer-output", "contextual"),
    )
