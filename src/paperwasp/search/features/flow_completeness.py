"""flowCompleteness(field): as elementCompleteness, where terms count that can each have a place of their own.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

from typing import Final

from paperwasp.search.features.block import Block
from paperwasp.search.features.element_rows import element_rows
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, register

NAME: Final = "flowCompleteness"
_OUTPUTS: Final = ("completeness", "fieldCompleteness", "queryCompleteness", "elementWeight", "weight", "flow")


@register(NAME, "index", outputs=_OUTPUTS)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    if output == "weight":
        return constant(setup.weight(field))
    importance = setup.number(0.5, f"{NAME}({field}).fieldCompletenessImportance")

    def compute(block: Block) -> Floats:
        rows = element_rows(block, field, flow=True)
        flow = rows.column("flow")
        of_query = flow / max(1, rows.terms)
        of_field = flow / rows.column("length")
        completeness = of_field * importance + of_query * (1 - importance)
        values = {
            "completeness": completeness,
            "fieldCompleteness": of_field,
            "queryCompleteness": of_query,
            "elementWeight": rows.column("weight"),
            "flow": flow,
        }
        return rows.best(completeness * rows.column("terms_weight"), values[output])

    return compute
