"""`userQuery`, `userInput` and `text`: where text from a user stands in the tree of a statement, until
`user_text.complete` puts the parsed text there; and `nonEmpty`, which says that it may not be empty.

Importing the package `yql` registers their readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from msgspec import Struct

from paperwasp.base.records import PartlyCompared, replace
from paperwasp.errors import IllegalQuery, Position
from paperwasp.query_languages.yql.query_type import QUERY_TYPES, query_type
from paperwasp.search.operators.item import Composite, Item
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, call, condition, leaf, string
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, Annotations, AnnotationScope

NOT_PARSED: Final = ("raw", "segment")
"""The grammars of texts that are one word."""
_GRAMMAR_PARTS: Final = ("composite", "tokenization", "syntax", "profile")


class UserQueryItem(Item, frozen=True):
    """`userQuery()`: the text of the parameter `query`."""

    def to_yql(self) -> str:
        return "userQuery()"


class Grammar(Struct, frozen=True):
    """The reading of a text, as far as a query sets it: the name of a query type, `raw` or `segment`, and its parts."""

    name: str = ""
    composite: str = ""
    tokenization: str = ""
    syntax: str = ""
    profile: str = ""


NO_GRAMMAR = Grammar()


class UserTextItem(Item, PartlyCompared, frozen=True):
    """`userInput(…)` and `text(…)`: a text of the query itself, or of the parameter it names."""

    UNCOMPARED: ClassVar = frozenset({"position"})

    copied = ("text",)

    text: str | None
    parameter: str | None
    grammar: Grammar = NO_GRAMMAR
    default_index: str = "default"
    annotations: Annotations = DEFAULT_ANNOTATIONS
    target_hits: int = 0
    distance: int | None = None
    """The distance of `near` and `oNear`; None: their default."""
    allow_empty: bool = False
    fields_allowed: bool = True
    """True where `field:word` may choose another field: in `userInput`, not in `text`."""
    nfkc: bool = False
    """True where the text is normalized before it is read."""
    position: Position | None = None

    def with_indexes(self, rename: Callable[[str], str]) -> Item:
        return replace(self, default_index=rename(self.default_index))

    def to_yql(self) -> str:
        argument = f"@{self.parameter}" if self.parameter is not None else string(self.text or "")
        extra: dict[str, Any] = {"grammar": self.grammar.name} if self.grammar.name else {}
        for part in _GRAMMAR_PARTS:
            if said := getattr(self.grammar, part):
                extra[f"grammar.{part}"] = said
        if self.fields_allowed and self.default_index not in ("", "default"):
            extra["defaultIndex"] = self.default_index
        if self.target_hits:
            extra["targetHits"] = self.target_hits
        if self.distance is not None:
            extra["distance"] = self.distance
        for name, is_set in (("allowEmpty", self.allow_empty), ("nfkc", self.nfkc)):
            if is_set:
                extra[name] = True
        if self.fields_allowed:
            return annotated(call("userInput", [argument]), self.annotations, extra)
        text = annotated(call("text", [argument]), self.annotations, extra)
        return f"{self.default_index} contains {text}" if self.default_index else text


class NonEmptyItem(Composite, PartlyCompared, frozen=True):
    """`nonEmpty(…)`: its only child, in which no term may turn out to be empty."""

    UNCOMPARED: ClassVar = frozenset({"position"})

    is_canonical = True
    """As long as it stands: it goes when the text is completed."""

    position: Position | None = None

    def to_yql(self) -> str:
        return call("nonEmpty", [child.to_yql() for child in self.children])


@condition("nonEmpty", Argument.CONDITION)
def read_non_empty(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`nonEmpty(a)`: `a`, and an error if a term in it is empty."""
    start = parser.tokens.current
    return NonEmptyItem((parser.expression(scope),), parser.tokens.position(start))


@condition("userQuery")
def read_user_query(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`userQuery()`: the parameter `query`, of the type that `type` says. Vespa reads no arguments: `void` is one."""
    if parser.tokens.current.text == "void":
        parser.tokens.next()
    return UserQueryItem()


@condition("userInput", Argument.LITERAL)
def read_user_input(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`userInput("…")` or `userInput(@name)`: simple query language, by default of type weakAnd."""
    token = parser.tokens.current
    field = scope.get("defaultIndex", str)
    if field is not None:
        parser.note_field(field, token)
    default = "" if parser.element else "default"
    return _text_item(parser, scope, default if field is None else field, fields_allowed=True)


@leaf("text")
def read_text(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`field contains text("…")`: its words, by default under a weakAnd."""
    return _text_item(parser, scope, field, fields_allowed=False)


def _text_item(parser: ArgumentReader, scope: AnnotationScope, index: str, *, fields_allowed: bool) -> UserTextItem:
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


def _grammar(scope: AnnotationScope) -> Grammar:
    """The grammar of the text, as the annotations give it. Errors: LanguageError at the annotation."""
    if not scope.values:
        return NO_GRAMMAR
    name = scope.get("grammar", str) or ""
    parts = {part: scope.get(f"grammar.{part}", str) or "" for part in _GRAMMAR_PARTS}
    try:
        if name and name not in NOT_PARSED:
            name = query_type(name)
        # What else it must go with is known when the query type of the request is.
        QUERY_TYPES["tokenize"].having(parts["composite"], parts["tokenization"])
        QUERY_TYPES["all"].having(syntax=parts["syntax"])
    except IllegalQuery as error:
        if name and name not in QUERY_TYPES:
            scope.fail(f"annotation 'grammar': '{name}' is not a query type")
        scope.fail(f"annotation 'grammar': {error.message}")
    return Grammar(name, **parts)
