"""The sorting language: `-year +missing(lowercase(title),as,"none") -[relevance]`.

    key     = ["+" | "-"] (object | "missing(" object "," policy ")" | "feature(" name ")")
    object  = attribute | "lowercase(" attribute ")" | "raw(" attribute ")"
            | "uca(" attribute ["," locale ["," strength]] ")"
    policy  = "first" | "last" | "as" "," value

Without a sign an attribute is sorted as its schema says, and `[relevance]` falls.
Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from msgspec.structs import replace

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.config import Target
from paperwasp.document.types import STRING, URI, ArrayType, DataType, NumericType, WeightedSetType
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.query_languages.yql import OrderBy
from paperwasp.schema.model import Field, Schema
from paperwasp.search.query import SortKey
from paperwasp.text.linguistics.collation import LOCALE, Collation
from paperwasp.text.parsing.tokens import did_you_mean

RELEVANCE: Final = "[relevance]"
SPECIAL: Final = {RELEVANCE: RELEVANCE, "[relevancy]": RELEVANCE, "[rank]": RELEVANCE, "[docid]": "[docid]",
                  "[source]": "[source]"}  # fmt: skip
"""Name of a sort key that is not an attribute → its one name."""
FUNCTIONS: Final = ("lowercase", "raw", "uca")
STRENGTHS: Final = ("primary", "secondary", "tertiary", "quaternary", "identical")
_ATTRIBUTE: Final = compile_later(r"[\[]*[a-zA-Z_][.a-zA-Z0-9_-]*[\]]*")
_FEATURE: Final = compile_later(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME: Final = compile_later(r"[^\s(),\"\\]*")
_QUOTED: Final = compile_later(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


class _Reader:
    """A cursor over a sort specification."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def keys(self) -> tuple[SortKey, ...]:
        found = []
        while self.skip_spaces():
            found.append(self.key())
            if self.at < len(self.text) and not self.text[self.at].isspace():
                self.fail(f"expected a space at '{self.text[self.at : self.at + 20]}'")
            if len(found) > limits.SORT_KEYS:
                self.fail(f"more than {limits.SORT_KEYS} keys")
        return tuple(found)

    def skip_spaces(self) -> bool:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def key(self) -> SortKey:
        sign = self.text[self.at]
        self.at += sign in "+-"
        descending = {"+": False, "-": True}.get(sign)
        name = self.name()
        if not self.accept("("):
            return SortKey(self.attribute(name), descending)
        match name.lower():
            case "missing":
                key = self.missing()
            case "feature":
                key = SortKey(self.feature(), function="feature")
            case function:
                key = self.of_function(function, name)
        self.expect(")")
        return replace(key, descending=descending)

    def missing(self) -> SortKey:
        name = self.name()
        if self.accept("("):
            if name.lower() == "feature":
                self.fail("a policy for missing values cannot be applied to a feature")
            key = self.of_function(name.lower(), name)
            self.expect(")")
        else:
            key = SortKey(self.attribute(name))
        self.expect(",")
        policy = self.name()
        if policy not in ("first", "last", "as"):
            self.fail(f"Unknown missing policy '{policy}': it is first, last or as")
        if policy != "as":
            return replace(key, missing=policy)
        self.expect(",")
        return replace(key, missing=policy, missing_value=self.value())

    def of_function(self, function: str, written: str) -> SortKey:
        """The rest of a function whose name and parenthesis have been read."""
        if function not in FUNCTIONS:
            self.fail(f"Unknown sort function '{written}'" if written else "No sort function specified")
        key = SortKey(self.attribute(self.name()), function=function)
        if function != "uca" or not self.accept(","):
            return key
        key = replace(key, locale=self.name())
        if not LOCALE.fullmatch(key.locale):
            self.fail(f"Illegal locale '{key.locale[:64]}'")
        if not self.accept(","):
            return key
        strength = self.name()
        if strength.lower() not in STRENGTHS:
            self.fail(f"Unknown collation strength: '{strength}'")
        return replace(key, strength=strength.lower())

    def feature(self) -> str:
        name = self.name()
        if not _FEATURE.fullmatch(name):
            self.fail(f"Illegal feature name '{name}' for sorting. Requires '{_FEATURE.pattern}'")
        return name

    def attribute(self, name: str) -> str:
        if not _ATTRIBUTE.fullmatch(name):
            self.fail(f"Illegal attribute name '{name}' for sorting. Requires '{_ATTRIBUTE.pattern}'")
        return name

    def name(self) -> str:
        match = _NAME.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match.group()

    def value(self) -> str:
        quoted = _QUOTED.match(self.text, self.at)
        if quoted is None:
            return self.name()
        self.at = quoted.end()
        return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL)

    def accept(self, character: str) -> bool:
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def expect(self, character: str) -> None:
        if not self.accept(character):
            self.fail(f"expected '{character}' at '{self.text[self.at : self.at + 20]}'")

    def fail(self, problem: str) -> NoReturn:
        raise IllegalQuery(f"Could not set 'ranking.sorting' to '{self.text[:200]}': {problem}")


def read_sorting(text: str) -> tuple[SortKey, ...]:
    """The keys of a sort specification. Errors: IllegalQuery."""
    if len(text) > limits.SORT_CHARACTERS:
        raise IllegalQuery(f"'ranking.sorting' has {len(text)} characters; at most {limits.SORT_CHARACTERS}")
    return _Reader(text).keys()


def keys_of_yql(order_by: Sequence[OrderBy], targets: tuple[Target, ...]) -> tuple[SortKey, ...]:
    """The keys of `order by`, where a name in quotes may be of any case."""
    keys = (SortKey(key.field, key.descending, key.function, key.locale, key.strength) for key in order_by)
    return tuple(
        in_any_case(key, targets) if written.is_quoted else key for key, written in zip(keys, order_by, strict=True)
    )


def in_any_case(key: SortKey, targets: tuple[Target, ...]) -> SortKey:
    """The key by the name that the schemas have. Vespa: `canonic` of Sorting.java."""
    if key.function == "feature" or any(key.field in target.indexes for target in targets):
        return key
    names = (target.indexes.canonical(key.field) for target in targets)
    return replace(key, field=next(filter(None, names), key.field))


def completed(keys: Iterable[SortKey], targets: tuple[Target, ...], locale: str) -> tuple[SortKey, ...]:
    """The keys with one name for one thing, and with the query's locale where neither they nor a schema say one.

    Errors: InvalidQuery where nothing that is searched can be sorted by a key.
    """
    return tuple(_complete(key, targets, locale) for key in keys)


def _complete(key: SortKey, targets: tuple[Target, ...], locale: str) -> SortKey:
    if key.function == "feature":
        return key
    if key.field in SPECIAL:
        if key.function or key.missing:
            raise InvalidQuery(f"Could not sort by '{key.field}': it is no attribute, and has no functions")
        name = SPECIAL[key.field]
        return replace(key, field=name, descending=name == RELEVANCE if key.descending is None else key.descending)
    if key.field.startswith("["):
        raise InvalidQuery(f"Could not sort by '{key.field}': known are {', '.join(sorted(SPECIAL))}")
    fields = [field for target in targets for field in target.fields_named(key.field) if field.attribute is not None]
    if not any(is_sortable(field.type) for field in fields):
        raise InvalidQuery(_unsortable(key.field, fields, targets))
    key = replace(key, field=fields[0].name)
    if key.function == "uca":
        Collation("uca", key.locale, key.strength or "primary")  # that it is one
    if locale and not key.locale and key.function in ("", "uca") and not any(map(_has_locale, fields)):
        return replace(key, locale=locale.replace("-", "_"))
    return key


def check_features(keys: Iterable[SortKey], targets: tuple[Target, ...], rank_profile: str) -> None:
    """That every schema that is searched can be sorted by the features among the keys. Errors: InvalidQuery."""
    for key in keys:
        for schema in (schema for target in targets for schema in target.schemas) if key.function == "feature" else ():
            profile = schema.rank_profiles.get(rank_profile)
            if profile is not None and key.field not in profile.sort_features:
                raise InvalidQuery(
                    f"Could not sort by feature({key.field}): it is not among the sort-features of rank profile"
                    f" '{rank_profile}' in schema '{schema.name}'{did_you_mean(key.field, profile.sort_features)}"
                )


def _has_locale(field: Field) -> bool:
    own = field.attribute and field.attribute.sorting
    return bool(own and own.locale)


def _unsortable(name: str, fields: list[Field], targets: tuple[Target, ...]) -> str:
    if fields:
        return f"Could not sort by '{name}': fields of type '{fields[0].type}' have no order"
    schemas = [schema for target in targets for schema in target.schemas]
    sortable = (field for schema in schemas for field in schema.fields.values() if field.attribute is not None)
    hint = did_you_mean(name, {field.name for field in sortable if is_sortable(field.type)})
    if len(targets) == 1:
        return f"The cluster {targets[0].cluster.id} has no sortable attribute named: {name}{hint}"
    clusters = ", ".join(target.cluster.id for target in targets)
    return f"None of the clusters {clusters} has a sortable attribute named: {name}{hint}"


def sorts(schema: Schema, key: SortKey) -> bool:
    """Whether documents of this type can have a value for the key."""
    if key.field in SPECIAL or key.function == "feature":
        return True
    field = schema.field_named(key.field)
    return field is not None and field.attribute is not None and is_sortable(field.type)


def is_sortable(type_: DataType) -> bool:
    """Whether values of the type have an order. Of several values of a document, the first in that order counts."""
    match type_:
        case ArrayType():
            return is_sortable(type_.element)
        case WeightedSetType():
            return is_sortable(type_.key)
    return isinstance(type_, NumericType) or type_ in (STRING, URI)
