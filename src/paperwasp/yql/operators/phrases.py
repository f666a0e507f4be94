"""`phrase`: words next to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paperwasp.query.items import Item, PhraseItem, WordItem
from paperwasp.yql.annotations import Scope
from paperwasp.yql.operators.registry import leaf

if TYPE_CHECKING:
    from paperwasp.yql.conditions import ConditionParser


@leaf("phrase")
def phrase(parser: ConditionParser, field: str, scope: Scope) -> Item:
    """`phrase("a", "b", …)`. A phrase inside a phrase gives its words to it; one word is no phrase."""
    words = tuple(_words(parser))
    if len(words) == 1:
        return WordItem(field, words[0], annotations=scope.of_term())
    return PhraseItem(field, words, annotations=scope.of_term())


def _words(parser: ConditionParser) -> list[str]:
    words: list[str] = []
    while True:
        words += _word(parser)
        if not parser.tokens.accept(","):
            return words


def _word(parser: ConditionParser) -> list[str]:
    tokens = parser.tokens
    start = tokens.current
    with tokens.nested():
        if tokens.accept("("):
            words = _word(parser)
            tokens.expect(")")
            return words
        if parser.annotations():
            tokens.fail("annotations on a word of a phrase are not supported yet", start)
        if tokens.at("phrase") and tokens.peek().text == "(":
            tokens.next()
            tokens.next()
            words = _words(parser)
            tokens.expect(")")
            return words
    parser.refuse_call()
    return [parser.text("a word of the phrase")]
