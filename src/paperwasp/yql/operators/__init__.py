"""The operators of YQL that are written as functions, a file for each family.

An operator registers itself under its name in `registry`; importing this package registers all of them.
"""

from paperwasp.yql.operators import composite, phrases, ranges, unsupported, user_input
from paperwasp.yql.operators.registry import CONDITIONS, LEAVES, UNSUPPORTED

__all__ = ["CONDITIONS", "LEAVES", "UNSUPPORTED", "composite", "phrases", "ranges", "unsupported", "user_input"]
