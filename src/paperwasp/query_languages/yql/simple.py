"""The simple query language, as people type it into a search box; and the advanced one, with its operators.

Every text is a valid query: what makes no sense is skipped. The grammar has two layers: `simple_terms.TermReader` reads
the terms; a syntax (`_SYNTAXES`) puts terms together.

    all, web    `+` and nothing in front ask for the same; `-` excludes
    any         terms without a sign are alternatives; where something is required with `+`, they only rank
    advanced    `a and b`, `a or b`, `a andnot b`, `a rank b`, `a near(5) b`, `a onear(5) b`, `a equiv b`,
                `a weakand(100) b`, in any case. Operators have no precedence: each takes all that stands to its left.
                Terms without an operator between them go to the operator before them, or are joined by `and`

The rules of type any also hold in parentheses. A group that comes after other terms becomes what is searched for, and
what was before it only ranks, but for a group of alternatives in a query of another type than any, which takes it in.
The rules are Vespa's, strange ones too: `SimpleParser.java`, and `combineItems` of `AnyParser.java` and
`AllParser.java` in container-search.

Vespa: https://docs.vespa.ai/en/reference/querying/simple-query-language.html, `model.type` in the query API, and
com.yahoo.prelude.query.parser.AdvancedParser, whose type is deprecated there in favor of YQL.
Differs: in advanced, terms after a closing parenthesis are joined by `and` too, not put into what the parentheses hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.errors import IllegalQuery, LanguageError
from paperwasp.query_languages.yql.indexes import NO_INDEXES, Indexes
from paperwasp.query_languages.yql.query_type import QueryType, type_of
from paperwasp.query_languages.yql.simple_terms import DEFAULT_INDEX, TermReader, too_many_items
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Annotated, Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import TOKEN, WordItem, is_number
from paperwasp.text.parsing.tokens import position_of

Compose = Callable[[tuple[Item, ...]], Item]

_DEPTH: Final = 100
"""Groups within groups; deeper parentheses mean nothing."""


def _all_terms(reader: TermReader, compose: Compose) -> Item | None:
    """`+` and nothing in front ask for the same; `-` excludes; `(a b)` asks for one of them."""
    positives: list[Item] = []
    negatives: list[Item] = []
    while reader.skip_spaces():
        start = reader.at
        if (item := _read_excluded(reader, compose)) is not None:
            negatives.append(item)
        elif (part := _included(reader, compose) or _term_or_group(reader, compose)) is not None:
            positives.append(built(part))
        elif reader.at == start:
            reader.skip()
    return _without(compose(tuple(positives)) if positives else None, negatives)


def _term_or_group(reader: TermReader, compose: Compose | None) -> Part | None:
    return reader.term()[0] or _group(reader, compose)


def _included(reader: TermReader, compose: Compose | None) -> Part | None:
    """Read the term or group after `+`. `compose` is that of the type; None: type any."""
    start = reader.at
    if not reader.prefix("+"):
        return None
    while reader.prefix("+"):
        pass
    part = _term_or_group(reader, compose)
    if part is None:
        reader.at = start
    return part


def read_included(reader: TermReader) -> Item | None:
    """Read an item after `+`, by the rules of type any."""
    part = _included(reader, None)
    return None if part is None else built(part)


def read_excluded(reader: TermReader) -> Item | None:
    """Read an item after one `-` or several, by the rules of type any."""
    start = reader.at
    if not reader.prefix("-"):
        return None
    while reader.prefix("-"):
        pass
    item = reader.term()[0] or _excluded_group(reader, None)
    if item is None:
        reader.at = start
    return item


def _read_excluded(reader: TermReader, compose: Compose) -> Item | None:
    """Read an item after `-`; but `-5` without a field is a number below zero."""
    start = reader.at
    if not reader.prefix("-"):
        return None
    item, names_index = reader.term()
    if item is None:
        item = _excluded_group(reader, compose)
    elif not names_index and isinstance(item, WordItem) and is_number(item.word) and not item.word.startswith("-"):
        item = None
    if item is None:
        reader.at = start
    return item


def _excluded_group(reader: TermReader, compose: Compose | None) -> Item | None:
    """Read a group after `-`: several terms without signs in it are excluded together."""
    group = _group(reader, compose)
    item = None if group is None else built(group)
    return (compose or AndItem)(item.children) if isinstance(item, OrItem) else item


def _without(item: Item | None, negatives: list[Item]) -> Item | None:
    """Exclude `negatives` from `item`, or from all documents where there is none."""
    return NotItem((item or TrueItem(), *negatives)) if negatives else item


def _group(reader: TermReader, compose: Compose | None) -> Part | None:
    """Read `(…)`, with parentheses in it. The cursor stays before one that holds nothing. The last may be left out."""
    start = reader.at
    if reader.depth >= _DEPTH or not reader.text.startswith("(", start) or start in reader.empty_groups:
        return None
    reader.at += 1
    reader.depth += 1
    part = _side_by_side(reader, compose)
    reader.depth -= 1
    if part is None:
        reader.empty_groups.add(start)
        reader.at = start
    elif reader.skip_spaces() and reader.text[reader.at] == ")":
        reader.at += 1
    return part


def _side_by_side(reader: TermReader, compose: Compose | None) -> Part | None:
    return read_side_by_side(
        reader,
        lambda reader: _included(reader, compose),
        read_excluded if compose is None else lambda reader: _read_excluded(reader, compose),
        lambda reader: _group(reader, compose),
        is_any=compose is None,
    )


def _web_terms(reader: TermReader) -> Item | None:
    """As type all without groups, and a capital `OR` between terms asks for one of its sides."""
    alternatives: list[list[Item]] = [[]]
    negatives: list[Item] = []
    while reader.skip_spaces():
        if (item := _read_excluded(reader, AndItem)) is not None:
            negatives.append(item)
            continue
        part = _included(reader, AndItem) or reader.term()[0]
        item = None if part is None else built(part)
        if item is None:
            reader.skip()
        elif alternatives[-1] and isinstance(item, WordItem) and item.word == "OR":
            alternatives.append([])
        else:
            alternatives[-1].append(item)
    sides = tuple(AndItem(tuple(side)) for side in alternatives if side)
    return _without(OrItem(sides) if sides else None, negatives)


def _simple_terms(reader: TermReader, composite: str) -> Item | None:
    if composite == "phrase":
        return _words(reader, composite)
    if composite != "or":
        return _all_terms(reader, _COMPOSE[composite])
    part = _side_by_side(reader, None)
    return None if part is None else built(part)


def _words(reader: TermReader, composite: str) -> Item | None:
    """Read all words of the text, whatever signs stand between them."""
    words = TOKEN.findall(reader.text)
    if len(words) < 2:
        return WordItem(reader.default_index, words[0]) if words else None
    if composite == "phrase":
        return PhraseItem(reader.default_index, tuple(words))
    return _COMPOSE[composite](tuple(WordItem(reader.default_index, word) for word in words))


_COMPOSE: Final[Mapping[str, Compose]] = MappingProxyType(
    {
        "and": AndItem,
        "or": OrItem,
        "weakAnd": WeakAndItem,
        "near": NearItem,
        "oNear": lambda children: NearItem(children, ordered=True),
    }
)
_SYNTAXES: Final[Mapping[str, Callable[[TermReader, str], Item | None]]] = MappingProxyType(
    {
        "simple": _simple_terms,
        "web": lambda reader, composite: _web_terms(reader),
        "none": _words,
        "advanced": lambda reader, composite: advanced_terms(reader),
    }
)
"""Syntax → the reader of a text in it, which gets the composite. The syntax `yql` is not read here."""

_Key = tuple[str, str | QueryType, str | None, Indexes]
_KEPT: Final[Cache[_Key, tuple[Item | None]]] = Cache(
    size=limits.QUERY_TREES_CHARACTERS, largest=limits.QUERY_TEXT_KEPT_CHARACTERS
)


def parse_simple(
    text: str,
    type: str | QueryType = "weakAnd",
    default_index: str | None = None,
    indexes: Indexes = NO_INDEXES,
) -> Item | None:
    """Return the canonical tree of a text in the simple query language; None where there is nothing to search for.

    `default_index` is the one that the request names; None: `default`, whose words are then read as text.
    `indexes` are the names that may stand before a colon; after any other the colon is part of the word.
    Errors: IllegalQuery if the text is too long, or of the syntax `yql`.
    """
    if len(text) > limits.QUERY_TEXT_BYTES:
        raise IllegalQuery(f"The query has {len(text)} characters; at most {limits.QUERY_TEXT_BYTES}")
    key = text, type, default_index, indexes
    known = _KEPT.get(key)
    if known is None:
        known = (_tree(*key),)
        _KEPT.put(key, known, len(text))
    return known[0]


def _tree(text: str, type: str | QueryType, default_index: str | None, indexes: Indexes) -> Item | None:
    kind = type_of(type)
    if default_index is None:
        plain = _plain(text, kind, DEFAULT_INDEX)
    else:
        plain = None if indexes.reading(default_index).is_whole else _plain(text, kind, default_index)
    item = plain
    if item is None:
        read = _SYNTAXES.get(kind.syntax)
        if read is None:
            raise IllegalQuery(f"A text of the syntax '{kind.syntax}' is not read here")
        item = read(TermReader(text, default_index, indexes), kind.composite)
    if item is None or isinstance(item, TrueItem):
        return None
    whole = item if plain is not None else item.canonical()  # words, and one operator over them, are canonical
    return marked(whole, {"profile": kind.profile}) if kind.profile else whole


def _plain(text: str, kind: QueryType, default_index: str) -> Item | None:
    """Return the tree of a text of nothing but words, as most are; None: there is more in it."""
    if (
        kind.syntax != "simple"
        or kind.composite == "phrase"
        or not text.replace(" ", "").isalnum()
        or not text.isascii()
    ):
        return None
    parts = text.split()
    if len(parts) > limits.QUERY_ITEMS:
        raise too_many_items(len(parts))
    words = tuple([WordItem(default_index, word) for word in parts])
    return words[0] if len(words) == 1 else _COMPOSE[kind.composite](words)


# Terms side by side, at the top of type any and in parentheses


class _Many(Struct, eq=False):
    """An `or`, or a `rank`, in the making."""

    parts: list[Part]
    is_rank: bool = False


class _Signed(Struct, eq=False):
    """Required and excluded terms, in the making."""

    required: list[Part] = field(default_factory=list)
    excluded: list[Item] = field(default_factory=list)


Part = Item | _Many | _Signed
"""Something that may become part of what is around it."""
ReadItem = Callable[[TermReader], Item | None]
ReadPart = Callable[[TermReader], Part | None]


def read_side_by_side(
    reader: TermReader,
    read_included: ReadPart,
    read_excluded: ReadItem,
    read_group: ReadPart,
    *,
    is_any: bool,
) -> Part | None:
    """Read all items from here on; in parentheses (`reader.depth`), up to the first thing that is none.

    `is_any`: by the rules of type any. None: there are none. The result is to be given to `built`, or to be part of
    what is around the parentheses.
    """
    top: Part | None = None
    signed: _Signed | None = None
    while reader.skip_spaces():
        included = read_included(reader)
        excluded = read_excluded(reader) if included is None else None
        if included is not None or excluded is not None:
            if signed is None:
                signed = _Signed()
                top = _combined(top, signed, is_any)
            if included is not None:
                signed.required.append(included)
            elif excluded is not None:
                signed.excluded.append(excluded)
        elif (group := read_group(reader)) is not None:
            top = _combined(top, group, is_any)
        elif (term := reader.term()[0]) is not None:
            top = _with_term(top, term, is_any)
        elif reader.depth:
            break
        else:
            reader.skip()
    return top if signed is None else _with_signed(top, signed, is_any)


def built(part: Part) -> Item:
    """Return the item of a part."""
    if isinstance(part, _Many):
        children = tuple(map(built, part.parts))
        return RankItem(children) if part.is_rank else OrItem(children)
    if isinstance(part, _Signed):
        required = tuple(map(built, part.required))
        positive: Item = TrueItem() if not required else required[0] if len(required) == 1 else AndItem(required)
        return NotItem((positive, *part.excluded)) if part.excluded else positive
    return part


def _with_term(top: Part | None, term: Item, is_any: bool) -> Part:
    if top is None:
        return term
    if isinstance(top, _Signed):
        return _combined(top, term, is_any)
    if isinstance(top, _Many):
        top.parts.append(term)
        return top
    return _Many([top, term])


def _combined(top: Part | None, part: Part, is_any: bool) -> Part:
    """Join the terms so far with a group, or with terms that have signs."""
    if top is None:
        return part
    ranks = isinstance(top, _Many) and top.is_rank
    if isinstance(part, _Many) and not part.is_rank:
        if isinstance(top, _Many) and not ranks:
            top.parts.append(part)
            return top
        if isinstance(top, _Many) and not is_any:
            part.parts[:0] = reversed(top.parts)
            return part
        if isinstance(top, PhraseItem) and not is_any:
            return _Many([top, part])
    if not ranks or not isinstance(top, _Many):
        return _Many([top, part] if isinstance(top, _Signed) else [part, top], is_rank=True)
    first = part.parts[0] if isinstance(part, _Many) and part.is_rank else None
    if isinstance(part, _Many) and isinstance(first, _Many) and not first.is_rank:
        first.parts[:0] = reversed(part.parts[1:])
        part = first
    top.parts.insert(0, part)
    return top


def _with_signed(top: Part | None, signed: _Signed, is_any: bool) -> Part:
    """Join all terms, where some have signs: those that only rank are required where nothing else is."""
    alone = top is signed or top is None
    if not signed.excluded:
        if alone:
            return signed
        if isinstance(top, _Many) and top.is_rank:
            top.parts.remove(signed)
            return _combined(top, signed.required[0] if len(signed.required) == 1 else signed, is_any)
    if not signed.required and not alone:
        assert top is not None
        parts: list[Part] = top.parts if isinstance(top, _Many) else [top]
        others = [part for part in parts if part is not signed]
        signed.required.append(others[0] if len(others) == 1 else _Many(others))
        return signed
    return signed if top is None else top


# The advanced syntax

_ARGUMENT = compile_later(r"\s*\(\s*(?:([0-9]{1,9})\s*\))?")

_OPERATORS: Final[Mapping[str, Callable[[tuple[Item, ...], int], Item]]] = {
    "and": lambda children, _: AndItem(children),
    "or": lambda children, _: OrItem(children),
    "andnot": lambda children, _: NotItem(children),
    "rank": lambda children, _: RankItem(children),
    "equiv": lambda children, _: EquivItem(children),
    "near": lambda children, distance: NearItem(children, distance or 2),
    "onear": lambda children, distance: NearItem(children, distance or 2, ordered=True),
    "weakand": lambda children, hits: WeakAndItem(children, hits),
    "wand": lambda children, hits: WeakAndItem(children, hits),
}
_WITH_ARGUMENT: Final = frozenset({"near", "onear", "weakand", "wand"})


class _Group(Struct):
    """One level of the query so far: its open operator and the children of that."""

    operator: str = ""
    argument: int = 0
    children: list[Item] = field(default_factory=list)

    def item(self) -> Item | None:
        if len(self.children) < 2:
            return self.children[0] if self.children else None
        return _OPERATORS[self.operator or "and"](tuple(self.children), self.argument)

    def take(self, operator: str, argument: int) -> None:
        """Go on with an operator; another than the open one takes what was read so far as its first child."""
        if (operator, argument) != (self.operator, self.argument) and self.operator:
            item = self.item()
            self.children = [item] if item is not None else []
        self.operator, self.argument = operator, argument


def advanced_terms(reader: TermReader, depth: int = 0) -> Item | None:
    """Read up to the end, or up to the parenthesis that closes a group of depth > 0."""
    if depth > limits.EXPRESSION_DEPTH:
        raise LanguageError(
            f"nested deeper than {limits.EXPRESSION_DEPTH} levels", position_of(reader.text, reader.at, "query")
        )
    group = _Group()
    expecting_operator = False
    while reader.skip_spaces():
        start = reader.at
        if depth and reader.text[start] == ")":
            reader.at += 1
            break
        reader.depth = depth
        item = reader.term()[0] or _parentheses(reader, depth)
        if item is None:
            if reader.at == start:
                reader.skip()
        elif expecting_operator and isinstance(item, WordItem) and item.word.lower() in _OPERATORS:
            operator = item.word.lower()
            group.take(operator, _argument(reader) if operator in _WITH_ARGUMENT else 0)
            expecting_operator = False
        else:
            group.children.append(item)
            expecting_operator = True
    return group.item()


def _parentheses(reader: TermReader, depth: int) -> Item | None:
    if not reader.text.startswith("(", reader.at):
        return None
    reader.at += 1
    return advanced_terms(reader, depth + 1)


def _argument(reader: TermReader) -> int:
    """Read the number in parentheses after the name of an operator; 0: none."""
    match = _ARGUMENT.match(reader.text, reader.at)
    if match is None:
        return 0
    if match.group(1) is None:
        raise LanguageError("expected an integer argument", position_of(reader.text, reader.at, "query"))
    reader.at = match.end()
    return int(match.group(1))


def marked(item: Item, given: Mapping[str, object]) -> Item:
    """Return `item` with the annotations `given`, by the names of `Annotations`, on each term in it."""
    if not given:
        return item
    item = item.map_parts(lambda part: marked(part, given))
    if isinstance(item, Annotated):
        item = replace(item, annotations=replace(item.annotations, **given))  # type: ignore[arg-type]
    return item
