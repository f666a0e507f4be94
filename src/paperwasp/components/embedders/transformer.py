"""A transformer model that runs: tokens of several texts in, the model's output for each token out.

Which inputs a model has, its file says (`ranking.onnx.file`). A deployment tries it in a process of its own
(`ranking.onnx.probe`); only then it is loaded here.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.components.embedders.text_tokenizer import Tokens
from paperwasp.errors import InternalError, LanguageError, NotFound
from paperwasp.ranking.onnx.file import OnnxValue, read_onnx
from paperwasp.ranking.onnx.probe import probe
from paperwasp.ranking.onnx.session import OnnxSession, RunFailed, SessionSettings, session_of

Output = NDArray[np.floating[Any]]

_PROBED_TOKENS: Final = 4
_NEAR: Final = 1e-3
"""How far an output may be off, relatively, where texts are run together: floating-point sums differ by less, what is
quantized by the values of a whole run by more."""


class Transformer:
    """A model with inputs for tokens, and perhaps for an attention mask and the types of tokens. Any threads."""

    def __init__(
        self, file: ModelFile, settings: SessionSettings, ids: str, mask: str, types: str, output: str
    ) -> None:
        """The names of inputs and output; empty: the model has no such input.

        Errors: LanguageError for a file that is no model, or has no input or output of the name.
        """
        self._file = file
        self._settings = settings
        self._output = output
        signature = read_onnx(file.name, file.content)
        self.inputs: Final = {value.name: value for value in signature.inputs}
        outputs = {value.name: value for value in signature.outputs}
        self._names = {"ids": ids, "mask": mask, "types": types}
        for name in filter(None, self._names.values()):
            _check_name(file, "input", name, self.inputs)
        _check_name(file, "output", output, outputs)
        unfilled = sorted(set(self.inputs) - set(self._names.values()))
        if unfilled:
            raise LanguageError(f"{file.name}: Model needs more inputs than an embedder has: {', '.join(unfilled)}")
        self.output_rank: Final = None if (sizes := outputs[output].sizes) is None else len(sizes)
        last = sizes[-1] if (sizes := outputs[output].sizes) else None
        self.dimensions: Final = last if isinstance(last, int) else None
        """Of what the model makes of a token, or of a text; None: it does not say."""
        self._lock = threading.Lock()
        self._session: OnnxSession | None = None
        self._takes_batches: bool | None = None

    def check(self) -> tuple[int, ...]:
        """The shape of the output for one text of a few tokens. Errors: LanguageError if it does not run."""
        for value in self.inputs.values():
            _check_shape(self._file, value)
        shapes = dict.fromkeys(self.inputs, (1, _PROBED_TOKENS))
        return tuple(probe(self._file.name, self._file.content, shapes)[self._output])

    def load(self) -> OnnxSession:
        """The session, loaded where it is not. Errors: InternalError."""
        with self._lock:
            if self._session is None:
                try:
                    content = self._file.content
                except NotFound as error:  # it was there when the embedder was made
                    raise InternalError(error.message) from None
                self._session = session_of(self._file.name, content, self._settings)
            return self._session

    def run(self, texts: Sequence[Tokens]) -> list[Output]:
        """The output of each text: (tokens, dimensions), or (dimensions,) of a model that pools. Errors: ValueError."""
        session = self.load()
        if len(texts) > 1 and self._takes_batches is None:
            self._takes_batches = self._try_batch(session, [texts[0], texts[-1]])
        if len(texts) == 1 or not self._takes_batches:
            return [_split(self._run(session, [text]), [text])[0] for text in texts]
        return _split(self._run(session, texts), texts)

    def _run(self, session: OnnxSession, texts: Sequence[Tokens]) -> Output:
        try:
            return session.run(self._fed(texts))[self._output]
        except RunFailed as error:  # of these texts: a deployment has run the model
            raise ValueError(f"{self._file.name} does not run with this text: {error}") from None

    def _fed(self, texts: Sequence[Tokens]) -> Mapping[str, NDArray[np.int64]]:
        shape = len(texts), max(len(text.ids) for text in texts)
        ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
        for row, text in enumerate(texts):
            length = len(text.ids)
            ids[row, :length] = text.ids
            mask[row, :length] = text.mask
            types[row, :length] = text.types
        given = {"ids": ids, "mask": mask, "types": types}
        return {name: given[role] for role, name in self._names.items() if name}

    def _try_batch(self, session: OnnxSession, texts: Sequence[Tokens]) -> bool:
        """Return whether texts of different lengths are together what they are alone."""
        if not self._names["mask"]:
            return False
        short = texts[0] if len(texts[0].ids) < 2 else _without_last(texts[0])
        pair = [short, texts[1]]
        alone = [_split(self._run(session, [text]), [text])[0] for text in pair]
        try:
            together = _split(self._run(session, pair), pair)
        except Exception:
            return False
        return all(_is_near(a, b) for a, b in zip(alone, together, strict=True))


def _without_last(text: Tokens) -> Tokens:
    return Tokens(text.ids[:-1], text.mask[:-1], text.types[:-1])


def _is_near(alone: Output, together: Output) -> bool:
    if alone.shape != together.shape:
        return False
    return bool(np.abs(alone - together).max(initial=0.0) <= _NEAR * max(1e-6, float(np.abs(alone).max(initial=0.0))))


def _split(output: Output, texts: Sequence[Tokens]) -> list[Output]:
    """The output of each text, without padding. Errors: ValueError for a model that makes something else."""
    if output.ndim not in (2, 3) or output.shape[0] != len(texts):
        raise ValueError(f"the model's output has the shape {output.shape}, which is none of {len(texts)} text(s)")
    if output.ndim == 2:
        return list(output)
    return [row[: len(text.ids)] for row, text in zip(output, texts, strict=True)]


def _check_name(file: ModelFile, kind: str, name: str, known: Mapping[str, OnnxValue]) -> None:
    if name not in known:
        raise LanguageError(
            f"{file.name}: Model does not contain required {kind}: '{name}'. Model contains: {','.join(known)}"
        )


def _check_shape(file: ModelFile, value: OnnxValue) -> None:
    """That the input takes texts of any number of tokens."""
    if value.sizes is None:
        return
    if len(value.sizes) != 2 or isinstance(value.sizes[1], int):
        sizes = ", ".join(map(str, value.sizes))
        raise LanguageError(
            f"{file.name}: input '{value.name}' has the shape ({sizes}); texts of any length need (texts, tokens)"
        )
