"""Checks what rank profiles declare: the literals of constants and inputs, and the content of the files of models.

That declared files are in the package, and the content of those of constants, is checked with the package. Profiles
share what they inherit, so everything is checked once, and a problem has one message wherever it is met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.document.tensor.json_format import read_constant
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.forest_file import forest_in, names_path
from paperwasp.ranking.onnx.file import OnnxSignature, read_onnx
from paperwasp.ranking.onnx.probe import Shapes
from paperwasp.ranking.onnx.session import DEFAULT_SETTINGS, OnnxSession, SessionSettings, session_of
from paperwasp.schema.files import PackageFile
from paperwasp.schema.model import Constant, OnnxModel
from paperwasp.text.parsing.tokens import did_you_mean

MODELS: Final = "models/"
"""The folder of a package that models are in."""
MODEL_ENDINGS: Final = (".json", ".ubj", ".onnx", ".model")

_T = TypeVar("_T")


Probe = Callable[[str, bytes, Shapes], Shapes]
"""From the path of a model, its content and the shapes of its inputs to those of its outputs. Errors: LanguageError."""


class Model(Struct, frozen=True):
    """An ONNX model as expressions see it."""

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    signature: OnnxSignature | None
    """None: not known, as the file is not available or wrong."""
    position: Position | None = None
    file: PackageFile | None = None
    path: str = ""
    settings: SessionSettings = DEFAULT_SETTINGS
    try_run: Callable[[Shapes], Shapes] | None = None
    """The shapes of the outputs, found by a run. Errors: LanguageError where there can be none."""
    is_tried: bool = False
    """True where the model has to be run before it is trusted, even if all shapes are declared."""

    def session(self) -> OnnxSession:
        """Loaded, if nobody has. Errors: InternalError."""
        assert self.file is not None
        return session_of(self.path, self.file.read(), self.settings)

    def run_with_zeros(self, shapes: Shapes) -> Shapes:
        """As `try_run`, in this process: for models that were tried before."""
        found = self.session().run({name: np.zeros(tuple(shape)) for name, shape in shapes.items()})
        return {name: values.shape for name, values in found.items()}


class Declarations:
    """Checks what is declared. `files`: those of the package, if they are available; without them no file is checked.

    `probe`: tries ONNX models, which are not trusted then.
    """

    def __init__(self, files: Mapping[str, PackageFile] | None = None, probe: Probe | None = None) -> None:
        self.files = files
        self._probe = probe
        self._known: dict[object, object] = {}

    def constant(self, constant: Constant) -> tuple[float | Tensor | None, LanguageError | None]:
        """The value of a constant, or what is wrong with it; neither where its file is not available."""
        return self._once(("constant", constant), lambda: self._constant(constant))

    def _constant(self, constant: Constant) -> tuple[float | Tensor | None, LanguageError | None]:
        what = f"constant {constant.name!r}"
        if constant.text:
            return literal(what, constant.text, constant.type, constant.position)
        file = None if self.files is None else self.files.get(constant.file)
        if file is None:
            return None, None
        return _value(what, constant.position, lambda: read_constant(constant.file, file.read(), constant.type))

    def model(self, model: OnnxModel) -> tuple[Model, tuple[LanguageError, ...]]:
        """A declared model, and what is wrong with it."""
        return self._once(("model", model.name, model.file, model.position), lambda: self._model(model))

    def _model(self, model: OnnxModel) -> tuple[Model, tuple[LanguageError, ...]]:
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
                        message = f"{what}: the model has no {kind} {name!r}; it has {', '.join(there)}"
                        problems.append(LanguageError(message + did_you_mean(name, there), model.position))
        found = Model(model.name, model.inputs, model.outputs, signature, model.position, file, model.file)
        return self._runnable(replace(found, settings=_settings(model))), tuple(problems)

    def _runnable(self, model: Model) -> Model:
        """The model with a way to try it."""
        if model.file is None or model.signature is None:
            return model
        if self._probe is None:
            return replace(model, try_run=model.run_with_zeros)
        return replace(model, try_run=partial(self._probe_once, self._probe, model.path, model.file), is_tried=True)

    def _probe_once(self, probe: Probe, path: str, file: PackageFile, shapes: Shapes) -> Shapes:
        key = ("tried", path, *((name, tuple(shape)) for name, shape in sorted(shapes.items())))
        found = self._once(key, lambda: _outcome(lambda: probe(path, file.read(), shapes)))
        if isinstance(found, LanguageError):
            raise found
        return found

    def model_file(self, name: str) -> Model:
        """A model that an expression names by its file, in the package or in its folder of models.

        Vespa: OnnxModelConfigGenerator.java. Errors: LanguageError.
        """
        in_package = None if self.files is None else self.files.get(name)
        file = self.model_content(name) if in_package is None else in_package
        if file is None:
            return Model(name, {}, {}, None)
        return self._once(
            ("onnx", name), lambda: self._runnable(Model(name, {}, {}, read_onnx(name, file.read()), None, file, name))
        )

    def forest(self, kind: str, name: str) -> Forest | None:
        """The forest in the file of an xgboost or lightgbm model; None where files are not available.

        Errors: LanguageError.
        """
        file = self.model_content(name)
        if file is None:
            return None
        named = None if self.files is None else self.files.get(names_path(file.path))
        names = b"" if named is None else named.read()
        read = partial(forest_in, kind, file, names)
        found = self._once(("forest", kind, name), lambda: _outcome(read))
        if isinstance(found, LanguageError):
            raise found
        return found

    def model_content(self, name: str) -> PackageFile | None:
        """A file in the folder of models; None where there are no files. Errors: LanguageError if it is missing."""
        if self.files is None:
            return None
        path = self._path_of(name)
        if path not in self.files:
            near = did_you_mean(path, (known for known in self.files if known.startswith(MODELS)))
            raise LanguageError(f"there is no file {path!r} in the package{near}")
        return self.files[path]

    def _path_of(self, name: str) -> str:
        """Where a model is that an expression names by its path in the folder of models, or by its name in Vespa.

        Vespa: ImportedMlModels.java. Errors: LanguageError for a name that two files have.
        """
        path = name if name.startswith(MODELS) else MODELS + name
        if self.files is None or path in self.files:
            return path
        named = self._once("names of models", self._paths_by_name).get(name, ())
        if len(named) > 1:
            raise LanguageError(f"the models in {' and '.join(named)} both have the name {name!r}")
        return named[0] if named else path

    def _paths_by_name(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self.files or ()):
            if path.startswith(MODELS) and path.endswith(MODEL_ENDINGS):
                found.setdefault(model_name(path), []).append(path)
        return found

    def _once(self, key: object, work: Callable[[], _T]) -> _T:
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]  # type: ignore[return-value]  # of this key it is what `work` gave


def literal(
    what: str, text: str, type_: TensorType, position: Position | None
) -> tuple[float | Tensor | None, LanguageError | None]:
    """The value of a literal of a type, or what is wrong with it."""
    if type_ is NUMBER or type_.is_number:
        try:
            return float(text), None
        except ValueError:
            pass
    return _value(what, position, lambda: parse_tensor(text, type_))


def _value(
    what: str, position: Position | None, work: Callable[[], Tensor]
) -> tuple[float | Tensor | None, LanguageError | None]:
    try:
        value = work()
    except LanguageError as error:
        return None, LanguageError(f"{what}: {error.message}", position)
    return (float(value.cells[0]), None) if value.type.is_number else (value, None)


def model_name(path: str) -> str:
    """The name in Vespa of the model in a file of the folder `models/`: without ending, and `_` for `/` and `.`."""
    below = PurePosixPath(path.removeprefix(MODELS))
    return below.with_name(below.stem).as_posix().replace("/", "_").replace(".", "_")


def _outcome(work: Callable[[], _T]) -> _T | LanguageError:
    try:
        return work()
    except LanguageError as error:
        return error


def _settings(model: OnnxModel) -> SessionSettings:
    return SessionSettings(
        model.intraop_threads or 1,
        model.interop_threads or 1,
        model.execution_mode == "parallel",
        model.gpu_device,
        optimizes=model.optimizes,
    )
