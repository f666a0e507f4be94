"""in: one of many values of an attribute, or one of many words of an indexed field.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#in
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paperwasp.base.records import replace
from paperwasp.document.types import BYTE, INT, LONG, STRING, ArrayType, WeightedSetType
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field, Schema
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.operators.boolean import FalseItem
from paperwasp.search.operators.composed import TokensMatch
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import ArgumentReader, annotated, comparison, literal
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.term import AttributeMatch
from paperwasp.search.operators.text import tokens_match
from paperwasp.search.operators.word import fields_of, term_operator
from paperwasp.search.yql_syntax import AnnotationScope, number_value, parse_number, string_value, string_values
from paperwasp.text.linguistics import query_terms
from paperwasp.text.parsing.tokens import Token, TokenStream

_INTEGERS: Final = frozenset((BYTE, INT, LONG))


class InItem(TermItem, frozen=True):
    """One of many values: all of them str, or all int. What is to be found in a numeric field may be text."""

    is_canonical = False
    is_seen_by_rules = False

    values: tuple[str | int, ...]

    def to_yql(self) -> str:
        return annotated(f"{self.index} in ({', '.join(map(literal, self.values))})", self.annotations)

    def canonical(self) -> Item:
        return self if self.values else FalseItem()

    def check(self, name: str, schemas: Sequence[Schema]) -> None:
        """The first document type that has the field defines its type, as in Vespa (YqlParser, buildIn)."""
        fields = next((fields for schema in schemas if (fields := schema.fields_named(name))), ())
        of_fields = (field.type for field in fields)
        types = {kind.inner[0] if isinstance(kind, (ArrayType, WeightedSetType)) else kind for kind in of_fields}
        has_integers, has_texts = not types.isdisjoint(_INTEGERS), STRING in types
        if fields and not has_integers and not has_texts:
            what = f"integer and string fields. The field {name} is not of these types"
            raise InvalidQuery(f"The in operator is only supported for {what}")
        if has_integers and has_texts:
            what = f"with a mix of integer and string fields. The fieldset {name} has both"
            raise InvalidQuery(f"The in operator is not supported for fieldsets {what}")
        for value in self.values if fields else ():
            if has_integers and not isinstance(value, int) and not isinstance(parse_number(value), int):
                raise InvalidQuery(f"in '{name}': expected an integer, but got {value}")
            if has_texts and not isinstance(value, str):
                raise InvalidQuery(f"in '{name}': expected a string, but got {value}")

    def lookups(self) -> int:
        return len(self.values)

    def plan(self, space: SearchSpace) -> Operator:
        matches: list[FieldMatch] = []
        for field in fields_of(self.index, space):
            if space.has_index(field):
                found = (token_of(value, field, space) for value in self.values)
                matches.append(TokensMatch(space, field.name, [match for match in found if match is not None]))
            elif (column := space.column(field)) is not None:
                matches.append(AttributeMatch(space, field.name, column, column.any_of(self.values)))
        return term_operator(space, matches, self.annotations)


def token_of(value: str | int, field: Field, space: SearchSpace) -> FieldMatch | None:
    """A value as one word of an indexed field: lower-cased, not made tokens of, not stemmed. None: it is empty."""
    as_it_is = replace(text_profile(field), whole=True, gram_size=0)
    return tokens_match(query_terms(as_it_is, str(value), stem=False), field, space)


@comparison("in")
def read_in(parser: ArgumentReader, field: str, scope: AnnotationScope) -> Item:
    """`field in (1, 2)`, `field in ("a", "b")`, `field in (@values)`: one of them."""
    tokens = parser.tokens
    start = tokens.expect("(")
    values = _read_values(parser)
    while tokens.accept(","):
        values += _read_values(parser)
    tokens.expect(")")
    if any(isinstance(value, int) for value in values):
        values = [_integer(value, tokens, start) for value in values]
    if not values:
        return FalseItem()
    return InItem(field, tuple(dict.fromkeys(values)), annotations=scope.of_term())


def _read_values(parser: ArgumentReader) -> list[str | int]:
    tokens = parser.tokens
    if (token := tokens.accept_kind("int", "long")) is not None:
        return [int(number_value(tokens, token))]
    if (token := tokens.accept_kind("string")) is not None:
        return [string_value(tokens, token)]
    if tokens.at("@"):
        start = tokens.current
        try:
            return [*string_values(parser.parameter())]
        except ValueError as error:
            tokens.fail(str(error), start)
    tokens.fail(f"expected an integer or a string, found {tokens.found()}")


def _integer(value: str | int, tokens: TokenStream, start: Token) -> int:
    number = parse_number(value) if isinstance(value, str) else value
    if not isinstance(number, int):
        tokens.fail(f"'in' takes integers or strings, not both: '{value}' is not an integer", start)
    return number
