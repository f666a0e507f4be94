"""The words of a query that are marked in the shown texts of one field: what `Item.shown` gives.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding
"""

from __future__ import annotations

from dataclasses import field as dataclass_field

from paperwasp.base.records import dataclass
from paperwasp.schema.model import Field
from paperwasp.search.language.annotations import Annotations
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.text import tokens_in
from paperwasp.text.linguistics import TextProfile
from paperwasp.text.linguistics.vocabulary import Forms


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of the query: the terms that count as it, or with `prefix` what they begin with."""

    terms: frozenset[str]
    prefix: bool = False
    within: bool = False
    """Whether it is met by a part of a word, which alone is marked: in streaming search."""

    def is_met_by(self, forms: Forms) -> bool:
        if self.prefix:
            return any(form.startswith(term) for form in forms for term in self.terms)
        return not self.terms.isdisjoint(forms)


Way = tuple[QueryWord, ...]
"""Words in sequence."""
QueryPart = tuple[Way, ...]
"""What counts as one thing in the query: a word or phrase, or several of which any will do."""


@dataclass(frozen=True, slots=True)
class Target:
    """A field, and how its text becomes terms."""

    field: Field
    space: SearchSpace
    profile: TextProfile
    known: dict[str, bool] = dataclass_field(default_factory=dict, init=False)
    """Name → whether the field is one of those with the name."""

    def is_named_by(self, index: str) -> bool:
        found = self.known.get(index)
        if found is None:
            fields = self.space.schema.fields_named(index)
            found = self.known[index] = any(field.name == self.field.name for field in fields)
        return found

    @property
    def has_grams_apart(self) -> bool:
        """Whether a text of the query is looked for by its grams, wherever they stand."""
        return self.profile.gram_size > 0 and self.space.gram_match != "phrase"

    def words(self, notes: Annotations, text: str) -> Way:
        """The words of a text with these annotations."""
        tokens = tokens_in(text, notes, self.field, self.space)
        within = self.space.streamed and self.field.match_settings.algorithm == "substring"
        return tuple(QueryWord(frozenset(form for form, _ in token.forms), within=within) for token in tokens)
