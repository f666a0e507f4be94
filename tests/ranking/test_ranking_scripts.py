"""Every script of tests/ranking/scripts gives what it says: expressions of numbers, and of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.document.tensor import Tensor
from paperwasp.errors import PaperwaspError
from paperwasp.ranking import Program, parse_expression, tensor_run
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.scope import Source
from tests.ranking.no_features import NoFeatures
from tests.ranking.ranking_scripts import SCRIPTS, run


def printed(text: str) -> str:
    try:
        tree = parse_expression(text)
    except PaperwaspError as error:
        return str(error)
    assert parse_expression(str(tree)) == tree
    return str(tree)


def value(text: str) -> str:
    compiler = ExpressionCompiler(NoFeatures(), {}, {})
    program = compiler.runnable(Source(text))
    assert isinstance(program, Program)
    assert len(program.code) == 0, "constants are folded"
    [number] = program.evaluate([], 1)
    assert program.constant == number or np.isnan(number)
    return repr(float(number))


def test_printed() -> None:
    run(SCRIPTS / "printed.txt", printed)


def test_errors() -> None:
    run(SCRIPTS / "errors.txt", printed)


def test_values() -> None:
    run(SCRIPTS / "values.txt", value)


def tensor_value(text: str) -> str:
    compiler = ExpressionCompiler(NoFeatures(), {}, {})
    try:
        found = compiler.runnable(Source(text))
    except PaperwaspError as error:
        return str(error)
    labels = compiler.graph.labels
    block = tensor_run.InnerBlock(0, 1, {}, labels)
    if isinstance(found, Program):
        return repr(float(tensor_run.numbers(found, block)[0]))
    [tensor] = tensor_run.batch(found, block).tensors(labels)
    order = sorted(range(len(tensor.labels)), key=lambda row: tensor.labels[row])
    return str(Tensor(tensor.type, tuple(tensor.labels[row] for row in order), tensor.cells[order]))


@pytest.mark.parametrize("script", ["tensor_examples.txt", "tensor_corners.txt"])
def test_tensors(script: str) -> None:
    run(SCRIPTS / script, tensor_value)
