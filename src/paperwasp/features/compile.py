"""Rank profiles of a schema, compiled: where schema, expression language and rank features meet."""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.errors import LanguageError
from paperwasp.features.catalog import Catalog, default_rank_features
from paperwasp.features.family import RankSetup
from paperwasp.ranking import CompiledProfile, ProfileError
from paperwasp.ranking import compile_profile as compile_source
from paperwasp.schema.model import RankProfile, Schema


def compile_profile(schema: Schema, profile: RankProfile) -> CompiledProfile:
    """`profile` as programs; raises ProfileError that names every problem with its place."""
    setup = RankSetup(schema, profile)
    return compile_source(profile, Catalog(setup), default_rank_features(setup), schema.source)


def compile_profiles(schema: Schema) -> Mapping[str, CompiledProfile]:
    """All rank profiles of `schema`; raises one ProfileError for the problems of all of them."""
    compiled: dict[str, CompiledProfile] = {}
    problems: list[LanguageError] = []
    for name, profile in schema.rank_profiles.items():
        try:
            compiled[name] = compile_profile(schema, profile)
        except ProfileError as error:
            problems.extend(error.problems)
    if problems:
        raise ProfileError(problems)
    return compiled
