"""`rank: literal`: what queries rank by beside what they ask for.

Authority: the examples of LiteralBoostSearcherTestCase in Vespa: of a negative branch, of a rank at the root.
"""

from __future__ import annotations

import pytest

from paperwasp.container.search.rewrites import with_literals
from paperwasp.query_languages.yql.indexes import Indexes, Reading
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.search.operators.item import Item

INDEXES = Indexes(("a", "b"), {"a": Reading(literal="a_literal"), "b": Reading()})


@pytest.mark.parametrize(
    ("where", "ranked"),
    [
        ('a contains "Abc"', 'rank(a contains "Abc", a_literal contains "abc")'),
        ('b contains "Abc"', 'b contains "Abc"'),
        (
            'a contains "abc" and a contains "def" and !(a contains "ghi")',
            'rank((a contains "abc" and a contains "def" and !(a contains "ghi")), '
            'a_literal contains "abc", a_literal contains "def")',
        ),
        (
            'rank(a contains "x", b contains "y")',
            'rank(a contains "x", b contains "y", a_literal contains "x")',
        ),
        (
            'a contains phrase("x", "Y") or a contains ({prefix: true}"z")',
            'rank((a contains phrase("x", "Y") or a contains ({prefix: true}"z")), '
            'a_literal contains "x", a_literal contains "y", a_literal contains "z")',
        ),
    ],
)
def test_words_are_ranked_by_as_they_are(where: str, ranked: str) -> None:
    def parsed(text: str) -> Item:
        return parse_yql(f"select * from s where {text}").tree

    assert with_literals(parsed(where), INDEXES) == parsed(ranked)
