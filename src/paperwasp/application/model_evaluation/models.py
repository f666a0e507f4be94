"""The models in the folder `models/` of a package, by name.

The name of a model is its path below that folder without the ending, `_` for each `/` and each dot. What is a model is
seen from the ending, and of JSON from the content: an array is XGBoost, an object with `tree_info` LightGBM. A file
that cannot be read as what it seems to be is no model, and a warning says so; so it does of a network that fails for
zeros, open sizes being 1. Differs: a network that cannot be loaded, takes too much, or ends its process is an error of
the deployment: what is run in the service itself has run elsewhere before.

Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html, ImportedMlModels.java, Model.java
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import PurePosixPath
from typing import Final, NoReturn

import orjson

from paperwasp.application.model_evaluation.expressions import Surroundings, compile_function
from paperwasp.application.model_evaluation.function import Function, NoSuchThing
from paperwasp.application.model_evaluation.model_language import read_model
from paperwasp.application.model_evaluation.networks import NetworkFunction, argument_types
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.errors import Finding, LanguageError
from paperwasp.ranking.declarations import MODELS, Declarations, Probe, model_name
from paperwasp.ranking.onnx.file import OnnxSignature, read_onnx
from paperwasp.ranking.onnx.probe import DoesNotRun
from paperwasp.ranking.onnx.session import SessionSettings, session_of
from paperwasp.ranking.scope import Source
from paperwasp.schema.files import PackageFiles

_NAME: Final = compile_later("[A-Za-z0-9_]+")
_TREE_INFO: Final = "tree_info"
Settings = Mapping[str, SessionSettings]
"""Name of a network → how it runs; the others run by `default_settings`."""


def default_settings() -> SessionSettings:
    """A quarter of the processors for an operation; operations one after another."""
    return SessionSettings(intraop_threads=max(1, -(-(os.cpu_count() or 1) // 4)))


@dataclass(frozen=True, slots=True)
class EvaluatedModel:
    """A model with its functions, in the order of its file."""

    name: str
    functions: Sequence[Function]

    def function(self, names: Sequence[str]) -> Function:
        """The function that these names mean: itself, or its part before or behind a dot; none where there is only one.

        Errors: NoSuchThing.
        """
        if not names:
            if len(self.functions) > 1:
                self._fail(f"More than one function is available in model '{self.name}', but no name is given")
            return self.functions[0]
        if len(names) > 2:
            given = ", ".join(names)
            raise NoSuchThing(f"No more than 2 names can be given when choosing a function, got [{given}]")
        return self._named(".".join(names))

    def _named(self, name: str) -> Function:
        by_name = {function.name.lower(): function for function in self.functions}
        by_name |= {function.name: function for function in self.functions}
        if name in by_name:
            return by_name[name]
        starting = [each for each in self.functions if each.name.lower().startswith(name + ".")]
        ending = [each for each in self.functions if each.name.lower().endswith("." + name)]
        for found, how in ((starting, "start by"), (ending, "called")):
            if len(found) > 1:
                self._fail(f"Multiple functions {how} '{name}' in model '{self.name}'")
            if found:
                return found[0]
        if name.startswith("serving_default"):
            return self._named(name.removeprefix("serving_"))
        if name.startswith("default."):
            return self._named(name.removeprefix("default."))
        self._fail(f"No function '{name}' in model '{self.name}'")

    def _fail(self, message: str) -> NoReturn:
        known = ", ".join(function.name for function in self.functions)
        raise NoSuchThing(f"{message}. Available functions: {known}")


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a package in the order of their names, and what is to be said of the files."""

    by_name: Mapping[str, EvaluatedModel] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    networks: tuple[str, ...] = ()
    """The names of those that are ONNX models."""

    def model(self, name: str) -> EvaluatedModel:
        """The model of that name, or of that name in lower case. Errors: NoSuchThing."""
        found = self.by_name.get(name)
        if found is None:
            found = next((each for each in self.by_name.values() if each.name.lower() == name), None)
        if found is None:
            known = ", ".join(self.by_name)
            raise NoSuchThing(f"No model named '{name}'. Available models: {known}")
        return found


def read_models(files: Mapping[str, bytes], settings: Settings, probe: Probe | None = None) -> Models:
    """The models in the files of a package. `probe`: tries networks, which nobody trusts yet."""
    return _Reader(files, settings, probe).read()


class _Reader:
    def __init__(self, files: Mapping[str, bytes], settings: Settings, probe: Probe | None) -> None:
        self._files = files
        self._settings = settings
        self._probe = probe
        self._declarations = Declarations(PackageFiles(files), probe)
        self._findings: list[Finding] = []
        self._networks: list[str] = []

    def read(self) -> Models:
        found: dict[str, EvaluatedModel] = {}
        paths: dict[str, str] = {}
        for path in sorted(path for path in self._files if path.startswith(MODELS)):
            kind = kind_of(path, self._files[path])
            if not kind:
                continue
            name = model_name(path)
            if name in paths:
                both = f"The models in {path} and {paths[name]} both resolve to the model name '{name}'"
                self._findings.append(Finding(both, level="ERROR"))
                continue
            paths[name] = path
            try:
                found[name] = EvaluatedModel(name, tuple(self._functions(kind, name, path)))
            except LanguageError as error:
                self._findings.append(Finding(f"{path} is not evaluated: {error.bare_message}", error.position))
        return Models(dict(sorted(found.items())), tuple(self._findings), tuple(self._networks))

    def _functions(self, kind: str, name: str, path: str) -> Iterator[Function]:
        """Errors: LanguageError for what is no model."""
        if not _NAME.fullmatch(name):
            raise LanguageError(f"the name of a model has letters, digits and _ only, not '{name}'")
        content = self._files[path]
        if kind == "model":
            functions = read_model(path, content, self._declarations)
            if not functions:
                raise LanguageError("it has no functions")
            yield from functions
        elif kind == "onnx":
            yield from self._network(name, path, content)
        else:
            source = Source(f'{kind}("{path}")', f"model {name!r}")
            yield compile_function(name, source, Surroundings(self._declarations))

    def _network(self, name: str, path: str, content: bytes) -> Iterator[Function]:
        signature = read_onnx(path, content)
        argument_types(signature)
        if self._probe is not None:
            try:
                self._probe(path, content, _least_shapes(signature))
            except DoesNotRun as error:
                self._findings.append(Finding(f"{error.bare_message} (with zeros, open sizes being 1)", error.position))
            except LanguageError as error:
                self._findings.append(Finding(error.bare_message, error.position, "ERROR"))
        self._networks.append(name)
        load = partial(session_of, path, content, self._settings.get(name) or default_settings())
        for output in signature.outputs:
            yield NetworkFunction(signature, output, load)


def _least_shapes(signature: OnnxSignature) -> Mapping[str, Sequence[int]]:
    return {
        value.name: [size if isinstance(size, int) else 1 for size in value.sizes or ()] for value in signature.inputs
    }


def kind_of(path: str, content: bytes) -> str:
    """`onnx`, `xgboost`, `lightgbm` or `model`; empty for a file that is no model."""
    ending = PurePosixPath(path).suffix
    if ending == ".ubj":
        return "xgboost"
    if ending in (".onnx", ".model"):
        return ending[1:]
    if ending != ".json":
        return ""
    if content.lstrip()[:1] == b"[":
        return "xgboost"
    if b'"tree_info"' not in content:
        return ""
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ""
    return "lightgbm" if isinstance(found, dict) and _TREE_INFO in found else ""
