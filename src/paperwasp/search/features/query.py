"""query(name) and queryTermCount: what the query brings.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-features
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register


def _declared(setup: RankSetup, name: str) -> TensorType:
    """The type of query(name). A text is a number: its hash."""
    inputs = setup.profile.inputs
    given = inputs.get(f"query({name})") or inputs.get(name)
    return NUMBER if given is None or given.type is None else given.type


@register("query", "name", type_=lambda setup, arguments, output: _declared(setup, arguments[0]))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Callable[[Block], Any]:
    name = arguments[0]
    type_ = _declared(setup, name)
    if not type_.is_number:
        return lambda block: block.setting.tensor_input(name, type_)

    def compute(block: Block) -> Floats:
        return one(block.setting.inputs.get(name, 0.0))

    return compute


@register("queryTermCount", listed=lambda setup: ("queryTermCount",))
def bind_term_count(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return one(len(block.terms))

    return compute
