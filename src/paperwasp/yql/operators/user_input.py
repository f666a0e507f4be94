"""`userQuery`, `userInput` and `text`: text that is not YQL, parsed when the request is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paperwasp.errors import IllegalQuery
from paperwasp.parsing.tokens import Token
from paperwasp.query.items import Item
from paperwasp.yql.annotations import Scope
from paperwasp.yql.lexicon import string_value
from paperwasp.yql.operators.registry import condition, leaf
from paperwasp.yql.simple import query_type
from paperwasp.yql.user_text import UserQueryItem, UserTextItem

if TYPE_CHECKING:
    from paperwasp.yql.conditions import ConditionParser

_GRAMMAR_PARTS = ("grammar.composite", "grammar.tokenization", "grammar.syntax", "grammar.profile")


@condition("userQuery")
def user_query(parser: ConditionParser, scope: Scope) -> Item:
    """`userQuery()`: the parameter `query`, of the type that `type` says."""
    return UserQueryItem()


@condition("userInput")
def user_input(parser: ConditionParser, scope: Scope) -> Item:
    """`userInput("…")` or `userInput(@name)`: simple query language, by default of type weakAnd."""
    token = parser.tokens.current
    field = scope.get("defaultIndex", str)
    if field is not None:
        parser.note_field(field, token)
    return _text_item(parser, scope, field or "default", "weakAnd", fields_allowed=True)


@leaf("text")
def text(parser: ConditionParser, field: str, scope: Scope) -> Item:
    """`field contains text("…")`: its words, by default under a weakAnd."""
    return _text_item(parser, scope, field, "linguistics", fields_allowed=False)


def _text_item(parser: ConditionParser, scope: Scope, index: str, type_: str, *, fields_allowed: bool) -> UserTextItem:
    token = parser.tokens.current
    value, parameter = _value(parser)
    scope.refuse(*_GRAMMAR_PARTS)
    grammar = scope.get("grammar", str)
    return UserTextItem(
        text=value,
        parameter=parameter,
        type=type_ if grammar is None else _grammar(parser, grammar, token),
        default_index=index,
        annotations=scope.of_term(),
        target_hits=scope.target_hits(),
        allow_empty=bool(scope.get("allowEmpty", bool)),
        fields_allowed=fields_allowed,
        position=parser.tokens.position(token),
    )


def _value(parser: ConditionParser) -> tuple[str | None, str | None]:
    """The text itself, or the name of the parameter that has it."""
    tokens = parser.tokens
    if tokens.accept("@"):
        return None, parser.parameter_name()
    token = tokens.expect_kind("string")
    return string_value(tokens, token), None


def _grammar(parser: ConditionParser, grammar: str, token: Token) -> str:
    if grammar in ("raw", "segment"):
        return grammar
    try:
        return query_type(grammar)
    except IllegalQuery:
        parser.tokens.fail(f"annotation 'grammar': '{grammar}' is not a query type, or not supported yet", token)
