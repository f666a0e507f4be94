"""The query tree: from YQL, JSON or simple text, with the user's text in it.

Vespa: https://docs.vespa.ai/en/reference/api/query.html#query-model
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from paperwasp.container.search.settings import RequestValues, SearchParameters, TextParameters
from paperwasp.errors import InvalidQuery, LanguageError
from paperwasp.query_languages.yql import QueryType, UserText, YqlQuery
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.query_languages.yql.lifting import Fill, template_of
from paperwasp.query_languages.yql.query_type import type_of
from paperwasp.query_languages.yql.select_json import parse_select
from paperwasp.query_languages.yql.statement import StatementTemplate, parse_template, slot_values
from paperwasp.query_languages.yql.user_items import NonEmptyItem
from paperwasp.query_languages.yql.user_text import UserQueryItem, UserTextItem, complete
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.text.linguistics import ENGLISH, detect
from paperwasp.text.parsing.tokens import did_you_mean_sentence

_LANGUAGES: Final = {
    "big5": "zh-hant", "euc-tw": "zh-hant", "gb2312": "zh-hans", "gbk": "zh-hans", "gb18030": "zh-hans",
    "euc-jp": "ja", "iso-2022-jp": "ja", "shift-jis": "ja", "shift_jis": "ja", "sjis": "ja",
    "euc-kr": "ko", "iso-2022-kr": "ko",
}  # fmt: skip
"""Encoding → the language that it is used for."""
_OF_USER: Final = (UserQueryItem, UserTextItem, NonEmptyItem)
_USER_QUERY: Final = UserQueryItem()
"""The tree of a request without YQL."""


def said_language(parameters: SearchParameters) -> str:
    """The language that a request says its text to be of, as a tag; empty: it says none."""
    text = parameters.text
    return text.language or text.locale or _LANGUAGES.get(text.encoding, "")


def language_of(said: str, values: RequestValues, tree: Item | None) -> str:
    """The language of a query's text, as a tag: said, or of its locale or encoding; else that of the first text in it
    that says one or that one is detected in; empty: English. `tree`: of the statement; None: nothing in it says one.

    Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html#query-language-detection
    """
    if said or values.query:
        return said or _foreign(values.query or "")
    for item in tree.walk() if tree is not None else ():
        if isinstance(item, UserTextItem | TermItem) and item.annotations.language:
            return item.annotations.language
        if isinstance(item, UserTextItem):
            written = item.text if item.parameter is None else values.given.get(item.parameter)
            if written and (found := _foreign(written)):
                return found
    return ""


def says_language(tree: Item) -> bool:
    """Whether a statement may say, or have texts that say, which language it is in."""
    return terms_say_language(tree) or any(isinstance(item, UserTextItem) for item in tree.walk())


def terms_say_language(tree: Item) -> bool:
    """Whether a term of a statement says which language it is in."""
    return any(isinstance(item, TermItem) and bool(item.annotations.language) for item in tree.walk())


def _foreign(text: str) -> str:
    """The language of a text, if it is not English, which every text is taken for."""
    found = detect(text)
    return "" if found == ENGLISH else found


def read_statement(parameters: SearchParameters) -> StatementTemplate | None:
    """Reads `yql` or else `select.where`; None: there is neither. Errors: InvalidQuery.

    Where both are given, perhaps one by a query profile, `yql` counts, as in Vespa: MinimalQueryInserter.java.
    """
    if parameters.select_where and not parameters.yql:
        try:
            return StatementTemplate(parse_select(parameters.select_where, parameters.values.given))
        except LanguageError as error:
            raise _not_created(error.message, "select") from None
    if not parameters.yql:
        return None
    try:
        template = parse_template(parameters.yql, parameters.values.given)
    except LanguageError as error:
        raise _not_created(error.message) from None
    if template.fill is not None:
        parameters.values.slots = slot_values(template, parameters.yql, parameters.values.given)
    return template


def _not_created(message: str, source: str = "YQL") -> InvalidQuery:
    return InvalidQuery(f"Could not create query from {source}: {message}")


class TreeTemplate(Struct, frozen=True):
    """The tree of a query before anything rewrites it: of its statement, with the user's text."""

    statement: Item
    """The statement's own tree, with slots."""
    fill: Fill | None
    text: UserText | None
    """How the user's text is read; None: there is none in the statement, whose tree is canonical."""
    source: str
    """The parameter that the statement came from, for errors."""
    says_language: bool

    def filled(self, values: RequestValues) -> Item:
        """The tree of the statement with the literals of a request."""
        return self.statement if self.fill is None else self.fill(values.slots)

    def complete(self, statement: Item, values: RequestValues) -> Item | None:
        """The canonical tree of a filled statement and the user's text; None: there is nothing in it.

        Errors: IllegalQuery, InvalidQuery.
        """
        if self.text is None:
            return statement
        try:
            return complete(statement, self.text._replace(query=values.query or None, parameters=values.given))
        except LanguageError as error:
            raise _not_created(error.message, self.source) from None


def tree_template(parameters: SearchParameters, statement: StatementTemplate | None, indexes: Indexes) -> TreeTemplate:
    """Errors: IllegalQuery, InvalidQuery."""
    source = "select" if parameters.select_where and not parameters.yql else "YQL"
    tree: Item = _USER_QUERY
    if statement is not None:
        tree = _with_known_fields(statement.statement, indexes, source)
    text = parameters.text
    user_text = UserText(
        type=_type_of(text),
        default_index=text.default_index,
        indexes=indexes,
        filter=text.filter,
        is_yql_default=text.is_yql_default,
        max_items=text.max_items,
    )
    says = says_language(tree)
    if not says and not any(isinstance(item, _OF_USER) for item in tree.walk()):
        whole = complete(tree, user_text)
        assert whole is not None
        return TreeTemplate(whole, template_of(whole).fill, None, source, says)
    return TreeTemplate(tree, template_of(tree).fill, user_text, source, says)


def _with_known_fields(statement: YqlQuery, indexes: Indexes, source: str) -> Item:
    """The tree with the fields by the names that the schemas have. Errors: InvalidQuery for one that is in none."""
    names = {name: name if name in indexes else None for name in statement.indexes}
    names |= {name: indexes.canonical(name) for name in statement.quoted if name not in names}
    found = {}
    for name, known in names.items():
        if known is None:
            position = statement.indexes.get(name) or statement.quoted[name]
            hint = did_you_mean_sentence(name, indexes)
            raise _not_created(str(LanguageError(f"Field '{name}' does not exist.{hint}", position)), source)
        if known != name:
            found[name] = known
    return renamed(statement.tree, found) if found else statement.tree


def _type_of(text: TextParameters) -> str | QueryType:
    """How the user's text is read. Errors: IllegalQuery where the parts of the type do not go together."""
    if not text.parts and not text.profile:
        return text.type
    return type_of(text.type).having(**text.parts, profile=text.profile)


# The names of fields in a query tree, changed to those that the schemas have.
#
# Vespa: getCanonicName of IndexFacts.java, for a name that YQL has in quotes.


def renamed(item: Item, names: Mapping[str, str]) -> Item:
    """The tree with other names for the fields that `names` has."""
    return item.with_indexes(lambda index: names.get(index, index))
