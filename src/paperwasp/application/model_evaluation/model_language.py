"""`.model` files: ranking expressions that are functions of a model.

    model example {
        inputs { a tensor(x[3]) }
        constants { two: 2  weights tensor(x[3]): [1, 2, 3] }
        function f() { expression: sum(a * weights) * two }
    }

The elements are those of a rank profile, and the parser of rank profiles reads them. Inputs need no `query(…)`, and
between a name and its type there may be a colon. Constants may be in files, beside the model.

Vespa: https://docs.vespa.ai/en/reference/ranking/model-files.html
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from paperwasp.application.model_evaluation.expressions import ExpressionFunction, Surroundings, compile_function
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Finding, LanguageError, Position
from paperwasp.ranking.declarations import Declarations
from paperwasp.ranking.scope import function_source
from paperwasp.schema.model import Constant, Function
from paperwasp.schema.problems import InvalidSchemas, Problems
from paperwasp.schema.resources import profile_constant, profile_input
from paperwasp.schema.syntax import parse_profile_text
from paperwasp.schema.tree import Node

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


def _parse(path: str, content: bytes) -> Node:
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


def _surroundings(path: str, root: Node, declarations: Declarations) -> Surroundings:
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


def _lines(root: Node, keyword: str) -> list[Node]:
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


def _functions(root: Node) -> list[Function]:
    found: dict[str, Function] = {}
    for node in root.all("function"):
        expressions = list(node.all("expression"))
        if len(expressions) != 1:
            raise LanguageError(f"function {node.name} must have one expression", node.position)
        if node.name in found:
            raise LanguageError(f"function {node.name} is defined twice", node.position)
        [expression] = expressions
        found[node.name] = Function(
            node.name, node.arguments, expression.text, node.position, node.inline, expression.value_position
        )
    return list(found.values())
