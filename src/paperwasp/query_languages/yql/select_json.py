"""The JSON query language: the conditions of YQL written as JSON, in the parameter `select.where`.

It is YQL in another dress: the JSON becomes the tokens of the same condition, which the parser of YQL reads, so every
operator and annotation there is one here. A token knows the path in the JSON that it comes from, and errors name that.

    {"and": [{"contains": ["title", "a"]}, {"range": ["year", {">": 2000}]}]}  →  (title contains "a" and year > 2000)

An operator has its arguments in a list, or in `{"children": […], "attributes": {…}}` with annotations.
Vespa: https://docs.vespa.ai/en/reference/querying/json-query-language.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, Final, NoReturn

import orjson

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.base.patterns import compile_later
from paperwasp.errors import LanguageError, Position
from paperwasp.query_languages.yql.conditions import ConditionParser
from paperwasp.query_languages.yql.statement import YqlQuery, check_connectivity
from paperwasp.search.operators.notation import ARGUMENTS, CONDITIONS, LEAVES, Argument, Arguments
from paperwasp.text.parsing.tokens import Token, TokenStream

_ROOT: Final = "select.where"
_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
_Write = Callable[[Any, str], None]
"""Writes the value at a path."""

_STRING: Final = compile_later(r""""[^"\\]*(?:\\.[^"\\]*)*"|'([^'\\]*(?:\\.[^'\\]*)*)'""", re.DOTALL)
_QUOTE: Final = compile_later(r'\\.|"', re.DOTALL)
_BOUNDS: Final = {(">=", "<="): None, (">", "<"): "open", (">", "<="): "leftOpen", (">=", "<"): "rightOpen"}


class JsonPlace(Position, frozen=True):
    """A place in JSON: its path."""

    def __str__(self) -> str:
        return self.source


class _JsonTokens(TokenStream):
    """Tokens whose start is the number of a path."""

    def __init__(self, tokens: list[Token], paths: list[str]) -> None:
        super().__init__("", _ROOT, tokens)
        self._paths = paths

    def position(self, token: Token | None = None) -> Position:
        start = (token or self.current).start
        return JsonPlace(self._paths[start] if start < len(self._paths) else _ROOT, 1, 1)


def parse_select(where: str, parameters: Mapping[str, str] = _NO_PARAMETERS) -> YqlQuery:
    """The query that a value of `select.where` is. `"@name"` is not read: only YQL has parameters in it.

    Errors: LanguageError, which names the path in the JSON.
    """
    if len(where) > limits.QUERY_TEXT_BYTES:
        raise LanguageError(f"{_ROOT} has {len(where)} characters; at most {limits.QUERY_TEXT_BYTES}")
    known = _KEPT.get(where)
    if known is None:
        known = _parse(where)
        _KEPT.put(where, known, len(where))
    return known


def _parse(where: str) -> YqlQuery:
    writer = _Writer()
    try:
        writer.condition(_json(where, _ROOT), _ROOT)
        tokens = _JsonTokens(writer.tokens, writer.paths)
        conditions = ConditionParser(tokens, _NO_PARAMETERS)
        tree = conditions.expression()
        tokens.expect_end()
    except RecursionError:
        raise LanguageError(f"{_ROOT}: nested deeper than {limits.EXPRESSION_DEPTH} levels") from None
    check_connectivity(tree)
    fields, quoted = MappingProxyType(conditions.fields), MappingProxyType(conditions.quoted)
    return YqlQuery(tree, (), (), indexes=fields, quoted=quoted)


_KEPT: Final[Cache[str, YqlQuery]] = Cache(
    size=limits.QUERY_TREES_CHARACTERS, largest=limits.QUERY_TEXT_KEPT_CHARACTERS
)


def parse_select_grouping(grouping: str) -> str:
    """The steps of grouping that a value of `select.grouping` is, in the grouping language, with `|` between them.

    Errors: LanguageError.
    """
    steps = _json(grouping, "select.grouping")
    if not isinstance(steps, list):
        raise LanguageError("select.grouping: expected a list of grouping statements")
    try:
        return " | ".join(_grouping(step).strip() for step in steps)
    except RecursionError:
        raise LanguageError("select.grouping: nested too deep") from None


def _grouping(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_grouping, value))
    if isinstance(value, dict):
        return "".join(f"{name}({_grouping(inner)}) " for name, inner in value.items())
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _json(text: str, name: str) -> Any:
    """The value of a JSON text, whose strings may stand between single quotes, as Vespa's may."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        try:
            content = json.loads(_STRING.sub(_double_quoted, text), strict=False)
            json.dumps(content, ensure_ascii=False).encode()  # half a character is none
            return content
        except ValueError:
            raise LanguageError(f"{name}: {error}") from None


def _double_quoted(match: re.Match[str]) -> str:
    inner = match.group(1)
    if inner is None:
        return match.group()
    return f'"{_QUOTE.sub(_quote, inner)}"'


def _quote(match: re.Match[str]) -> str:
    """A quote in a string that stood between single quotes."""
    return {"\\'": "'", '"': '\\"'}.get(match.group(), match.group())


class _Writer:
    """Writes conditions given as JSON as the tokens of YQL."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.paths: list[str] = []

    def condition(self, value: Any, path: str) -> None:
        """`{"operator": arguments}`, `true`, `false`; inside an element also a text."""
        if isinstance(value, bool | str):
            self._literal(value, path)
            return
        if not isinstance(value, dict) or not value:
            self._fail(f"expected an operator with its arguments, found {_excerpt(value)}", path)
        if len(value) == 1:
            ((name, arguments),) = value.items()
            self._operator(name, arguments, f"{path}.{name}")
            return
        each = (partial(self._operator, name, inner, f"{path}.{name}") for name, inner in value.items())
        self._write_joined(each, "and", path)

    def _operator(self, name: str, arguments: Any, path: str) -> None:
        write = _OPERATORS.get(name)
        if write is not None:
            children, attributes = self._split(arguments, path)
            self._write_annotated(attributes, path, partial(write, self, children, path))
        elif name in CONDITIONS or name in LEAVES:
            children, attributes = self._split(arguments, path)
            call = self._call if name in CONDITIONS else self._leaf
            self._write_annotated(attributes, path, partial(call, name, children, path))
        elif isinstance(arguments, str | int | float):
            self._field_is(name, arguments, path)
        else:
            known = ", ".join(sorted({*_OPERATORS, *CONDITIONS}))
            self._fail(f"'{name}' is not an operator; known are {known}", path)

    def _split(self, value: Any, path: str) -> tuple[Any, Mapping[str, Any]]:
        """The arguments of an operator and its annotations."""
        if not isinstance(value, dict):
            return value, {}
        attributes = value.get("attributes", {})
        if not isinstance(attributes, dict):
            self._fail(f"expected a map of annotations, found {_excerpt(attributes)}", f"{path}.attributes")
        rest = {name: inner for name, inner in value.items() if name != "attributes"}
        return (rest["children"] if [*rest] == ["children"] else rest), attributes

    def _list(self, children: Any, path: str, least: int, most: int | None = None) -> list[Any]:
        if isinstance(children, list) and least <= len(children) <= (most or len(children)):
            return children
        count = str(least) if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        self._fail(f"expected a list of {count} arguments, found {_excerpt(children)}", path)

    def _each(self, values: Iterable[Any], path: str, write: _Write, first: int = 0) -> list[Callable[[], None]]:
        """A function for each value of a list that writes it; the first value has the number `first`."""
        return [partial(write, value, f"{path}[{number}]") for number, value in enumerate(values, first)]

    def _write_annotated(self, attributes: Mapping[str, Any], path: str, write: Callable[[], None]) -> None:
        if not attributes:
            write()
            return
        self._symbol("(", path)
        self._literal(attributes, f"{path}.attributes")
        write()
        self._symbol(")", path)

    def _write_joined(self, parts: Iterable[Callable[[], None]], word: str, path: str) -> None:
        self._symbol("(", path)
        for number, write in enumerate(parts):
            if number:
                self._name(word, path)
            write()
        self._symbol(")", path)

    def combined(self, word: str, children: Any, path: str) -> None:
        """`and`, `or`."""
        self._write_joined(self._each(self._list(children, path, 1), path, self.condition), word, path)

    def and_not(self, children: Any, path: str) -> None:
        """The first and none of the others."""
        self._symbol("(", path)
        for number, child in enumerate(self._list(children, path, 1)):
            if number:
                self._name("and", path)
                self._symbol("!", path)
            self._symbol("(", path)
            self.condition(child, f"{path}[{number}]")
            self._symbol(")", path)
        self._symbol(")", path)

    def contains(self, children: Any, path: str) -> None:
        """A field and what it contains: a text, or an operator such as phrase."""
        field, what = self._list(children, path, 2, 2)
        self._field(field, f"{path}[0]")
        self._name("contains", path)
        self._part(what, f"{path}[1]")

    def matches(self, children: Any, path: str) -> None:
        field, expression = self._list(children, path, 2, 2)
        self._field(field, f"{path}[0]")
        self._name("matches", path)
        self._literal(expression, f"{path}[1]")

    def is_in(self, children: Any, path: str) -> None:
        field, *values = self._list(children, path, 2)
        self._field(field, f"{path}[0]")
        self._name("in", path)
        self._symbol("(", path)
        self._write_list(self._each(values, path, self._literal, 1), path)
        self._symbol(")", path)

    def equals(self, children: Any, path: str) -> None:
        """`["field", 42]` or `{"field": "field", "value": 42}`, which may have an `index`."""
        if isinstance(children, dict):
            unknown = [*(children.keys() - {"field", "value", "index"})]
            if unknown or not {"field", "value"} <= children.keys():
                self._fail("expected 'field', 'value' and perhaps 'index'", path)
            field, value, index = children["field"], children["value"], children.get("index")
        else:
            (field, value), index = self._list(children, path, 2, 2), None
        if not isinstance(value, bool | int):
            self._fail(f"expected true, false or an integer as the value, found {_excerpt(value)}", path)
        self._field(field, path)
        if index is not None:
            self._symbol("[", path)
            self._literal(index, f"{path}.index")
            self._symbol("]", path)
        self._symbol("=", path)
        self._literal(value, path)

    def range(self, children: Any, path: str) -> None:
        """A field and its bounds, such as `{">=": 0, "<": 500}`; in either order."""
        first, second = self._list(children, path, 2, 2)
        field, bounds, at = (first, second, f"{path}[1]") if isinstance(first, str) else (second, first, f"{path}[0]")
        if not isinstance(bounds, dict) or not bounds or not bounds.keys() <= {"=", ">", ">=", "<", "<="}:
            self._fail(f"expected bounds by =, >, >=, <, <=, found {_excerpt(bounds)}", at)
        for sign, bound in bounds.items():
            allowed = int | float if sign == "=" else int | float | str
            if isinstance(bound, bool) or not isinstance(bound, allowed):
                self._fail(f"expected a number, found {_excerpt(bound)}", f"{at}.{sign}")
        if len({isinstance(bound, str) for bound in bounds.values()}) > 1:
            self._fail("expected two numbers or two strings", at)
        if isinstance(next(iter(bounds.values())), str):
            self._text_range(field, bounds, path, at)
            return
        if len(bounds) == 1:
            ((sign, bound),) = bounds.items()
            self._field(field, path)
            self._symbol(sign, at)
            self._literal(bound, f"{at}.{sign}")
            return
        low, high = ">" if ">" in bounds else ">=", "<" if "<" in bounds else "<="
        if bounds.keys() != {low, high}:
            self._fail("expected one lower and one upper bound", at)
        if (kind := _BOUNDS[low, high]) is not None:
            self._literal({"bounds": kind}, at)
        numbers = [partial(self._literal, bounds[sign], f"{at}.{sign}") for sign in (low, high)]
        self._in_call("range", [partial(self._field, field, path), *numbers], path)

    def _text_range(self, field: str, bounds: Mapping[str, str], path: str, at: str) -> None:
        """The same with strings, of which those that are numbers are strings as well."""
        low = next((sign for sign in (">", ">=") if sign in bounds), None)
        high = next((sign for sign in ("<", "<=") if sign in bounds), None)
        if len(bounds) != (low is not None) + (high is not None):
            self._fail("expected one lower and one upper bound", at)
        if (kind := _BOUNDS[low or ">=", high or "<="]) is not None:
            self._literal({"bounds": kind}, at)
        ends = [
            partial(self._open_end, signs, at) if sign is None else partial(self._literal, bounds[sign], f"{at}.{sign}")
            for sign, signs in ((low, ("-", "Infinity")), (high, ("Infinity",)))
        ]
        self._in_call("range", [partial(self._field, field, path), *ends], path)

    def _open_end(self, signs: Sequence[str], path: str) -> None:
        for sign in signs:
            self._symbol(sign, path)

    def _call(self, name: str, children: Any, path: str) -> None:
        """An operator whose arguments are conditions, or a field and literals."""
        arguments = ARGUMENTS[name]
        if not arguments.kinds:
            children = []
        count = len(arguments.kinds) if arguments.is_fixed else None
        given = [children] if isinstance(children, str) and count is None else children
        self._in_call(name, self._arguments(arguments, self._list(given, path, count or 0, count), path), path)

    def _arguments(self, arguments: Arguments, values: Sequence[Any], path: str) -> list[Callable[[], None]]:
        """A function for each argument that writes it as its kind is written."""
        write = {
            Argument.CONDITION: self.condition,
            Argument.PART: self._part,
            Argument.NAME: self._named,
            Argument.LITERAL: self._literal,
        }
        kinds = chain(arguments.kinds, repeat(arguments.kinds[-1]) if arguments.kinds else ())
        found = enumerate(zip(values, kinds, strict=False))
        return [partial(write[kind], value, f"{path}[{number}]") for number, (value, kind) in found]

    def _named(self, value: Any, path: str) -> None:
        """The name of a field or a tensor; what is no text is a literal, for the operator to refuse."""
        if isinstance(value, str):
            self._field(value, path)
        else:
            self._literal(value, path)

    def _in_call(self, name: str, arguments: list[Callable[[], None]], path: str) -> None:
        self._name(name, path)
        self._symbol("(", path)
        self._write_list(arguments, path)
        self._symbol(")", path)

    def _write_list(self, parts: list[Callable[[], None]], path: str) -> None:
        for number, write in enumerate(parts):
            if number:
                self._symbol(",", path)
            write()

    def _part(self, value: Any, path: str) -> None:
        """Writes what a field contains, or a part of that: a text, a number as a text, or an operator on the field."""
        if not isinstance(value, dict):
            if isinstance(value, bool | list) or value is None:
                self._fail(f"expected a string or an operator, found {_excerpt(value)}", path)
            self._literal(str(value), path)
            return
        if len(value) != 1 or (name := next(iter(value))) not in LEAVES:
            self._fail(f"expected one of the operators {', '.join(sorted(LEAVES))}, found {_excerpt(value)}", path)
        path = f"{path}.{name}"
        children, attributes = self._split(value[name], path)
        self._write_annotated(attributes, path, partial(self._leaf, name, children, path))

    def _leaf(self, name: str, children: Any, path: str) -> None:
        if isinstance(children, dict) and [*children] == ["query"]:
            children = [children["query"]]
        arguments = self._list(children if isinstance(children, list) else [children], path, 1)
        self._in_call(name, self._arguments(ARGUMENTS[name], arguments, path), path)

    def _field_is(self, name: str, value: str | int | float, path: str) -> None:
        """`{"title": "music"}`: a field that contains a text, or has a value."""
        self._field(name, path)
        if isinstance(value, str):
            self._name("contains", path)
        else:
            self._symbol("=", path)
        self._literal(value, path)

    def _field(self, name: Any, path: str) -> None:
        if not isinstance(name, str) or not re.fullmatch(
            r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*", name
        ):
            self._fail(f"expected the name of a field, found {_excerpt(name)}", path)
        for number, part in enumerate(name.split(".")):
            if number:
                self._symbol(".", path)
            self._name(part, path)

    def _literal(self, value: Any, path: str) -> None:
        if isinstance(value, dict):
            self._symbol("{", path)
            self._write_list([partial(self._pair, key, inner, f"{path}.{key}") for key, inner in value.items()], path)
            self._symbol("}", path)
        elif isinstance(value, list):
            self._symbol("[", path)
            self._write_list(self._each(value, path, self._literal), path)
            self._symbol("]", path)
        elif isinstance(value, bool):
            self._name("true" if value else "false", path)
        elif isinstance(value, str):
            text = value.encode("utf-8", "replace").decode()
            self._token("string", orjson.dumps(text).decode(), path)
        elif isinstance(value, int | float):
            self._token("int" if isinstance(value, int) else "float", repr(value), path)
        else:
            self._fail("null has no meaning here", path)

    def _pair(self, key: str, value: Any, path: str) -> None:
        self._literal(key, path)
        self._symbol(":", path)
        self._literal(value, path)

    def _name(self, name: str, path: str) -> None:
        self._token("identifier", name, path)

    def _symbol(self, symbol: str, path: str) -> None:
        self._token("symbol", symbol, path)

    def _token(self, kind: str, text: str, path: str) -> None:
        self.tokens.append(Token(kind, text, len(self.paths)))
        self.paths.append(path)

    def _fail(self, message: str, path: str) -> NoReturn:
        raise LanguageError(message, JsonPlace(path, 1, 1))


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:100]}…"


_OPERATORS: Final[Mapping[str, Callable[[_Writer, Any, str], None]]] = {
    "and": lambda writer, children, path: writer.combined("and", children, path),
    "or": lambda writer, children, path: writer.combined("or", children, path),
    "and_not": _Writer.and_not,
    "contains": _Writer.contains,
    "matches": _Writer.matches,
    "in": _Writer.is_in,
    "equals": _Writer.equals,
    "range": _Writer.range,
}
"""The operators that are not functions in YQL."""
