"""Every script of tests/ranking/scripts gives what it says."""

from __future__ import annotations

import numpy as np

from paperwasp.errors import PaperwaspError
from paperwasp.ranking import Program, parse_expression
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
