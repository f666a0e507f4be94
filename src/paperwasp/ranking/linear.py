"""Whether a program is a weighted sum of bm25 features: what dynamic pruning needs to know.

The program is run once on forms instead of numbers. A form is a constant, or fields with weights; anything else has
none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from paperwasp.core.rank.rank_program import OPERATION_WIDTH, OPERATIONS
from paperwasp.ranking.program import Feature, Program

Form = float | dict[str, float] | None


def weighted_sum(program: Program, known: Callable[[Feature], float | None]) -> Mapping[str, float] | None:
    """Field → weight, where the program is exactly the sum of bm25(field) times its weight; else None.

    `known` answers the value of a feature that is the same for all hits of this query. Weights may be negative.
    """
    operands: list[Form] = []
    for feature in program.features:
        bm25 = {feature.bm25_field.name: 1.0} if feature.bm25_field is not None else None
        operands.append(bm25 or known(feature))
    operands += [float(constant) for constant in program.constants]
    operands += [None] * program.temporaries
    names = list(OPERATIONS)
    for opcode, target, a, b, _ in program.code.reshape(-1, OPERATION_WIDTH).tolist():
        combine = _COMBINE.get(names[opcode])
        operands[target] = combine(operands[a], operands[b]) if combine else None
    result = operands[program.result]
    return result if isinstance(result, dict) else None


def _sum(a: Form, b: Form) -> Form:
    if isinstance(a, float) and isinstance(b, float):
        return a + b
    if isinstance(a, dict) and isinstance(b, dict):
        return {name: a.get(name, 0.0) + b.get(name, 0.0) for name in {**a, **b}}
    if isinstance(a, dict):
        return a if b == 0.0 else None
    return b if a == 0.0 else None


def _product(a: Form, b: Form) -> Form:
    if isinstance(a, float) and isinstance(b, float):
        return a * b
    if isinstance(a, dict) and isinstance(b, float):
        return {name: weight * b for name, weight in a.items()}
    if isinstance(a, float) and isinstance(b, dict):
        return _product(b, a)
    return None


_COMBINE: Final[dict[str, Callable[[Form, Form], Form]]] = {"add": _sum, "multiply": _product}
