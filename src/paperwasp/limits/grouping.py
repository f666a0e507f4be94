"""Every limit of grouping: of statements, and of what they may take."""

from __future__ import annotations

from typing import Final

STATEMENT_CHARACTERS: Final = 256 * 1024
"""The text of all statements of a query."""
OPERATION_DEPTH: Final = 30
"""Operations within each other."""
EXPRESSION_DEPTH: Final = 60
"""Functions, parentheses and predicates within each other."""
EXPRESSION_NODES: Final = 20_000
"""The functions and values of all expressions of a statement, each use of an alias with all of it."""
STATEMENTS: Final = 1_000
"""The statements of a query."""
GROUPS: Final = 1 << 24
"""Groups of one level on one content node: they take about 100 bytes each, and 8 more for each aggregate."""
WAIT_SECONDS: Final = 60.0
"""The longest that debugwait waits for the rows of a level."""
MEMORY_BYTES: Final = 1 << 30
"""What all groups of a query may take on one content node, with their aggregates, hits and sketches."""
ARGUMENT_VALUES: Final = 1 << 21
"""Values of all arguments of a function that are computed at a time, 4 or 8 bytes each: of more rows one part after the
other."""
TEXT_BYTES: Final = 1 << 28
"""What the functions of a query's groupings may make of texts and raw values, of the documents of one type."""
