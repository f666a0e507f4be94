"""The query tree: from YQL, JSON or simple text, with the user's text, recall terms and places in it.

Vespa: https://docs.vespa.ai/en/reference/api/query.html#query-model
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paperwasp.container.search.added_terms import added_terms
from paperwasp.container.search.config import Target
from paperwasp.container.search.literals import with_literals
from paperwasp.container.search.location import read_location, read_position
from paperwasp.container.search.settings import SearchParameters, TextParameters
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError
from paperwasp.linguistics import ENGLISH, detect
from paperwasp.query.items import AndItem, Item, OrItem, TermItem, TrueItem, WeakAndItem
from paperwasp.yql import QueryType, UserText, YqlQuery, parse_recall, parse_yql
from paperwasp.yql.canonical import canonical
from paperwasp.yql.field_names import renamed
from paperwasp.yql.indexes import Indexes
from paperwasp.yql.query_type import type_of
from paperwasp.yql.select_json import parse_select
from paperwasp.yql.user_text import UserQueryItem, UserTextItem, completed

_LANGUAGES: Final = {
    "big5": "zh-hant", "euc-tw": "zh-hant", "gb2312": "zh-hans", "gbk": "zh-hans", "gb18030": "zh-hans",
    "euc-jp": "ja", "iso-2022-jp": "ja", "shift-jis": "ja", "shift_jis": "ja", "sjis": "ja",
    "euc-kr": "ko", "iso-2022-kr": "ko",
}  # fmt: skip
"""Encoding → the language that it is used for."""
_USER_QUERY: Final = UserQueryItem()
"""The tree of a request without YQL."""


def language_of(parameters: SearchParameters, statement: YqlQuery | None) -> str:
    """The language of a query's text, as a tag: said, or of its locale or encoding; else that of the first text in it
    that says one or that one is detected in; empty: English.

    Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html#query-language-detection
    """
    text = parameters.text
    said = text.language or text.locale or _LANGUAGES.get(text.encoding, "")
    if said or text.query:
        return said or _foreign(text.query or "")
    for item in statement.tree.walk() if statement is not None else ():
        if isinstance(item, UserTextItem | TermItem) and item.annotations.language:
            return item.annotations.language
        if isinstance(item, UserTextItem):
            written = item.text if item.parameter is None else parameters.given.get(item.parameter)
            if written and (found := _foreign(written)):
                return found
    return ""


def _foreign(text: str) -> str:
    """The language of a text, if it is not English, which every text is taken for."""
    found = detect(text)
    return "" if found == ENGLISH else found


def read_statement(parameters: SearchParameters) -> YqlQuery | None:
    """What `yql` or `select.where` says; None: there is neither. Errors: IllegalQuery, InvalidQuery."""
    if parameters.select_where:
        if parameters.yql:
            raise IllegalQuery("Both 'yql' and 'select.where' are given: a query has one of them")
        try:
            return parse_select(parameters.select_where, parameters.given)
        except LanguageError as error:
            raise _not_created(error.message, "select") from None
    if not parameters.yql:
        return None
    try:
        statement = parse_yql(parameters.yql, parameters.given)
    except LanguageError as error:
        raise _not_created(error.message) from None
    if statement.grouping:
        raise _not_created("grouping ('|') is not supported yet")
    return statement


def _not_created(message: str, source: str = "YQL") -> InvalidQuery:
    return InvalidQuery(f"Could not create query from {source}: {message}")


def query_tree(parameters: SearchParameters, statement: YqlQuery | None, indexes: Indexes) -> Item:
    """The tree of the query and the user's text, canonical. Errors: IllegalQuery, InvalidQuery."""
    text, source = parameters.text, "select" if parameters.select_where else "YQL"
    tree = _USER_QUERY if statement is None else _with_known_fields(statement, indexes, source)
    user_text = UserText(
        query=text.query or None,
        type=_type_of(text),
        default_index=text.default_index,
        indexes=indexes,
        parameters=parameters.given,
        filter=text.filter,
        is_yql_default=text.is_yql_default,
    )
    try:
        whole = completed(tree, user_text)
    except LanguageError as error:
        raise _not_created(error.message, source) from None
    return _with_terms(whole, parameters, indexes)


def _with_known_fields(statement: YqlQuery, indexes: Indexes, source: str) -> Item:
    """The tree with the fields by the names that the schemas have. Errors: InvalidQuery for one that is in none."""
    names = {name: name if name in indexes else None for name in statement.indexes}
    names |= {name: indexes.canonical(name) for name in statement.quoted if name not in names}
    found = {}
    for name, known in names.items():
        if known is None:
            position = statement.indexes.get(name) or statement.quoted[name]
            raise _not_created(str(LanguageError(f"Field '{name}' does not exist.", position)), source)
        if known != name:
            found[name] = known
    return renamed(statement.tree, found) if found else statement.tree


def _with_terms(tree: Item | None, parameters: SearchParameters, indexes: Indexes) -> Item:
    """The query with the terms of `wand.*` and `boolean.*`. Errors: IllegalQuery where there is nothing to search for,
    not even a place."""
    added = added_terms(parameters.wand, parameters.predicate, indexes)
    if tree is not None:
        return canonical(AndItem((tree, *added))) if added else tree
    if added:
        return canonical(AndItem(tuple(added)))
    if parameters.text.location or parameters.position.is_given:
        return TrueItem()
    raise IllegalQuery("No query")


def _type_of(text: TextParameters) -> str | QueryType:
    """How the user's text is read. Errors: IllegalQuery where the parts of the type do not go together."""
    if not text.parts and not text.profile:
        return text.type
    return type_of(text.type).having(**text.parts, profile=text.profile)


def whole_tree(tree: Item, parameters: SearchParameters, targets: tuple[Target, ...], indexes: Indexes) -> Item:
    """The tree with what parameters and schemas make of it as a whole: recall terms, places, literals.

    Errors: IllegalQuery, InvalidQuery.
    """
    if indexes.has_literals:
        tree = with_literals(tree, indexes)
    text, location = parameters.text, None
    if text.location:
        location = read_location(text.location)
    elif parameters.position.is_given:
        location = read_position(parameters.position)
    if not (text.weak_and_replaces_or or location or text.recall):
        return tree
    if text.weak_and_replaces_or:
        tree = _with_weak_ands(tree, text.wand_hits)
    if text.recall:
        tree = parse_recall(text.recall, text.default_index, indexes).applied_to(tree)
    if location is not None:
        tree = location.applied_to(tree, (schema for target in targets for schema in target.schemas))
    return canonical(tree)


def _with_weak_ands(tree: Item, target_hits: int) -> Item:
    return _mapped(tree, lambda item: WeakAndItem(item.children, target_hits) if isinstance(item, OrItem) else item)


def _mapped(item: Item, change: Callable[[Item], Item]) -> Item:
    """The tree with every item changed, children first."""
    children = item.children_of()
    return change(item.with_children(tuple(_mapped(child, change) for child in children)) if children else item)
