"""YQL statements: `select … from … where … order by … limit … offset … timeout … | …`.

Parsed statements are immutable and remembered by their text and the values of the parameters they use.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.errors import LanguageError, Position
from paperwasp.query_languages.yql.conditions import ConditionParser
from paperwasp.query_languages.yql.lifting import Fill, Values, outline_of, slots_of, template_of, value_of
from paperwasp.search.operators.item import Annotated, Item
from paperwasp.search.yql_syntax import (
    DEFAULT_ANNOTATIONS,
    NO_SCOPE,
    NO_SLOTS,
    YQL,
    Slot,
    accept_keyword,
    at_keyword,
    dotted_name,
    expect_keyword,
    parse_number,
    slot_of,
    string_value,
)
from paperwasp.text.parsing.tokens import TokenStream, position_of

DEFAULT_HITS: Final = 10
SORT_FUNCTIONS: Final = ("lowercase", "raw", "uca", "feature")
REMEMBERED_CHARACTERS: Final = 16_384
"""Longer statements are parsed again each time."""
STRENGTHS: Final = ("primary", "secondary", "tertiary", "quaternary", "identical")

_PARAMETER: Final = compile_later(r"@\s*([A-Za-z_][A-Za-z0-9_-]*)")
_NO_INDEXES: Final[Mapping[str, Position]] = MappingProxyType({})


class OrderBy(Struct, frozen=True):
    """One key of `order by`: an attribute, or a special one such as `[relevance]`."""

    field: str
    descending: bool
    position: Position
    function: str = ""
    """`raw`, `lowercase`, `uca`, `feature`; empty: as the schema says."""
    locale: str = ""
    """The locale of `uca`, such as en_US."""
    strength: str = ""
    """The strength of `uca`: primary, secondary, tertiary, quaternary, identical."""
    is_quoted: bool = False
    """True where the name is in quotes, and may be of any case."""


class YqlQuery(Struct, frozen=True):
    """One statement. `hits` and `offset` are set together, or neither is."""

    tree: Item
    """With items of `paperwasp.query_languages.yql.user_items` where text of the user belongs."""
    fields: tuple[str, ...]
    """Summary fields; empty: all."""
    sources: tuple[str, ...]
    """Empty: all."""
    order_by: tuple[OrderBy, ...] = ()
    hits: int | None = None
    offset: int | None = None
    timeout_ms: int | None = None
    indexes: Mapping[str, Position] = field(default_factory=lambda: _NO_INDEXES)
    """The fields and fieldsets that the conditions name, each with its first place."""
    grouping: str = ""
    """The text after the first `|`, in the grouping language: steps between `|`, each perhaps with annotations."""
    quoted: Mapping[str, Position] = field(default_factory=lambda: _NO_INDEXES)
    """As `indexes`, those whose names are in quotes and may be of any case."""


class StatementTemplate(Struct, frozen=True):
    """A statement, and how it reads with other literals and other values of parameters: see `lifting`."""

    statement: YqlQuery
    """Its tree has slots, which `fill` replaces."""
    fixed_literals: tuple[int, ...] = ()
    """The numbers of the literals that may decide how it reads."""
    fixed_names: tuple[str, ...] = ()
    """The parameters whose values may decide how it reads."""
    names: tuple[str, ...] = ()
    """The parameters whose values are in slots, behind those of the literals."""
    fill: Fill | None = None
    """Makes the tree of the values of all slots; None: it is the same for all."""


class _Memory:
    """The last statements read, by their text and by what their parameters decide."""

    def __init__(self) -> None:
        room, longest = limits.QUERY_TREES_CHARACTERS, REMEMBERED_CHARACTERS
        self._names: Cache[str, tuple[tuple[str, ...], tuple[str, ...]]] = Cache(size=room, largest=longest)
        self._templates: Cache[tuple[str, tuple[str | None, ...], tuple[bool, ...]], StatementTemplate]
        self._templates = Cache(size=room, largest=longest)

    def get(self, text: str, parameters: Mapping[str, str]) -> StatementTemplate | None:
        found = self._names.get(text)
        if found is None:
            return None
        fixed, names = found
        return self._templates.get(
            (text, tuple(map(parameters.get, fixed)), tuple([each in parameters for each in names]))
        )

    def add(self, text: str, parameters: Mapping[str, str], template: StatementTemplate) -> None:
        values = tuple(map(parameters.get, template.fixed_names))
        self._names.put(text, (template.fixed_names, template.names), len(text))
        key = text, values, (True,) * len(template.names)
        self._templates.put(key, template, len(text) + sum(len(value or "") for value in values))


_MEMORY: Final = _Memory()
_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})


def parse_yql(text: str, parameters: Mapping[str, str] = _NO_PARAMETERS) -> YqlQuery:
    """The statement in `text`; `@name` is read from `parameters`. Errors: LanguageError with the place."""
    template = parse_template(text, parameters)
    if template.fill is None:
        return template.statement
    return replace(template.statement, tree=template.fill(slot_values(template, text, parameters)))


def parse_template(text: str, parameters: Mapping[str, str]) -> StatementTemplate:
    """The statement in `text`, to be filled with other values. Errors: as `parse_yql`."""
    known = _MEMORY.get(text, parameters)
    if known is not None:
        return known
    slots = slots_of(text)
    count = len(slots)
    names = tuple(dict.fromkeys(name for name in _PARAMETER.findall(text) if name in parameters))
    slots |= {name: slot_of(parameters[name], number) for number, name in enumerate(names, count)}
    statement, conditions = _read(text, parameters, slots)
    template = template_of(statement.tree)
    found, read = Counter(template.slots), Counter(conditions.copied_names)
    decisive = {name for number, name in enumerate(names, count) if read[name] != found[number]}
    made = StatementTemplate(
        statement,
        tuple(number for number in range(count) if number not in found),
        tuple(sorted(decisive.union(conditions.parameter_names))),
        names,
        template.fill,
    )
    _MEMORY.add(text, parameters, made)
    return made


def slot_values(template: StatementTemplate, text: str, parameters: Mapping[str, str]) -> Values:
    """The values for the slots of a template, from a statement of the same outline."""
    literals = [value_of(literal) for literal in outline_of(text)[1]]
    return [*literals, *(parameters[name] for name in template.names)]


def _read(
    text: str, parameters: Mapping[str, str], slots: Mapping[int | str, Slot] = NO_SLOTS
) -> tuple[YqlQuery, ConditionParser]:
    if len(text) > limits.QUERY_TEXT_BYTES:
        raise LanguageError(f"the statement has {len(text)} characters; at most {limits.QUERY_TEXT_BYTES}")
    try:
        parser = _StatementParser(text, parameters, slots)
        return parser.statement(), parser.conditions
    except RecursionError:
        raise LanguageError(f"nested deeper than {limits.EXPRESSION_DEPTH} levels", position_of(text, 0, "")) from None


class _StatementParser:
    def __init__(self, text: str, parameters: Mapping[str, str], slots: Mapping[int | str, Slot]) -> None:
        self.tokens: TokenStream = YQL.tokenize(text)
        self.conditions = ConditionParser(self.tokens, parameters, slots)

    def statement(self) -> YqlQuery:
        expect_keyword(self.tokens, "select")
        fields = self._fields()
        expect_keyword(self.tokens, "from")
        sources = self._sources()
        expect_keyword(self.tokens, "where")
        tree = self.conditions.expression()
        if "onnectivity" in self.tokens.text or "\\u" in self.tokens.text:
            check_connectivity(tree)
        order_by = self._order_by()
        hits, offset = self._limit_and_offset()
        timeout_ms = self._number_after("timeout")
        token = self.tokens.accept_kind("grouping")
        grouping = "" if token is None else token.text[1:].rstrip().removesuffix(";").strip()
        self.tokens.accept(";")
        self.tokens.expect_end()
        indexes = MappingProxyType(self.conditions.fields)
        quoted = MappingProxyType(self.conditions.quoted)
        return YqlQuery(tree, fields, sources, order_by, hits, offset, timeout_ms, indexes, grouping, quoted)

    def _fields(self) -> tuple[str, ...]:
        if self.tokens.accept("*"):
            return ()
        fields = [self._read_selected()]
        while self.tokens.accept(","):
            fields.append(self._read_selected())
        return tuple(fields)

    def _read_selected(self) -> str:
        """Reads `name`, or `expression as name`, which selects the summary field `name`, as in Vespa."""
        name = dotted_name(self.tokens)
        if accept_keyword(self.tokens, "as"):
            return self.tokens.expect_kind("identifier").text
        return name

    def _sources(self) -> tuple[str, ...]:
        tokens = self.tokens
        if tokens.accept("*"):
            return ()
        if not (at_keyword(tokens, "sources") and (tokens.peek().kind == "identifier" or tokens.peek().text == "*")):
            return (dotted_name(tokens),)
        if tokens.peek().text.lower() == "where":
            return (dotted_name(tokens),)
        tokens.next()
        if tokens.accept("*"):
            return ()
        sources = [dotted_name(tokens)]
        while tokens.accept(","):
            sources.append(dotted_name(tokens))
        return tuple(sources)

    def _order_by(self) -> tuple[OrderBy, ...]:
        if not accept_keyword(self.tokens, "order"):
            return ()
        expect_keyword(self.tokens, "by")
        keys = [self._key()]
        while self.tokens.accept(","):
            keys.append(self._key())
        return tuple(keys)

    def _key(self) -> OrderBy:
        tokens = self.tokens
        start = tokens.current
        own = self.conditions.annotations()
        scope = NO_SCOPE.inherit(own, tokens, start) if own else NO_SCOPE
        function = scope.get("function", str) or ""
        if function and function not in SORT_FUNCTIONS:
            tokens.fail(f"Expected {_either(SORT_FUNCTIONS)}, got {function}.", start)
        locale, strength = scope.get("locale", str) or "", (scope.get("strength", str) or "").lower()
        if strength and strength not in STRENGTHS:
            tokens.fail(f"Expected {_either(STRENGTHS)}, got {strength}.", start)
        token = tokens.current
        quoted = tokens.accept_kind("string")
        name = string_value(tokens, quoted) if quoted else dotted_name(tokens)
        descending = accept_keyword(tokens, "desc") is not None
        if not descending:
            accept_keyword(tokens, "asc")
        if function != "uca":
            locale = strength = ""  # what sorts by anything else has no use for them
        place, strength = tokens.position(token), strength if locale else ""
        return OrderBy(name, descending, place, function, locale, strength, quoted is not None)

    def _limit_and_offset(self) -> tuple[int | None, int | None]:
        """`limit` counts from the first hit of all: `limit 31 offset 29` shows two."""
        start = self.tokens.current
        limit = self._number_after("limit")
        offset = self._number_after("offset")
        if limit is None:
            return (None, None) if offset is None else (DEFAULT_HITS, offset)
        hits = limit - (offset or 0)
        if hits < 0:
            self.tokens.fail(f"limit {limit} is below offset {offset}, and counts from the first hit", start)
        return hits, offset or 0

    def _number_after(self, word: str) -> int | None:
        tokens = self.tokens
        if not accept_keyword(tokens, word):
            return None
        token = tokens.current
        text = self.conditions.parameter() if tokens.at("@") else tokens.expect_kind("int").text
        value = parse_number(text)
        if not isinstance(value, int) or not 0 <= value < 2**31:
            tokens.fail(f"{word} takes an integer from 0 to {2**31 - 1}, not '{text}'", token)
        return value


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def check_connectivity(tree: Item) -> None:
    """Errors: LanguageError for a term that is connected to an item which is not there."""
    terms = [item.annotations for item in tree.walk() if isinstance(item, Annotated)]
    ids = {term.id for term in terms if term is not DEFAULT_ANNOTATIONS}
    for term in terms:
        if term.connectivity is not None and term.connectivity[0] not in ids:
            raise LanguageError(f"a term is connected to item {term.connectivity[0]}, which is not in the query")
