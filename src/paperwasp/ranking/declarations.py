"""What rank profiles declare, checked: literals of constants and inputs, and what is in the files of models.

That declared files are in the package, and the content of those of constants, is checked with the package. Profiles
share what they inherit, so everything is checked once, and a problem has one message wherever it is met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import orjson

from paperwasp.errors import LanguageError, Position
from paperwasp.parsing.nearest import did_you_mean
from paperwasp.ranking.onnx_file import OnnxSignature, read_onnx
from paperwasp.tensor.literal import parse_tensor
from paperwasp.tensor.types import NUMBER, TensorType

MODELS: Final = "models/"
"""The folder of a package that models are in."""

_T = TypeVar("_T")


class FileSource(Protocol):
    """A file of the package, read when its content is asked for."""

    def read(self) -> bytes: ...


class ConstantSource(Protocol):
    """A declared constant: a literal of its type; empty if it is in a file."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> TensorType: ...
    @property
    def text(self) -> str: ...
    @property
    def position(self) -> Position | None: ...


class InputSource(Protocol):
    """A declared query(name). `default` is a literal, or empty; `type` None: a string."""

    @property
    def type(self) -> TensorType | None: ...
    @property
    def default(self) -> str: ...
    @property
    def position(self) -> Position | None: ...


class ModelSource(Protocol):
    """A declared ONNX model: input of the model → expression, output of the model → name in expressions."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def inputs(self) -> Mapping[str, str]: ...
    @property
    def outputs(self) -> Mapping[str, str]: ...
    @property
    def position(self) -> Position | None: ...


@dataclass(frozen=True, slots=True)
class Model:
    """An ONNX model as expressions see it."""

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    signature: OnnxSignature | None
    """None: not known, as the file is not at hand or wrong."""
    position: Position | None = None


class Declarations:
    """Checks what is declared. `files`: those of the package, if they are at hand; without them no file is checked."""

    def __init__(self, files: Mapping[str, FileSource] | None = None) -> None:
        self.files = files
        self._known: dict[object, object] = {}

    def constant(self, constant: ConstantSource) -> LanguageError | None:
        """What is wrong with the value of a constant."""
        return self._once(("constant", constant), lambda: self._constant_problem(constant))

    def _constant_problem(self, constant: ConstantSource) -> LanguageError | None:
        if not constant.text:
            return None
        return literal_problem(f"constant {constant.name!r}", constant.text, constant.type, constant.position)

    def model(self, model: ModelSource) -> tuple[Model, tuple[LanguageError, ...]]:
        """A declared model, and what is wrong with it."""
        return self._once(("model", model.name, model.file, model.position), lambda: self._model(model))

    def _model(self, model: ModelSource) -> tuple[Model, tuple[LanguageError, ...]]:
        what = f"onnx-model {model.name!r}"
        signature: OnnxSignature | None = None
        problems: list[LanguageError] = []
        file = None if self.files is None else self.files.get(model.file)
        if file is not None:
            try:
                signature = read_onnx(model.file, file.read())
            except LanguageError as error:
                problems.append(LanguageError(f"{what}: {error.bare_message}", model.position))
        if signature is not None:
            for kind, named, values in (
                ("input", model.inputs, signature.inputs),
                ("output", model.outputs, signature.outputs),
            ):
                there = [value.name for value in values]
                for name in named:
                    if name not in there:
                        told = f"{what}: the model has no {kind} {name!r}; it has {', '.join(there)}"
                        problems.append(LanguageError(told + did_you_mean(name, there), model.position))
        return Model(model.name, model.inputs, model.outputs, signature, model.position), tuple(problems)

    def model_file(self, name: str) -> Model:
        """A model that an expression names by its file. Errors: LanguageError."""
        content = self.content(name)
        return Model(name, {}, {}, None if content is None else read_onnx(name, content))

    def check_trees(self, name: str) -> None:
        """Checks the file of an xgboost or lightgbm model. Errors: LanguageError."""
        content = self.content(name)
        if content is None:
            return
        problem = self._once(("trees", name), lambda: _tree_problem(name, content))
        if problem is not None:
            raise LanguageError(problem)

    def content(self, name: str) -> bytes | None:
        """A file in the folder of models; None where files are not at hand. Errors: LanguageError if it is missing."""
        if self.files is None:
            return None
        path = name if name.startswith(MODELS) else MODELS + name
        if path not in self.files:
            near = did_you_mean(path, (known for known in self.files if known.startswith(MODELS)))
            raise LanguageError(f"there is no file {path!r} in the package{near}")
        return self.files[path].read()

    def _once(self, key: object, work: Callable[[], _T]) -> _T:
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]  # type: ignore[return-value]  # of this key it is what `work` gave


def literal_problem(what: str, text: str, type_: TensorType, position: Position | None) -> LanguageError | None:
    """What is wrong with a literal of a type."""
    if type_ is NUMBER or type_.is_number:
        try:
            float(text)
        except ValueError:
            pass
        else:
            return None
    return _problem(what, position, lambda: parse_tensor(text, type_))


def _problem(what: str, position: Position | None, work: Callable[[], object]) -> LanguageError | None:
    try:
        work()
    except LanguageError as error:
        return LanguageError(f"{what}: {error.message}", position)
    return None


def _tree_problem(name: str, content: bytes) -> str | None:
    """Why it is no JSON of trees: XGBoost dumps a list of nodes, LightGBM an object with tree_info."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return f"{name}, line {error.lineno}, column {error.colno}: {error.msg}"
    trees = value.get("tree_info") if isinstance(value, dict) else value
    if isinstance(trees, list) and all(isinstance(tree, dict) for tree in trees):
        return None
    return f"{name} holds no trees: a list of them (XGBoost), or an object with tree_info (LightGBM), is expected"
