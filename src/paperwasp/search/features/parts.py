"""The parts of rank features, for explanations of the score of a hit.

A family that is computed of other features is in the table here; one that has parts of its own, such as those of each
term, says them in its file by `explains`. Parts are worked only for hits that are explained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Floats, RankSetup, families

Arguments = tuple[str, ...]


class Part(Struct, frozen=True, eq=False):
    """One part. `value`: one float64 for each hit of the block, or a single one for all of them."""

    text: str
    value: Floats
    parts: tuple[Part, ...] = ()
    term: int | None = None
    """The number of the term of the query that it is about."""


PartsOf = Callable[[Block], Sequence[Part]]
BindParts = Callable[[RankSetup, Arguments, str], PartsOf]
"""As `family.Bind`: from the setup, the arguments and the name of an output to what works its parts."""

_EXPLAINED: Final[dict[str, BindParts]] = {}
_OF_OUTPUTS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("attributeMatch", "completeness"): ("queryCompleteness", "fieldCompleteness"),
    ("fieldMatch", "score"): (
        "completeness",
        "queryCompleteness",
        "fieldCompleteness",
        "proximity",
        "relatedness",
        "earliness",
        "segmentProximity",
        "occurrence",
    ),
    ("textSimilarity", "score"): ("proximity", "order", "queryCoverage", "fieldCoverage"),
}
"""Outputs that are made of others of the same feature."""
_OF_FEATURES: Final[Mapping[str, str]] = {"closeness": "distance", "freshness": "age"}
"""Features that are made of another one of the same arguments."""


def explains(name: str) -> Callable[[BindParts], BindParts]:
    """Registers the function below as what tells the parts of a family."""

    def add(bind: BindParts) -> BindParts:
        _EXPLAINED[name] = bind
        return bind

    return add


def parts_of(name: str, setup: RankSetup, arguments: Arguments, output: str) -> PartsOf | None:
    """Return the function that computes the parts of a feature; None: it has none."""
    if name in _EXPLAINED:
        return _EXPLAINED[name](setup, arguments, output)
    others = [(name, other) for other in _OF_OUTPUTS.get((name, output), ())]
    if name in _OF_FEATURES:
        others = [(_OF_FEATURES[name], "out")]
    return _of_others(setup, arguments, others) if others else None


def _of_others(setup: RankSetup, arguments: Arguments, others: Sequence[tuple[str, str]]) -> PartsOf:
    bound = []
    for name, output in others:
        family = families()[name]
        shown = f".{output}" if output != family.outputs[0] else ""
        bound.append((f"{name}({','.join(arguments)}){shown}", family.bind(setup, arguments, output)))
    return lambda block: [Part(text, compute(block)) for text, compute in bound]
