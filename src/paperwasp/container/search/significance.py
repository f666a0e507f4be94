"""How rare the words of a query are, where the query says so: by a significance model, or by rank properties.

Vespa: https://docs.vespa.ai/en/ranking/significance.html
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.errors import IllegalQuery
from paperwasp.schema.model import Schema
from paperwasp.search.operators.item import Annotated, Item, TermItem
from paperwasp.text.linguistics.significance import SignificanceModel, SignificanceModels


def uses_model(said: bool | None, schemas: Iterable[Schema], rank_profile: str) -> bool:
    """Whether words are to have the frequencies of a model. Errors: IllegalQuery where schemas differ."""
    if said is not None:
        return said
    profiles = {schema.name: schema.rank_profiles.get(rank_profile) for schema in schemas}
    uses = {name: bool(profile and profile.use_significance_model) for name, profile in profiles.items()}
    if len(set(uses.values())) > 1:
        raise IllegalQuery(
            f"Inconsistent 'significance' configuration for the rank profile '{rank_profile}' in the schemas "
            f"[{', '.join(uses)}]: restrict the query to some of them, or say the same in all"
        )
    return any(uses.values())


def with_model(tree: Item, models: SignificanceModels, said: str, detected: str) -> Item:
    """The tree with the frequencies of the model for the language that is said, or detected. Errors: IllegalQuery."""
    try:
        return _with_frequencies(tree, models.chosen(said, detected))
    except ValueError as error:
        raise IllegalQuery(str(error)) from None


_SIGNIFICANCE: Final = compile_later(r"vespa\.term\.([1-9][0-9]{0,8})\.significance")


def significances(properties: Mapping[str, str]) -> dict[int, str]:
    """The rank properties `vespa.term.<n>.significance`, by the number of the term."""
    return {int(found[1]): text for name, text in properties.items() if (found := _SIGNIFICANCE.fullmatch(name))}


def with_significances(tree: Item, given: Mapping[int, str]) -> Item:
    """The tree with the significances that are given to its terms.

    Terms have numbers from 1, in the order of the tree, as Vespa numbers items (Model.java, `setUniqueIDs`).
    """
    return _significant(tree, itertools.count(1), given)


def _significant(item: Item, numbers: Iterator[int], given: Mapping[int, str]) -> Item:
    if isinstance(item, Annotated):
        text = given.get(next(numbers))
        if text is None:
            return item
        return replace(item, annotations=replace(item.annotations, significance=_number(text)))
    children, excluded = item.children_of(), item.excluded()
    wanted = [_significant(child, numbers, given) for child in children[: len(children) - len(excluded)]]
    unranked = [_significant(child, numbers, {}) for child in excluded]  # they have numbers all the same
    return item.with_children((*wanted, *unranked)) if children else item


def _number(text: str) -> float:
    """The number that a text writes; 0 where it writes none, as in Vespa."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _with_frequencies(item: Item, model: SignificanceModel) -> Item:
    """Adds frequencies of a model to the words; a significance or frequency in the query stays.

    Forms of a word have the frequency of the rarest. Vespa: SignificanceSearcher.java (`setIDF`).
    """
    if not isinstance(item, TermItem):
        return item.map_parts(lambda child: _with_frequencies(child, model))
    words = item.counted_words()
    notes = item.annotations
    if notes.significance is not None or notes.document_frequency is not None or not words:
        return item
    return replace(item, annotations=replace(notes, document_frequency=min(map(model.document_frequency, words))))
