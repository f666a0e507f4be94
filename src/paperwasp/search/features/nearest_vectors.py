"""The vectors of hits that are nearest to those of the query, for closeness, distance and closest.

A term of nearestNeighbor has them for every hit, also for those that it does not match: as in Vespa, they are computed
then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Check, RankSetup, check_field
from paperwasp.search.operators.nearest_neighbor import NearestNeighborMatch
from paperwasp.storage.attributes.elements import subspace_labels
from paperwasp.text.parsing.nearest import did_you_mean

_KINDS = ("field", "label")


def check_of(feature: str, position_outputs: tuple[str, ...]) -> Check:
    """For `feature(name)` and `feature(field,name)` of tensors or positions, and `feature(label,name)`.

    The outputs are only there for positions. Vespa: distancefeature.cpp and closenessfeature.cpp (`setup`).
    """

    def check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
        if is_of_positions(setup, arguments):
            return ""
        kind, name = kind_and_name(arguments)
        if kind not in _KINDS:
            near = did_you_mean(kind, _KINDS)
            raise LanguageError(f"the first argument of {feature} is field or label, not {kind!r}{near}")
        if kind == "field":
            check_field("tensor-attribute", name, setup, feature)
        if output in position_outputs:
            raise LanguageError(f"{feature}({','.join(arguments)}) has no output {output!r}: that is for positions")
        return ""

    return check


def kind_and_name(arguments: tuple[str, ...]) -> tuple[str, str]:
    """ "field" or "label", and the name of it; a single argument is a field."""
    return ("field", arguments[0]) if len(arguments) == 1 else (arguments[0], arguments[1])


def is_of_positions(setup: RankSetup, arguments: tuple[str, ...]) -> bool:
    """Whether these are the arguments of a feature of positions."""
    if len(arguments) == 2 and arguments[0] != "field":
        return False
    try:
        check_field("position-attribute", arguments[-1], setup, "distance")
    except LanguageError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class NearVectors:
    """Of each hit the vector that is nearest to the one of a term, whether the term matches or not."""

    distances: NDArray[np.float64]
    """Infinite where a hit has no vector."""
    closeness: NDArray[np.float64]
    """The raw scores; `least` where a hit has no vector."""
    subspaces: NDArray[np.uint32]
    """Which of a hit's vectors it is."""
    least: float


def near_vectors(block: Block, term: int, field: str) -> NearVectors | None:
    """The vectors that are near to that of term number `term`; None: it is not nearestNeighbor in this field."""
    for match in block.matches(term, field):
        if isinstance(match.unmasked, NearestNeighborMatch):
            return NearVectors(*match.unmasked.nearest(block.lids), match.unmasked.least_score)
    return None


def vector_labels(
    block: Block, field: str, hits: NDArray[np.int64], subspaces: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """The labels of one vector of each of some hits, those of one hit after those of another, as numbers of the query's
    labels. `hits`: places in the block."""
    texts = subspace_labels(block.column(field), block.lids[hits], subspaces)
    return block.labels.numbers(chain.from_iterable(texts))


def vectors_of(block: Block, kind: str, name: str) -> Sequence[NearVectors]:
    """What `kind`, field or label, says of a block; found once for closeness and distance."""
    return block.once(("nearest vectors", kind, name), lambda: tuple(_vectors_of(block, kind, name)))


def _vectors_of(block: Block, kind: str, name: str) -> Iterator[NearVectors]:
    """Of the terms that search the field, or of the one with the label in all its fields. Another operator with that
    label counts with its raw score, where it matches."""
    if kind == "field":
        for number in range(len(block.setting.terms)):
            if (found := near_vectors(block, number, name)) is not None:
                yield found
        return
    labelled = next((number for number, term in enumerate(block.terms) if term.label == name), None)
    if labelled is not None:
        for field in block.terms[labelled].fields:
            yield near_vectors(block, labelled, field) or _of_raw_scores(block, labelled, field)


def _of_raw_scores(block: Block, number: int, field: str) -> NearVectors:
    matched, scores = block.matched(number, field), block.raw_scores(number, field)
    with np.errstate(divide="ignore"):
        distances = np.where(matched, 1.0 / scores - 1.0, np.inf)
    return NearVectors(distances, np.where(matched, scores, 0.0), np.zeros(len(scores), np.uint32), 0.0)
