"""Why the hits that are shown score what they do: the tree of each phase's expression with the values of one hit.

Only for queries that ask for it (`trace.explainLevel`), and only for hits that are shown. Values are worked as those
that ranked: the same features, over the same query and view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from paperwasp import limits
from paperwasp.core.clock import OutOfTime
from paperwasp.errors import LanguageError, TooLarge
from paperwasp.ranking.explanation import (
    Columns,
    Explained,
    Explanation,
    Json,
    NodeValue,
    PartValue,
    rendered,
    shown_number,
    shown_tensor,
)
from paperwasp.ranking.global_phase import Normalizer
from paperwasp.ranking.program import Feature, Floats
from paperwasp.ranking.tensor_graph import Value
from paperwasp.ranking.tensor_run import TensorNode, batch, column
from paperwasp.search.features.block import Block
from paperwasp.search.features.parts import Part
from paperwasp.search.operators.boolean import NotItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.phases.ranked_hits import RankedHits
from paperwasp.search.phases.scoring import halves
from paperwasp.search.query import HitExplanation, Query

_Phase = tuple[Explanation, Block]


def explanations_of(query: Query, ranked: RankedHits, numbers: Sequence[int]) -> list[HitExplanation]:
    """One for each of the hits with these numbers of `ranked`, which rise."""
    explained = numbers[: limits.EXPLAINED_HITS]
    beyond = HitExplanation(note=f"only the first {limits.EXPLAINED_HITS} hits are explained")
    if ranked.first_phase_end is None:
        found = [HitExplanation(note="sorted, without a relevance: the hit was not ranked")] * len(explained)
    else:
        try:
            found = _Explaining(query, ranked, explained).all()
        except OutOfTime:
            found = [HitExplanation(note="there was no time left to explain the hit")] * len(explained)
    return found + [beyond] * (len(numbers) - len(explained))


class _Explaining:
    """Explains some hits of one document type."""

    def __init__(self, query: Query, ranked: RankedHits, numbers: Sequence[int]) -> None:
        self._query = query
        self._ranked = ranked
        self._order = np.argsort(ranked.lids[numbers])
        self._places = np.asarray(numbers)[self._order]
        words = list(_leaves(query.match.tree))
        is_plain = len(words) == len(ranked.bound.setting.terms)  # which word is of which term
        self._words: Sequence[str] = words if is_plain else ()

    def all(self) -> list[HitExplanation]:
        """In the order of the numbers; worked in that of lids, as blocks are."""
        ranked, places = self._ranked, self._places
        phases = [self._first_phase()]
        if ranked.bound.profile.second_phase is not None:
            phases.append(self._second_phase())
        inner = self._global_values()
        found = [
            HitExplanation(tuple(phase[row] for phase in phases), global_values=inner[row])
            for row in range(len(places))
        ]
        return [found[row] for row in np.argsort(self._order).tolist()]

    def _first_phase(self) -> list[Json]:
        profile = self._ranked.bound.profile
        block = Block(self._ranked.bound.setting, self._ranked.lids[self._places], phases=profile.phases)
        only_second = profile.second_phase is None and "secondPhase" in profile.phases  # as streaming search ranks
        return self._phase(
            "second-phase" if only_second else "first-phase", self._ranked.first_phase[self._places], block
        )

    def _second_phase(self) -> list[Json]:
        """Explain the hits that the second phase ranked; it moved the others below them, or had no time for them."""
        ranked = self._ranked
        end = ranked.first_phase_end
        assert end is not None
        lids, scores, first = (values[self._places] for values in (ranked.lids, ranked.scores, ranked.first_phase))
        chosen = np.isfinite(end.ranks(lids))
        block = Block(ranked.bound.setting, lids[chosen], {"firstPhase": first[chosen]}, first_phase=end)
        ranked_hits = iter(self._phase("second-phase", scores[chosen], block))
        note = "not among the hits that the second phase ranks: moved below them where it was above"
        return [
            next(ranked_hits) if is_chosen else {"phase": "second-phase", "score": shown_number(score), "note": note}
            for is_chosen, score in zip(chosen.tolist(), scores.tolist(), strict=True)
        ]

    def _phase(self, name: str, scores: Floats, block: Block) -> list[Json]:
        """Explain each hit in a phase: its score, and the tree of its expression."""
        if not block.hits:
            return []
        try:
            explanation = self._ranked.bound.profile.explanations[name]
        except LanguageError as error:
            note = error.message
            return [{"phase": name, "score": shown_number(score), "note": note} for score in scores.tolist()]
        trees = self._of_hits(explanation, block, lambda values, hit: rendered(explanation, values.of(hit)))
        explained = []
        for score, tree in zip(scores.tolist(), trees, strict=True):
            shown: Json = {"phase": name, "score": shown_number(score)}
            if np.isfinite(score) and tree["value"] != score:
                shown["note"] = "the expression has another value whenever it is worked"
            explained.append(shown | {"tree": tree})
        return explained

    def _global_values(self) -> list[tuple[NodeValue, ...] | None]:
        """Return the values of the nodes of the global phase's expression that do not depend on other hits."""
        ranked, places = self._ranked, self._places
        wanted = places < self._query.rank.global_hits
        if ranked.bound.profile.global_phase is None or not wanted.any():
            return [None] * len(places)
        rows = places[wanted]
        relevance = {"relevance": ranked.scores[rows]}
        block = Block(ranked.bound.setting, ranked.lids[rows], relevance, ranked.bound.profile.phases)
        try:
            explanation = ranked.bound.profile.explanations["global-phase"]
        except LanguageError:
            return [None] * len(places)
        found = iter(
            self._of_hits(explanation, block, lambda values, hit: tuple(map(values.of(hit), explanation.nodes)))
        )
        return [next(found) if is_wanted else None for is_wanted in wanted.tolist()]

    def _of_hits(self, explanation: Explanation, block: Block, explain: Callable[[_Values, int], Any]) -> list[Any]:
        try:
            values = _Values(explanation, block, self._words)
            return [explain(values, hit) for hit in range(block.hits)]
        except TooLarge as error:
            return [each for part in halves(block, error) for each in self._of_hits(explanation, part, explain)]


class _Values:
    """The values of an expression's nodes for the hits of a block, each worked when it is first asked for: what is in
    a branch that no hit takes may not be worked at all."""

    def __init__(self, explanation: Explanation, block: Block, words: Sequence[str]) -> None:
        self._block = block
        self._words = words
        self._columns = Columns(explanation.builder, self._of_feature)
        self._tensors: dict[TensorNode, list[str]] = {}
        self._parts: dict[str, list[Part]] = {}

    def of(self, hit: int) -> Callable[[Explained], NodeValue]:
        """Return the function that gives each node its value for one hit of the block."""

        def value_of(node: Explained) -> NodeValue:
            parts = tuple(self._part(part, hit) for part in self._parts_of(node.feature))
            return NodeValue(self._value(node.value, hit), self._columns.taken(node, hit), parts)

        return value_of

    def _of_feature(self, feature: Feature) -> Floats | None:
        """Compute a feature; None where the global phase makes it of all hits together."""
        return None if isinstance(feature, Normalizer) else column(feature, self._block)

    def _value(self, value: Value, hit: int) -> float | str | None:
        if isinstance(value, int):
            return self._columns.at(value, hit)
        if value not in self._tensors:
            self._tensors[value] = self._literals(value)
        shown = self._tensors[value]
        return shown[hit if len(shown) > 1 else 0]

    def _literals(self, node: TensorNode) -> list[str]:
        """Return the tensor of each hit as text. A tensor that ranking computes with others, as a product with its sum,
        may be too large alone."""
        try:
            return [shown_tensor(tensor) for tensor in batch(node, self._block).tensors(self._block.labels)]
        except TooLarge as error:
            if self._block.hits > 1:
                raise
            return [f"too large to be shown: {error.message}"]

    def _parts_of(self, feature: Feature | None) -> list[Part]:
        bind = getattr(feature, "bind_parts", None)
        if feature is None or bind is None:
            return []
        if feature.name not in self._parts:
            parts_of = None if feature.name in self._block.setting.features else bind()
            self._parts[feature.name] = [] if parts_of is None else list(parts_of(self._block))
        return self._parts[feature.name]

    def _part(self, part: Part, hit: int) -> PartValue:
        word = "" if part.term is None or part.term >= len(self._words) else f" {self._words[part.term]!r}"
        return PartValue(
            part.text + word,
            float(part.value[hit if len(part.value) > 1 else 0]),
            tuple(self._part(below, hit) for below in part.parts),
        )


def _leaves(item: Item) -> Iterator[str]:
    if isinstance(item, TermItem):
        if item.annotations.ranked:
            yield item.text_of()
        return
    children = item.children_of()
    for child in children[:1] if isinstance(item, NotItem) else children:
        yield from _leaves(child)
