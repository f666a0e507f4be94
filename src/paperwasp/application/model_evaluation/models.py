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
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Final, NoReturn

import orjson
from msgspec import Struct, field

from paperwasp.application.findings import Findings
from paperwasp.application.model_evaluation.functions import (
    ExpressionFunction,
    Function,
    NetworkFunction,
    NoSuchThing,
    Surroundings,
    argument_types,
    compile_function,
)
from paperwasp.application.services_model import Container, EvaluatedNetwork
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Finding, LanguageError, Position
from paperwasp.ranking.declarations import MODELS, Declarations, Probe, model_name
from paperwasp.ranking.onnx.file import read_onnx
from paperwasp.ranking.onnx.probe import DoesNotRun, probe
from paperwasp.ranking.onnx.session import SessionSettings, session_of
from paperwasp.ranking.scope import Source, function_source
from paperwasp.schema.files import PackageFiles
from paperwasp.schema.model import Constant
from paperwasp.schema.model import Function as SchemaFunction
from paperwasp.schema.rank_settings import profile_constant, profile_input
from paperwasp.schema.syntax import parse_profile_text
from paperwasp.schema.tree import InvalidSchemas, Problems, SchemaNode

# `.model` files: ranking expressions that are functions of a model.
#
#     model example {
#         inputs { a tensor(x[3]) }
#         constants { two: 2  weights tensor(x[3]): [1, 2, 3] }
#         function f() { expression: sum(a * weights) * two }
#     }
#
# The elements are those of a rank profile, and the parser of rank profiles reads them. Inputs need no `query(…)`, and
# between a name and its type there may be a colon. Constants may be in files, beside the model.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/model-files.html


_MODEL: Final = "model"
_PROFILE: Final = "rank-profile"
_START: Final = compile_later(r"(?:\s|#[^\n]*)*model(?=\s)")
_COLON_BEFORE_TYPE: Final = compile_later(r"^([ \t]*(?!expression\b)[\w()]+[ \t]*):(?=[ \t]*tensor[<(])", re.MULTILINE)
_KNOWN: Final = frozenset({"inputs", "constants", "function"})


def read_model(path: str, content: bytes, declarations: Declarations) -> list[ExpressionFunction]:
    """The functions of the model in a file, in their order there. Errors: LanguageError."""
    root = _parse(path, content)
    name = PurePosixPath(path).stem
    if not name.endswith(root.name):
        raise LanguageError(f"model {root.name!r} must be in a file named '{root.name}.model'", root.position)
    around = _surroundings(path, root, declarations)
    return [compile_function(each.name, function_source(each.name, each, ""), around) for each in _functions(root)]


def _parse(path: str, content: bytes) -> SchemaNode:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise LanguageError(f"{path}: not UTF-8 at byte {error.start}") from None
    found = _START.match(text)
    if found is None:
        raise LanguageError("expected 'model'", Position(path, 1, 1))
    before = text[: found.end() - len(_MODEL)]
    text = _COLON_BEFORE_TYPE.sub(r"\1 ", before + _PROFILE + text[found.end() :])
    try:
        root = parse_profile_text(text, path)
    except LanguageError as error:
        message = error.bare_message.replace(_PROFILE, _MODEL)
        raise LanguageError(message, _position(error.position, before)) from None
    for child in root.children:
        if child.keyword not in _KNOWN:
            raise LanguageError(f"a model has inputs, constants and functions, not {child.keyword}", child.position)
    return root


def _position(found: Position | None, before: str) -> Position | None:
    """A place as it is in the file, where another keyword stands behind the text `before`."""
    if found is None or found.line != before.count("\n") + 1:
        return found
    return Position(found.source, found.line, found.column - len(_PROFILE) + len(_MODEL))


def _surroundings(path: str, root: SchemaNode, declarations: Declarations) -> Surroundings:
    problems = Problems()
    inputs: dict[str, TensorType] = {}
    for node in _lines(root, "inputs"):
        declared = profile_input(node, problems)
        if declared is not None:
            inputs[node.name] = declared.type or NUMBER
    constants: dict[str, Constant] = {}
    for node in _lines(root, "constants"):
        constant = profile_constant(node, problems)
        if constant is not None:
            constants[node.name] = _beside(path, constant)
    try:
        problems.check()
    except InvalidSchemas as error:
        raise _as_error(error.findings[0]) from None
    values = {name: _value(declarations, constant) for name, constant in constants.items()}
    return Surroundings(
        declarations,
        inputs,
        {function.name: function for function in _functions(root)},
        {name: partial(values.__getitem__, name) for name in values},
        {name: constant.type for name, constant in constants.items()},
    )


def _lines(root: SchemaNode, keyword: str) -> list[SchemaNode]:
    return [node for block in root.all(keyword) for node in block.children]


def _as_error(finding: Finding) -> LanguageError:
    return LanguageError(finding.message, finding.position)


def _beside(path: str, constant: Constant) -> Constant:
    """The constant with the path of its file in the package; the model has it relative to its own folder."""
    if not constant.file:
        return constant
    file = (PurePosixPath(path).parent / constant.file).as_posix()
    return Constant(constant.name, constant.type, file=file, position=constant.position)


def _value(declarations: Declarations, constant: Constant) -> float | Tensor:
    value, problem = declarations.constant(constant)
    if problem is not None:
        raise problem
    if value is None:
        raise LanguageError(f"constant {constant.name!r}: there is no file {constant.file!r}", constant.position)
    return value


def _functions(root: SchemaNode) -> list[SchemaFunction]:
    found: dict[str, SchemaFunction] = {}
    for node in root.all("function"):
        expressions = list(node.all("expression"))
        if len(expressions) != 1:
            raise LanguageError(f"function {node.name} must have one expression", node.position)
        if node.name in found:
            raise LanguageError(f"function {node.name} is defined twice", node.position)
        [expression] = expressions
        found[node.name] = SchemaFunction(
            node.name, node.arguments, expression.text, node.position, node.inline, expression.value_position
        )
    return list(found.values())


_NAME: Final = compile_later("[A-Za-z0-9_]+")
_TREE_INFO: Final = "tree_info"
Settings = Mapping[str, SessionSettings]
"""Name of a network → how it runs; the others run by `default_settings`."""


def default_settings() -> SessionSettings:
    """A quarter of the processors for an operation; operations one after another."""
    return SessionSettings(intraop_threads=max(1, -(-(os.cpu_count() or 1) // 4)))


class EvaluatedModel(Struct, frozen=True):
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


class Models(Struct, frozen=True):
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
                least = {
                    each.name: [n if isinstance(n, int) else 1 for n in each.sizes or ()] for each in signature.inputs
                }
                self._probe(path, content, least)
            except DoesNotRun as error:
                self._findings.append(Finding(f"{error.bare_message} (with zeros, open sizes being 1)", error.position))
            except LanguageError as error:
                self._findings.append(Finding(error.bare_message, error.position, "ERROR"))
        self._networks.append(name)
        load = partial(session_of, path, content, self._settings.get(name) or default_settings())
        for output in signature.outputs:
            yield NetworkFunction(signature, output, load)


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


# The models that the containers with `model-evaluation` serve: those of the folder `models/`.
#
# Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html#onnx-inference-options


NO_MODELS: Final = Models()


def evaluated_models(container: Container, files: Mapping[str, bytes]) -> Models:
    """The models that a container serves, from its files, which were checked."""
    if not container.model_evaluation:
        return NO_MODELS
    return read_models(files, {network.name: _settings(network) for network in container.evaluated_networks})


def check_models(containers: Iterable[Container], files: Mapping[str, bytes], findings: Findings) -> None:
    """Finds files that are no models, and settings of models that there are not."""
    serving = [container for container in containers if container.model_evaluation]
    if not serving:
        return
    models = read_models(files, {}, probe)
    findings.extend(models.findings)
    for container in serving:
        for network in container.evaluated_networks:
            if network.name not in models.networks:
                known = ", ".join(models.networks)
                problem = f"Model '{network.name}' not found. Available ONNX models are: {known}."
                findings.warning(f"{problem} Skipping this configuration.", network.position)


def _settings(network: EvaluatedNetwork) -> SessionSettings:
    default = default_settings().intraop_threads
    is_parallel = network.execution_mode == "parallel"
    return SessionSettings(
        network.intraop_threads or default,
        network.interop_threads or (default if is_parallel else 1),
        is_parallel,
        network.gpu_device,
        optimizes=network.optimizes,
    )
