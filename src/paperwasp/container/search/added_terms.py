"""Terms that parameters add to the query: `wand.*`, weighted tokens, and `boolean.*`, the attributes of predicates.

Each is joined with the query by `and`; alone it is the query.
Vespa: com.yahoo.search.querytransform.WandSearcher, BooleanSearcher and BooleanAttributeParser
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.container.search.settings import PredicateParameters, WandParameters
from paperwasp.core.clock import check_time
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.search.operators.boolean import OrItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.predicate import PredicateItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.weighted import DotProductItem, WandItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import Annotations, Tokens, weighted_tokens

_KEY: Final = compile_later(r"""\s*(?:"([^"]*)"|'([^']*)'|([^:,\s][^:,]*|)):\s*""")
_VALUE: Final = compile_later(r"[^,}\[]*(?:\[[^\]]*\][^,}\[]*)*")
_LISTED: Final = compile_later(r"\s*([^,\]\[]*(?:\[[^\]]*\][^,\]\[]*)*),?\s*")
_NEXT: Final = compile_later(r",?\s*")
_BITS: Final = compile_later(r"\[\s*\d+\s*(?:,\s*\d+\s*)*\]?", re.ASCII)
_MASK: Final = compile_later(r"0x([0-9a-fA-F]+)\s*")
_WHOLE: Final = compile_later(r"[+-]?\d{1,19}", re.ASCII)
_ALL_SUBQUERIES: Final = 2**64 - 1
_SUBQUERIES: Final = 64

Feature = tuple[str, str, int]
"""Name, value, and a bit for each subquery."""


def added_terms(wand: WandParameters, predicate: PredicateParameters, indexes: Indexes) -> list[Item]:
    """The items that the parameters add to the query. Errors: InvalidQuery, IllegalQuery."""
    added: list[Item] = []
    if wand.field is not None and wand.tokens is not None and (tokens := _tokens(wand, indexes)):
        added.append(_wand(wand, wand.field, tokens))
    if predicate.field is not None and (predicate.attributes is not None or predicate.range_attributes is not None):
        added.append(_predicate(predicate, predicate.field, indexes))
    return added


def _tokens(wand: WandParameters, indexes: Indexes) -> Tokens:
    if wand.field not in indexes:
        raise InvalidQuery(f"Field '{wand.field}' was not found")
    try:
        if not (wand.tokens or "").lstrip().startswith("{"):
            raise ValueError("expected a map that begins with '{'")
        return weighted_tokens(wand.tokens or "")
    except ValueError as error:
        raise InvalidQuery(f"'{wand.tokens}' is not a legal sparse vector string: {error}") from None


def _wand(wand: WandParameters, field: str, tokens: Tokens) -> Item:
    if wand.type == "dotProduct":
        return DotProductItem(field, tokens)
    if wand.type == "parallel":
        return WandItem(field, tokens, wand.heap_size, wand.score_threshold, wand.threshold_boost_factor)
    words = tuple(
        WordItem(field, str(token), annotations=Annotations(weight=weight, stem=False, accent_drop=False))
        for token, weight in tokens
    )
    return OrItem(words) if wand.type == "or" else WeakAndItem(words, wand.heap_size)


def _predicate(given: PredicateParameters, field: str, indexes: Indexes) -> Item:
    try:
        if field not in indexes:
            raise ValueError("there is no such field")
        ranges = tuple((name, _long(value), bits) for name, value, bits in _features(given.range_attributes))
        return PredicateItem(field, tuple(_features(given.attributes)), ranges)
    except ValueError as error:
        raise IllegalQuery(f"Failed boolean search on field '{field}': {error}") from None


def _long(text: str) -> int:
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def _features(text: str | None) -> Iterator[Feature]:
    """The features in `{name: value, other: [a, b:0x3, c:[0, 2]]}`. Errors: ValueError, OutOfTime."""
    if not text:
        return
    at = len(text) - len(text.lstrip())
    if text[at : at + 1] != "{":
        raise ValueError(f"'{text}' is not a legal sparse vector string: Expected '{{' at position {at}")
    at += 1
    while text[at : at + 1] != "}":
        check_time()
        key = _KEY.match(text, at)
        if key is None:
            raise ValueError(f"'{text}' is not a legal sparse vector string: Expected a key followed by ':'")
        name, at = next(part for part in key.groups() if part is not None), key.end()
        if text[at : at + 1] == "[":
            at += 1
            while text[at : at + 1] not in ("]", ""):
                one = _LISTED.match(text, at)
                assert one is not None
                if one.end() == at:
                    raise ValueError(f"'{text}' has a list that cannot be read at position {at}")
                yield _feature(name, one[1])
                at = one.end()
            at += 1
        else:
            value = _VALUE.match(text, at)
            assert value is not None
            yield _feature(name, value[0])
            at = value.end()
        if at >= len(text):
            raise ValueError(f"'{text}' is not a legal sparse vector string: Expected '}}' at its end")
        at = _NEXT.match(text, at).end()  # type: ignore[union-attr]
    if at != len(text) - 1:
        raise ValueError(f"Expected end of string at position {at + 1}")


def _feature(name: str, text: str) -> Feature:
    value, colon, bits = text.partition(":")
    return name, value, _subqueries(bits) if colon else _ALL_SUBQUERIES


def _subqueries(text: str) -> int:
    """The bits that `0x12` or `[1, 4]` names. Errors: ValueError."""
    mask = _MASK.fullmatch(text)
    if mask is not None:
        return int(mask[1], 16) & _ALL_SUBQUERIES
    if not _BITS.fullmatch(text.strip()):
        raise ValueError(f"'{text}' does not name subqueries: write 0x3 or [0, 1]")
    bits = [int(bit) for bit in text.strip(" []").split(",")]
    if max(bits) >= _SUBQUERIES:
        raise ValueError("Subquery index must be in the range 0-63")
    return sum(1 << bit for bit in set(bits))
