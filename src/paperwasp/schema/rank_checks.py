"""Checks the settings of attributes in a rank profile, on the profile with everything that it inherits.

Vespa: the validators of match-phase, diversity and rank filters in its config model (com.yahoo.schema.processing).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paperwasp.document.types import PREDICATE, DataType, NumericType
from paperwasp.errors import Position
from paperwasp.schema.data_types import is_single
from paperwasp.schema.model import AttributeSettings, Field, RankProfile
from paperwasp.schema.problems import Problems, nearest


def check_profile(
    profile: RankProfile, fields: Mapping[str, Field], unusable: Collection[str], problems: Problems
) -> None:
    """Reports what is wrong with the profile's settings of attributes; `unusable` fields are reported elsewhere."""
    _Check(profile, fields, unusable, problems).run()


class _Check:
    """The checks of one profile."""

    def __init__(
        self, profile: RankProfile, fields: Mapping[str, Field], unusable: Collection[str], problems: Problems
    ) -> None:
        self.profile = profile
        self.fields = fields
        self.unusable = unusable
        self.problems = problems

    def run(self) -> None:
        phase, diversity = self.profile.match_phase, self.profile.diversity
        if phase and phase.attribute:
            self.match_phase(phase.attribute, phase.position)
        if diversity and diversity.attribute:
            self.diversity(diversity.attribute)
        for mutation in self.profile.mutations:
            self.mutation(mutation.attribute)
        for name, rank in self.profile.field_ranks.items():
            if rank.filter_threshold is not None and name in self.profile.filter_fields:
                self.error(f"field {name} has a filter-threshold, and is a filter: it can be one of both")

    def match_phase(self, name: str, position: Position | None) -> None:
        type_, settings = self.attribute("match-phase", name, position)
        if settings and not (type_ and _is_single_number(type_)):
            self.error(f"the attribute {name} of match-phase must be a single number, and is {type_}", position)
        elif settings and not settings.fast_search:
            self.error(f"the attribute {name} of match-phase must be fast-search", position)

    def diversity(self, name: str) -> None:
        type_, settings = self.attribute("diversity", name, None)
        if settings and type_ and (not is_single(type_) or type_ == PREDICATE):
            self.error(f"the attribute {name} of diversity must have single values, and is {type_}")
        if self.profile.match_phase is None and self.profile.second_phase is None:
            self.error("diversity needs a match-phase or a second-phase")

    def mutation(self, name: str) -> None:
        type_, settings = self.attribute("mutate", name, None)
        if settings and type_ and not _is_single_number(type_):
            self.error(f"the attribute {name} of mutate must be a single number, and is {type_}")
        elif settings and not settings.mutable:
            self.error(f"the attribute {name} of mutate must be mutable")

    def attribute(
        self, what: str, name: str, position: Position | None
    ) -> tuple[DataType | None, AttributeSettings | None]:
        """Type and settings of an attribute; None for both after telling that there is none."""
        field = self.fields.get(name)
        if field and field.attribute:
            return field.type, field.attribute
        if name not in self.unusable:
            attributes = [each.name for each in self.fields.values() if each.attribute]
            self.error(f"the attribute {name} of {what} does not exist{nearest(name, attributes)}", position)
        return None, None

    def error(self, message: str, position: Position | None = None) -> None:
        self.problems.error(f"rank-profile {self.profile.name}: {message}", position or self.profile.position)


def _is_single_number(type_: DataType) -> bool:
    return isinstance(type_, NumericType)
