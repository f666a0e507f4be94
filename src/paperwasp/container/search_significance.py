"""Words of a query with the document frequencies of a significance model, where the rank profile or the query asks.

Vespa: https://docs.vespa.ai/en/ranking/significance.html
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paperwasp.errors import IllegalQuery
from paperwasp.linguistics.significance import SignificanceModel, SignificanceModels
from paperwasp.query.items import Item, PrefixItem, SubstringItem, SuffixItem, WordItem
from paperwasp.schema.model import Schema


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
        return _weighted(tree, models.chosen(said, detected))
    except ValueError as error:
        raise IllegalQuery(str(error)) from None


def _weighted(item: Item, model: SignificanceModel) -> Item:
    """What the query itself says of a word stays."""
    if isinstance(item, WordItem | PrefixItem | SubstringItem | SuffixItem):
        notes = item.annotations
        if notes.significance is not None or notes.document_frequency is not None:
            return item
        return replace(item, annotations=replace(notes, document_frequency=model.document_frequency(item.word)))
    children = item.children_of()
    return item.with_children(tuple(_weighted(child, model) for child in children)) if children else item
