"""The grouping language: from text to operations, and from expressions to the text that labels them.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html
"""

from paperwasp.search.grouping.language.operation import (
    UNLIMITED,
    Operation,
    check_levels,
    expression_text,
    filter_text,
    operation_text,
)
from paperwasp.search.grouping.language.parser import parse_grouping

__all__ = [
    "UNLIMITED",
    "Operation",
    "check_levels",
    "expression_text",
    "filter_text",
    "operation_text",
    "parse_grouping",
]
