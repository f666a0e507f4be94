"""`phrase`, `near`, `onear`, `equiv` and `alternatives`: several words on one field."""

from __future__ import annotations

from typing import Final

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import EquivItem, Item, NearItem, PhraseItem, WordAlternativesItem, WordItem
from paperwasp.operators.registry import leaf
from paperwasp.query.scope import Scope

_IN_PHRASE: Final = ("phrase", "alternatives")
_IN_EQUIV: Final = ("phrase", "alternatives")
_IN_NEAR: Final = ("equiv", "phrase", "alternatives")


@leaf("phrase")
def phrase(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`phrase("a", "b", …)`. A phrase inside a phrase gives its words to it; one word is no phrase."""
    words: list[str | Item] = []
    plain = outer.of_term()
    for part in _parts(parser, field, outer, _IN_PHRASE):
        if isinstance(part, PhraseItem):
            words += part.words
        else:
            words.append(part.word if isinstance(part, WordItem) and part.annotations == plain else part)
    annotations = scope.of_group(outer)
    if len(words) == 1:
        return words[0] if isinstance(words[0], Item) else WordItem(field, words[0], annotations=annotations)
    return PhraseItem(field, tuple(words), annotations=annotations)


@leaf("equiv")
def equiv(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`equiv("a", phrase("b", "c"), …)`: terms that rank as one."""
    start = parser.tokens.current
    terms = tuple(_parts(parser, field, outer, _IN_EQUIV))
    if len(terms) < 2:
        parser.tokens.fail(f"Expected 2 or more arguments, got {len(terms)}.", start)
    return EquivItem(terms, annotations=scope.of_group(outer))


@leaf("near")
def near(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`near("a", "b", !"c")`: words within `distance` positions, and none of the others near them."""
    return _near(parser, field, scope, outer, ordered=False)


@leaf("onear")
def onear(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """As `near`, of words in the order of the query."""
    return _near(parser, field, scope, outer, ordered=True)


def _near(parser: ArgumentReader, field: str, scope: Scope, outer: Scope, *, ordered: bool) -> Item:
    tokens = parser.tokens
    name = "onear" if ordered else "near"
    terms: list[Item] = []
    exclusions: list[Item] = []
    while True:
        start = tokens.current
        if tokens.accept("!"):
            if not terms:
                tokens.fail(f"Must have some positive term before negative terms in {name}", start)
            exclusions.append(_part(parser, field, outer, _IN_NEAR))
        elif exclusions:
            tokens.fail(f"Positive terms must come before negative terms in {name}", start)
        else:
            terms.append(_part(parser, field, outer, _IN_NEAR))
        if not tokens.accept(","):
            break
    distance, exclusion_distance = scope.count("distance"), scope.count("exclusionDistance")
    return NearItem(
        tuple(terms),
        2 if distance is None else distance,
        ordered,
        tuple(exclusions),
        -1 if exclusion_distance is None or not exclusions else exclusion_distance,
    )


@leaf("alternatives")
def alternatives(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`alternatives({"sneakers": 1.0, "shoes": 0.7})`: forms of one word, each with its exactness."""
    start = parser.tokens.current
    forms = parser.value()
    if not isinstance(forms, dict) or not forms:
        parser.tokens.fail("alternatives takes a map of words and their exactness", start)
    for word, exactness in forms.items():
        if type(exactness) not in (int, float):
            parser.tokens.fail(f"the exactness of '{word}' must be a number, not {exactness!r}", start)
    exact = tuple((word, float(exactness)) for word, exactness in forms.items())
    return WordAlternativesItem(field, exact, annotations=scope.of_term())


def _parts(parser: ArgumentReader, field: str, scope: Scope, operators: tuple[str, ...]) -> list[Item]:
    """Words, or operators of those named, between commas."""
    parts = [_part(parser, field, scope, operators)]
    while parser.tokens.accept(","):
        parts.append(_part(parser, field, scope, operators))
    return parts


def _part(
    parser: ArgumentReader, field: str, scope: Scope, operators: tuple[str, ...], outer: Scope | None = None
) -> Item:
    tokens = parser.tokens
    outer = outer or scope
    if tokens.current.text in ("(", "{", "["):
        with tokens.nested():
            scope = parser.annotated(scope)
            if not tokens.accept("("):
                return _part(parser, field, scope, operators, outer)
            part = _part(parser, field, scope, operators, outer)
            tokens.expect(")")
            return part
    if tokens.current.text in operators:
        with tokens.nested():
            item = parser.leaf(field, scope, outer)
        if item is not None:
            return item
    parser.refuse_call()
    return parser.word(field, parser.copied_text("a word"), scope)
