"""fieldInfo(field): what a field is, and what the first term of the query matches in it; fieldInfo: how many there are.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block, are_terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register
from paperwasp.search.features.field_term_match import NO_POSITION, end_positions

NAME: Final = "fieldInfo"
_OVERVIEW: Final = ("indexCnt", "attrCnt")
_OUTPUTS: Final = ("type", "filter", "search", "hit", "len", "first", "last", "cnt")
_INDEX, _ATTRIBUTE = 1.0, 2.0


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    known = _OUTPUTS if arguments else _OVERVIEW
    if output and output not in known:
        raise LanguageError(
            f"rank feature {NAME} {'of a field ' if arguments else ''}has the outputs {', '.join(known)}"
        )
    return ""


def _listed(setup: RankSetup) -> Iterable[str]:
    if setup.text(f"{NAME}.enable"):
        fields = (*setup.listed_index_fields, *setup.listed_attributes)
        yield from (f"{NAME}({field}).{output}" for field in fields for output in _OUTPUTS)
        yield from (f"{NAME}.{output}" for output in _OVERVIEW)


@register(NAME, "name", outputs=("",), optional=1, listed=_listed, pending=_check, any_output=True)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if not arguments:
        counts = len(setup.listed_index_fields), len(setup.listed_attributes)
        return constant(counts[_OVERVIEW.index(output or _OVERVIEW[0])])
    field, output = setup.searched_name(arguments[0]), output or _OUTPUTS[0]
    is_index = field in setup.index_fields
    kind = _INDEX if is_index else _ATTRIBUTE if arguments[0] in setup.listed_attributes else 0.0
    if output == "type":
        return constant(kind)
    if output == "filter":
        return constant(float(setup.is_filter(field)))
    unknown = 0.0 if output in ("search", "hit", "cnt") else NO_POSITION

    def compute(block: Block) -> Floats:
        if not kind or not are_terms_of(block, field, 0):
            return one(unknown)
        if output == "search":
            return one(1.0)
        hit = block.matched(0, field)
        if output == "hit" or (output == "cnt" and not is_index):
            return hit.astype(np.float64)
        return _of_index(block, field, output) if is_index else np.where(hit & (output != "len"), 0.0, unknown)

    return compute


def _of_index(block: Block, field: str, output: str) -> Floats:
    offsets, positions = block.positions(0, field)
    if output in ("first", "last"):
        return end_positions(offsets, positions, last=output == "last")
    counts = np.diff(offsets.astype(np.int64))
    if output == "cnt":
        return counts.astype(np.float64)
    return np.where(counts > 0, block.field_length(field), NO_POSITION)
