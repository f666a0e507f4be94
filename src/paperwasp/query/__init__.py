"""The query tree that every query language is parsed into."""

from paperwasp.query.items import (
    AndItem,
    Annotations,
    FalseItem,
    Item,
    NotItem,
    OrItem,
    PhraseItem,
    RangeItem,
    RankItem,
    TermItem,
    TrueItem,
    WeakAndItem,
    WordItem,
)

__all__ = [
    "AndItem",
    "Annotations",
    "FalseItem",
    "Item",
    "NotItem",
    "OrItem",
    "PhraseItem",
    "RangeItem",
    "RankItem",
    "TermItem",
    "TrueItem",
    "WeakAndItem",
    "WordItem",
]
