"""Embedding short texts by MiniLM, beside tokenizers and onnxruntime called directly in batches.

All of the processor time of the process counts, and the model has one thread. What was made of a text is never
remembered here: each round has an embedder of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.ranking_node import ratio_row
from bench.report import Report
from paperwasp import limits
from paperwasp.components.embedders.registry import embedders_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.indexing.components import Context, Embedder
from paperwasp.schema.files import Component, PackageFiles

sys.path.append(str(Path(__file__).parent.parent / "examples" / "pydoc"))

MOST_RATIO: Final = 1.1
TEXTS: Final = 10_000
WORDS: Final = (3, 16)
"""The fewest and the most words of a text."""
DIRECT_BATCH: Final = 32
TYPE: Final = TensorType.parse("tensor<float>(x[384])")
_IDS: Final = count()


def run(report: Report, texts_count: int = TEXTS, rounds: int = 3) -> None:
    """Adds the rows; a remark where the weights are not installed."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    files = _files()
    if files is None:
        report.remark("embedding: left out, the weights of MiniLM are not installed (make minilm)")
        return
    texts = _texts(texts_count)
    direct = _direct(files)
    works: dict[str, Callable[[], NDArray[np.float32]]] = {
        "direct": lambda: direct(texts),
        "together": lambda: _together(_embedder(files), texts),
        "threads": lambda: _in_threads(_embedder(files), texts),
    }
    least = dict.fromkeys(works, float("inf"))
    vectors: dict[str, NDArray[np.float32]] = {}
    for _ in range(rounds):
        for name, work in works.items():
            started = time.process_time()
            vectors[name] = work()
            least[name] = min(least[name], time.process_time() - started)
    for name in ("together", "threads"):
        if not np.allclose(vectors[name], vectors["direct"], atol=1e-4):
            report.fail(f"embedding: the vectors of {name} are others than those of the direct calls")
    said = {"together": "one call", "threads": f"{limits.embedding.DOCUMENT_THREADS} threads, a text each"}
    for name, how in said.items():
        described = f"embed {texts_count:,} short texts, {how}"
        report.add(ratio_row(described, least[name], least["direct"], MOST_RATIO, "tokenizers + onnxruntime"))


def _files() -> dict[str, bytes] | None:
    import minilm

    folder = minilm.wheel_folder()
    if folder is None:
        return None
    with TemporaryDirectory() as target:
        minilm.write_model(folder, Path(target))
        return {f"models/{name}": (Path(target) / name).read_bytes() for name in ("model.onnx", "tokenizer.json")}


def _texts(texts_count: int) -> list[str]:
    """Parts of the documentation of the standard library, all different."""
    from index_pydoc import documents, installation_roots

    chance = np.random.default_rng(20)
    found: dict[str, None] = {}
    for document in documents(installation_roots()[:1]):
        words = document["fields"]["documentation"].split()
        at = 0
        while at < len(words) and len(found) < texts_count:
            length = int(chance.integers(*WORDS))
            found[" ".join(words[at : at + length])] = None
            at += length
    return list(found)


def _embedder(files: dict[str, bytes]) -> Embedder:
    settings = {"transformer-model@path": "models/model.onnx", "tokenizer-model@path": "models/tokenizer.json"}
    settings |= {"normalize": "true", "onnx-intraop-threads": "1"}
    component = Component("component", f"minilm{next(_IDS)}", "hugging-face-embedder", settings=settings)
    (found,) = embedders_of([component], PackageFiles(files)).values()
    found.load()
    return found


def _together(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.concatenate([each.cells for each in embedder.embed(texts, TYPE, Context("v"))])


def _in_threads(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    with ThreadPoolExecutor(limits.embedding.DOCUMENT_THREADS) as pool:
        made = pool.map(lambda text: embedder.embed([text], TYPE, Context("v"))[0].cells, texts)
        return np.concatenate(list(made))


def _direct(files: dict[str, bytes]) -> Callable[[Sequence[str]], NDArray[np.float32]]:
    """The vectors of texts by the two libraries alone, texts of about the same length together."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(files["models/tokenizer.json"].decode())
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(files["models/model.onnx"], options, providers=["CPUExecutionProvider"])

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        encoded: list[Any] = tokenizer.encode_batch(list(texts))
        made = np.empty((len(texts), 384), np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(encoded[place].ids))
        for start in range(0, len(order), DIRECT_BATCH):
            places = order[start : start + DIRECT_BATCH]
            longest = len(encoded[places[-1]].ids)
            ids = np.zeros((len(places), longest), np.int64)
            mask = np.zeros_like(ids)
            for row, place in enumerate(places):
                length = len(encoded[place].ids)
                ids[row, :length] = encoded[place].ids
                mask[row, :length] = 1
            fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = session.run(None, fed)[0]
            means = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            made[places] = means / np.linalg.norm(means, axis=1, keepdims=True)
        return made

    return embed
