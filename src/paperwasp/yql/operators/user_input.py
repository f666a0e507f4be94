"""`userQuery`, `userInput` and `text`: text that is not YQL, parsed when the request is known."""

from __future__ import annotations

from paperwasp.errors import IllegalQuery
from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item
from paperwasp.operators.registry import condition, leaf
from paperwasp.query.scope import Scope
from paperwasp.yql.query_type import QUERY_TYPES, query_type
from paperwasp.yql.user_items import NO_GRAMMAR, Grammar, UserQueryItem, UserTextItem

_NOT_PARSED = ("raw", "segment")


@condition("userQuery")
def user_query(parser: ArgumentReader, scope: Scope) -> Item:
    """`userQuery()`: the parameter `query`, of the type that `type` says. Vespa reads no arguments: `void` is one."""
    if parser.tokens.current.text == "void":
        parser.tokens.next()
    return UserQueryItem()


@condition("userInput")
def user_input(parser: ArgumentReader, scope: Scope) -> Item:
    """`userInput("…")` or `userInput(@name)`: simple query language, by default of type weakAnd."""
    token = parser.tokens.current
    field = scope.get("defaultIndex", str)
    if field is not None:
        parser.note_field(field, token)
    default = "" if parser.element else "default"
    return _text_item(parser, scope, default if field is None else field, fields_allowed=True)


@leaf("text")
def text(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`field contains text("…")`: its words, by default under a weakAnd."""
    return _text_item(parser, scope, field, fields_allowed=False)


def _text_item(parser: ArgumentReader, scope: Scope, index: str, *, fields_allowed: bool) -> UserTextItem:
    token = parser.tokens.current
    value, parameter = _value(parser)
    return UserTextItem(
        text=value,
        parameter=parameter,
        grammar=_grammar(scope),
        default_index=index,
        annotations=scope.of_term(),
        target_hits=scope.target_hits(),
        distance=scope.count("distance"),
        allow_empty=bool(scope.get("allowEmpty", bool)),
        fields_allowed=fields_allowed,
        nfkc=bool(scope.get("nfkc", bool)),
        position=parser.tokens.position(token),
    )


def _value(parser: ArgumentReader) -> tuple[str | None, str | None]:
    """The text itself, or the name of the parameter that has it."""
    tokens = parser.tokens
    if tokens.accept("@"):
        return None, parser.parameter_name()
    if not tokens.at_kind("string"):
        tokens.fail(f"expected string, found {tokens.found()}")
    return parser.copied_text("the text of a user"), None


def _grammar(scope: Scope) -> Grammar:
    """The grammar of the text, as the annotations give it. Errors: LanguageError at the annotation."""
    if not scope.values:
        return NO_GRAMMAR
    name = scope.get("grammar", str) or ""
    parts = {
        part: scope.get(f"grammar.{part}", str) or "" for part in ("composite", "tokenization", "syntax", "profile")
    }
    try:
        if name and name not in _NOT_PARSED:
            name = query_type(name)
        # What else it must go with is known when the query type of the request is.
        QUERY_TYPES["tokenize"].having(parts["composite"], parts["tokenization"])
        QUERY_TYPES["all"].having(syntax=parts["syntax"])
    except IllegalQuery as error:
        if name and name not in QUERY_TYPES:
            scope.fail(f"annotation 'grammar': '{name}' is not a query type")
        scope.fail(f"annotation 'grammar': {error.message}")
    return Grammar(name, **parts)
