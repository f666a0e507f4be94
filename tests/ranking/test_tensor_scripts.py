"""The scripts of tensor functions give what they say."""

from __future__ import annotations

import pytest

from paperwasp.document.tensor import Tensor
from paperwasp.errors import PaperwaspError
from paperwasp.ranking import tensor_run
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.program import Program
from paperwasp.ranking.scope import Source
from tests.ranking.no_features import NoFeatures
from tests.ranking.ranking_scripts import SCRIPTS, run


def value(text: str) -> str:
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
    run(SCRIPTS / script, value)
