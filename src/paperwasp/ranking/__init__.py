"""Ranking: the expression language, and rank profiles compiled to programs over rank features."""

from paperwasp.ranking.compiler import FeatureCatalog
from paperwasp.ranking.expression import parse_expression, parse_reference
from paperwasp.ranking.profile import CompiledProfile, ProfileError, Unexecuted, compile_profile
from paperwasp.ranking.program import Feature, Program
from paperwasp.ranking.tensor_graph import RankValue

__all__ = [
    "CompiledProfile",
    "Feature",
    "FeatureCatalog",
    "ProfileError",
    "Program",
    "RankValue",
    "Unexecuted",
    "compile_profile",
    "parse_expression",
    "parse_reference",
]
