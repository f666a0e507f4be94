"""The ids by which Vespa Cloud's packages name models, and the public address of each model.

Vespa: ModelIdResolver.java (config-model), as of November 2026. Outside of Vespa Cloud Vespa refuses a `model-id`
without `path` or `url`; here the file is looked for in the model cache, and `paperwasp models fetch` brings it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HOST: Final = "https://data.vespa-cloud.com"
_TRANSFORMERS: Final = (
    "multilingual-e5-base",
    "multilingual-e5-small",
    "multilingual-e5-small-cpu-friendly",
    "e5-small-v2",
    "e5-small-v2-cpu-friendly",
    "e5-base-v2",
    "e5-large-v2",
)
"""Each has a model of its name, and the tokenizer of it under its name with `-vocab`."""
_OTHERS: Final = {
    "minilm-l6-v2": "onnx_models/sentence_all_MiniLM_L6_v2.onnx",
    "mpnet-base-v2": "onnx_models/sentence-all-mpnet-base-v2.onnx",
    "bert-base-uncased": "onnx_models/bert-base-uncased-vocab.txt",
    "flan-t5-vocab": "onnx_models/flan-t5-spiece.model",
    "mistral-7b": "gguf_models/mistral-7b-instruct-v0.1.Q6_K.gguf",
    "mistral-7b-q8": "gguf_models/mistral-7b-instruct-v0.1.Q8_0.gguf",
    "phi-3.5-mini-q4": "gguf_models/Phi-3.5-mini-instruct-Q4_K_M.gguf",
    "significance-en-wikipedia-v1": "significance_models/significance-en-wikipedia-v1.json.zst",
}
_T5: Final = tuple(f"flan-t5-{size}-{half}" for size in ("small", "base", "large") for half in ("encoder", "decoder"))

ADDRESSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: f"{_HOST}/{path}" for name, path in _OTHERS.items()},
        **{name: f"{_HOST}/onnx_models/{name}-model.onnx" for name in _T5},
        **{name: f"{_HOST}/onnx_models/{name}/model.onnx" for name in _TRANSFORMERS},
        **{f"{name}-vocab": f"{_HOST}/onnx_models/{name}/tokenizer.json" for name in _TRANSFORMERS},
    }
)
"""Id → where the file is."""
