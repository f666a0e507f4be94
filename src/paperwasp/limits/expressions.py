"""Every limit of ranking expressions that come with queries.

They are compiled as those of rank profiles are, within the limits of these (`limits.RANK_…`, `limits.TENSOR_…`); what
is here is less, since anybody who may search can send them, and every text may be another.
"""

from __future__ import annotations

from typing import Final

TEXT_CHARACTERS: Final = 16 * 1024
"""The text of one parameter."""
OPERATIONS: Final = 100_000
"""The nodes of one expression, each function that it calls put in its place: of inferring types and of compiling."""
PROBLEMS: Final = 10
"""How many problems of one document type an error tells."""
PROBLEM_CHARACTERS: Final = 1_000
"""Of each of them."""
FOLDED_CELLS: Final = 1 << 20
"""The cells of all constants together that are computed with the expressions of a query; others are with each query."""
KEPT_PROFILES: Final = 256
"""Rank profiles with expressions of queries that a container keeps compiled, and a content cluster."""
KEPT_BYTES: Final = 16 * 1024 * 1024
"""The memory of all of them, about; one that needs more alone is kept until the next comes."""
