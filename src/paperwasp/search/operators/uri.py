"""uri: tokens of a URI next to each other, in order, in a URI or in one part of it (`url.hostname`, `url.path`, …).

An anchor ties them to the start or the end of the value that they stand in.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#uri
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.schema.model import Field
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.field_match import FieldMatch, Lids
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.printing import annotated, call, string
from paperwasp.search.operators.registry import leaf
from paperwasp.search.operators.term import FoundMatch
from paperwasp.search.operators.text import tokens_in, tokens_match
from paperwasp.search.operators.word import WordItem, fields_of, term_operator


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


@dataclass(frozen=True, slots=True)
class UriItem(TermItem):
    """Tokens of a URI next to each other, in order. An anchor ties them to the start or end of the field."""

    copied = ("text",)
    is_seen_by_rules = False

    text: str
    start_anchor: bool = False
    end_anchor: bool = False

    def contained(self) -> str:
        extra = {"startAnchor": True} if self.start_anchor else {}
        if self.end_anchor != _ends(self.index):
            extra["endAnchor"] = self.end_anchor
        return annotated(call("uri", [string(self.text)]), self.annotations, extra)

    def plan(self, space: SearchSpace) -> Operator:
        found = (self.match_in(field, space) for field in fields_of(self.index, space))
        return term_operator(space, [match for match in found if match is not None], self.annotations)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """The tokens in one field; in an attribute, which has no tokens, the value."""
        if not space.has_index(field):
            return WordItem(self.index, self.text, annotations=self.annotations).match_in(field, space)
        tokens = tokens_in(self.text, self.annotations, field, space, in_phrase=True)
        match = tokens_match(tokens, field, space)
        if match is None or not (self.start_anchor or self.end_anchor):
            return match
        return AnchoredMatch(space, match, len(tokens), self.start_anchor, self.end_anchor)


def _ends(field: str) -> bool:
    """Whether the tokens are tied to the end of a field where the query does not say: of a host name."""
    return field.endswith(".hostname")


@leaf("uri")
def read_uri(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`uri("vespa.ai/foo")`: its tokens next to each other."""
    text = parser.copied_text("a URL")
    end = scope.get("endAnchor", bool)
    start = bool(scope.get("startAnchor", bool))
    return UriItem(field, text, start, _ends(field) if end is None else end, annotations=scope.of_term())
