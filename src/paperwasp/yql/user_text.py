"""Text from a user inside a YQL query: where it stands in the tree, and how the tree is completed with it.

YQL is parsed once and remembered; the text changes with every request. So the parser leaves an item in its place,
and `complete` puts the parsed text there.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#userquery
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from paperwasp import limits
from paperwasp.errors import IllegalQuery, LanguageError, Position
from paperwasp.query.items import DEFAULT_ANNOTATIONS, Annotations, Item, NotItem, TermItem, TrueItem, WeakAndItem
from paperwasp.yql.canonical import canonical
from paperwasp.yql.simple import parse_simple


@dataclass(frozen=True, slots=True)
class UserQueryItem(Item):
    """`userQuery()`: the text of the parameter `query`."""


@dataclass(frozen=True, slots=True)
class UserTextItem(Item):
    """`userInput(…)` and `text(…)`: a text of the query itself, or of the parameter it names."""

    text: str | None
    parameter: str | None
    type: str
    default_index: str
    annotations: Annotations = DEFAULT_ANNOTATIONS
    target_hits: int = 0
    allow_empty: bool = False
    fields_allowed: bool = True
    """Whether `field:word` may choose another field."""
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class UserText:
    """What a request says about the text of its user."""

    query: str | None = None
    type: str = "weakAnd"
    default_index: str = "default"
    indexes: frozenset[str] = frozenset()
    """The names that may stand before a colon."""
    parameters: Mapping[str, str] | None = None


def complete(tree: Item, user: UserText) -> Item:
    """The canonical tree with all user text parsed and in its place.

    Errors: IllegalQuery "No query" when nothing is left, or more than `limits.QUERY_ITEMS` items are;
    LanguageError for a text that may not be empty and is.
    """
    whole = _complete(tree, user)
    if whole is None:
        raise IllegalQuery("No query")
    whole = canonical(whole)
    count = sum(1 for _ in whole.walk())
    if count > limits.QUERY_ITEMS:
        raise IllegalQuery(
            f"Query tree exceeds allowed item count. Configured limit: {limits.QUERY_ITEMS} - Item count: {count}"
        )
    return whole


def _complete(item: Item, user: UserText) -> Item | None:
    if isinstance(item, UserQueryItem):
        return parse_simple(user.query or "", user.type, user.default_index, user.indexes)
    if isinstance(item, UserTextItem):
        return _parsed(item, user)
    children = item.children_of()
    if not children:
        return item
    return _with_children(item, children, [_complete(child, user) for child in children])


def _with_children(item: Item, before: tuple[Item, ...], after: list[Item | None]) -> Item | None:
    if all(new is old for new, old in zip(after, before, strict=True)):
        return item
    if isinstance(item, NotItem) and after[0] is None:
        after[0] = TrueItem()
    left = tuple(child for child in after if child is not None)
    return replace(item, children=left) if left else None  # type: ignore[call-arg]


def _parsed(item: UserTextItem, user: UserText) -> Item | None:
    text = item.text if item.parameter is None else (user.parameters or {}).get(item.parameter)
    if text is None:
        raise LanguageError(f"Input '{item.parameter}' is not set", item.position)
    indexes = user.indexes if item.fields_allowed else frozenset[str]()
    parsed = parse_simple(text, item.type, item.default_index, indexes)
    if parsed is None and not item.allow_empty:
        raise LanguageError(f"Parsing '{text}' only resulted in NullItem.", item.position)
    return None if parsed is None else _annotated(parsed, item)


def _annotated(parsed: Item, by: UserTextItem) -> Item:
    if isinstance(parsed, WeakAndItem) and by.target_hits:
        parsed = replace(parsed, target_hits=by.target_hits)
    given = {
        name.name: getattr(by.annotations, name.name)
        for name in fields(Annotations)
        if getattr(by.annotations, name.name) != getattr(DEFAULT_ANNOTATIONS, name.name)
    }
    return _annotate(parsed, given) if given else parsed


def _annotate(item: Item, given: Mapping[str, object]) -> Item:
    if isinstance(item, TermItem):
        return replace(item, annotations=replace(item.annotations, **given))  # type: ignore[arg-type]
    children = item.children_of()
    if not children:
        return item
    return replace(item, children=tuple(_annotate(child, given) for child in children))  # type: ignore[call-arg]
