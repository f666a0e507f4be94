"""`fuzzy` and `uri`: what a value is like."""

from __future__ import annotations

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import FuzzyItem, Item, UriItem
from paperwasp.operators.registry import leaf
from paperwasp.query.scope import Scope


@leaf("fuzzy")
def fuzzy(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`fuzzy("word")`: values at most `maxEditDistance` edits away."""
    word = parser.copied_text("what is to be like the value")
    edits = scope.count("maxEditDistance")
    return FuzzyItem(
        field,
        scope.text(word),
        2 if edits is None else edits,
        scope.count("prefixLength") or 0,
        bool(scope.get("prefix", bool)),
        annotations=scope.of_term(),
    )


@leaf("uri")
def uri(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`uri("vespa.ai/foo")`: its tokens next to each other. The end of a host name is tied to the end of the field."""
    text = parser.copied_text("a URL")
    end = scope.get("endAnchor", bool)
    return UriItem(
        field,
        text,
        bool(scope.get("startAnchor", bool)),
        field.endswith(".hostname") if end is None else end,
        annotations=scope.of_term(),
    )
