"""The scripts of tensor functions give what they say."""

from __future__ import annotations

import pytest

from paperwasp.errors import PaperwaspError
from paperwasp.ranking import evaluation
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.program import Program
from paperwasp.ranking.scope import Source
from paperwasp.tensor import Tensor
from tests.ranking.no_features import NoFeatures
from tests.ranking.ranking_scripts import SCRIPTS, run


def value(text: str) -> str:
    compiler = ExpressionCompiler(NoFeatures(), {}, {})
    try:
        found = compiler.runnable(Source(text))
    except PaperwaspError as error:
        return str(error)
    labels = compiler.graph.labels
    block = evaluation.InnerBlock(0, 1, {}, labels)
    if isinstance(found, Program):
        return repr(float(evaluation.numbers(found, block)[0]))
    [tensor] = evaluation.batch(found, block).tensors(labels)
    order = sorted(range(len(tensor.labels)), key=lambda row: tensor.labels[row])
    return str(Tensor(tensor.type, tuple(tensor.labels[row] for row in order), tensor.cells[order]))


@pytest.mark.parametrize("script", ["tensor_examples.txt", "tensor_corners.txt"])
def test_tensors(script: str) -> None:
    run(SCRIPTS / script, value)
