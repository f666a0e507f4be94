"""range and comparisons of strings: values of attributes between two bounds in the order of their characters.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range
"""

from __future__ import annotations

from paperwasp.base.records import dataclass
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.printing import annotated, bounds, call, string
from paperwasp.search.operators.value_patterns import PatternItem
from paperwasp.storage.attributes.patterns import OrderPattern, TextPattern


@dataclass(frozen=True, slots=True)
class TextRangeItem(PatternItem):
    """Texts between two bounds in the order of their characters; None is open."""

    copied = ("low", "high")
    pattern_name = "lexical range"

    low: str | None
    high: str | None
    low_inclusive: bool = True
    high_inclusive: bool = True

    def to_yql(self) -> str:
        low = "-Infinity" if self.low is None else string(self.low)
        high = "Infinity" if self.high is None else string(self.high)
        extra = bounds(self.low_inclusive or self.low is None, self.high_inclusive or self.high is None)
        return annotated(call("range", (self.index, low, high)), self.annotations, extra)

    def pattern(self) -> TextPattern:
        return OrderPattern(self.low, self.high, self.low_inclusive, self.high_inclusive)


def text_range(
    field: str, ends: tuple[str | None, str | None], inclusive: tuple[bool, bool], scope: Scope
) -> TextRangeItem:
    """A range of strings between two bounds, either of which may be open."""
    if scope.hit_limit():
        scope.fail("a range of strings has no hitLimit")
    return TextRangeItem(field, *ends, *inclusive, annotations=scope.of_term())
