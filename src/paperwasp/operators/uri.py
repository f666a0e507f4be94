"""uri: tokens of a URI next to each other, in order, in a URI or in one part of it (`url.hostname`, `url.path`, …).

An anchor ties them to the start or the end of the value that they stand in.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#uri
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.field_match import FieldMatch, Lids
from paperwasp.operators.items import UriItem, WordItem
from paperwasp.operators.term import FoundMatch
from paperwasp.operators.text import text_matcher, tokens_in, tokens_match
from paperwasp.operators.word import fields_of, match_word, term_operator
from paperwasp.schema.model import Field


class AnchoredMatch(FoundMatch):
    """A match of some tokens, where its first one starts the value or its last one ends it."""

    def __init__(self, space: SearchSpace, match: FieldMatch, tokens: int, start: bool, end: bool) -> None:
        super().__init__(space, match.field)
        self._match = match
        self._tokens = tokens
        self._start = start
        self._end = end

    @cached_property
    def found(self) -> tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]:
        bitmap = self._space.empty()
        self._match.add_to(bitmap)
        lids = _core.bitmap_lids(bitmap & self._space.accept, self._space.limit)
        offsets, positions = self._match.positions(lids)
        places = self._space.index.locate(self.number, lids, offsets, positions)
        kept = np.ones(len(positions), np.bool_)
        if self._start:
            kept &= positions == places.starts
        if self._end:
            kept &= positions + self._tokens == places.ends
        ends = np.concatenate([[0], np.cumsum(kept)]).astype(np.uint32)[offsets]
        there = ends[1:] > ends[:-1]
        return lids[there], np.concatenate([ends[:1], ends[1:][there]]), positions[kept]


@planner(UriItem)
def plan_uri(item: UriItem, space: SearchSpace) -> Operator:
    found = (match_uri(item, field, space) for field in fields_of(item.index, space))
    return term_operator(space, [match for match in found if match is not None], item.annotations)


@text_matcher(UriItem)
def match_uri(item: UriItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """The tokens in one field; in an attribute, which has no tokens, the value."""
    if not space.has_index(field):
        return match_word(WordItem(item.index, item.text, annotations=item.annotations), field, space)
    tokens = tokens_in(item.text, item.annotations, field, space, in_phrase=True)
    match = tokens_match(tokens, field, space)
    if match is None or not (item.start_anchor or item.end_anchor):
        return match
    return AnchoredMatch(space, match, len(tokens), item.start_anchor, item.end_anchor)
