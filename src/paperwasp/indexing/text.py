"""Expressions on text: case, accents, white space, parts, splitting, joining, and `.`.

What changes text changes every text in a collection, as Vespa's page says of most of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import re2
import regex

from paperwasp import limits
from paperwasp.document.types import (
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
    array_of,
    unroll,
)
from paperwasp.indexing.scope import Compiled, Fit, Run, Scope, Step, Value, compiles, fit_of, is_text, joined, text_of
from paperwasp.indexing.sources import number_of, unescape
from paperwasp.schema.indexing_tree import Expression
from paperwasp.text.linguistics import TextProfile

Change = Callable[[str], str]
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_ACCENTS: Final = regex.compile(r"[\u0300-\u036f]+")
_WORD: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+")


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def _flatten(text: str) -> str:
    """Each word, and after it the terms that it becomes, in brackets."""
    profile = TextProfile()

    def mark(found: Any) -> str:
        terms = ", ".join(sorted(profile.terms(found[0])))
        return f"{found[0]}[{terms}]" if terms else str(found[0])

    return str(_WORD.sub(mark, text))


_CHANGES: Final[dict[str, Change]] = {
    "lowercase": str.lower,
    "normalize": _without_accents,
    "trim": lambda text: text.strip(_TRIMMED),
    "flatten": _flatten,
}


@compiles(*_CHANGES)
def _change(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return _changing(expression, type_, scope, _CHANGES[expression.keyword])


@compiles("substring")
def _substring(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    start, end = (number_of(argument)[0] for argument in expression.arguments)
    if start < 0 or end < start:
        scope.fail(expression, f"there is no substring from {start} to {end}")
    return _changing(expression, type_, scope, lambda text: text[start:end])


def _changing(expression: Expression, type_: DataType | None, scope: Scope, change: Change) -> Compiled:
    step = _on_texts(type_, change)
    if step is None or type_ is None:
        scope.expected(expression, "string", type_)
    return Compiled(lambda value, run: step(value), type_)


def _on_texts(type_: DataType | None, change: Change) -> Callable[[Value], Value] | None:
    """`change` of all texts in a value of the type; None where there are none."""
    if is_text(type_):
        return change
    match type_:
        case ArrayType():
            return _inside(_on_texts(type_.element, change), lambda each, values: list(map(each, values)))
        case WeightedSetType():
            return _inside(_on_texts(type_.key, change), lambda each, weights: {each(k): w for k, w in weights.items()})
        case MapType():
            return _inside(
                _on_texts(type_.value, change), lambda each, entries: {k: each(v) for k, v in entries.items()}
            )
        case StructType():
            members = {name: each for name, inner in type_.fields if (each := _on_texts(unroll(inner), change))}
            if members:
                return lambda value: {name: members[name](v) if name in members else v for name, v in value.items()}
    return None


def _inside(
    each: Callable[[Value], Value] | None, within: Callable[[Callable[[Value], Value], Value], Value]
) -> Callable[[Value], Value] | None:
    return None if each is None else partial(within, each)


# Splitting and joining


@compiles("split")
def _split(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """By a regular expression, as Java does: no empty text before a match of nothing, and none at the end."""
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    pattern = unescape(expression.arguments[0])
    try:
        separator = re2.compile(pattern, _options())
    except re2.error as error:
        said = error.args[0] if error.args else ""
        said = said.decode(errors="replace") if isinstance(said, bytes) else said
        scope.fail(expression, f"'{pattern}' is no regular expression: {said}")

    def split(text: Value, run: Run) -> Value:
        parts: list[str] = []
        start = 0
        for found in separator.finditer(text):
            begin, end = found.span()
            if end == 0 or begin == end == len(text):
                continue
            run.elements(1)
            parts.append(text[start:begin])
            start = end
        if text:
            parts.append(text[start:])
        while parts and not parts[-1]:
            parts.pop()
        return parts

    return Compiled(split, array_of(STRING))


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # what groups capture is never used, and thousands of them cost 0.4 ms a byte
    options.max_mem = limits.INDEXING_PATTERN_BYTES
    return options


@compiles("join")
def _join(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not isinstance(type_, ArrayType):
        scope.expected(expression, "Array", type_)
    delimiter, to_text = unescape(expression.arguments[0]), text_of(type_.element)
    return Compiled(lambda values, run: run.text(delimiter.join(map(to_text, values))), STRING)


# `.`


@compiles("concat")
def _concat(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Collections of one type are appended, and a missing one is empty; else texts, and without one there is none."""
    parts = [scope.compile(operand, type_) for operand in expression.operands]
    for operand, part in zip(expression.operands, parts, strict=True):
        if part.type is None:
            scope.fail(expression, f"In {operand}: Attempting to concatenate a null value")
    types = [part.type for part in parts if part.type is not None]
    found = _common_type(types)
    needs_input = all(part.needs_input for part in parts)
    if found is None:
        return Compiled(_texts(parts, types), STRING, needs_input)
    fits = [fit or (lambda value: value) for fit in (fit_of(part, found) for part in types)]
    append = _arrays if isinstance(found, ArrayType) else _weights
    return Compiled(append(parts, fits), found, needs_input)


def _common_type(types: Sequence[DataType]) -> DataType | None:
    """The type of concatenated collections; None: they are texts."""
    found: DataType | None = types[0]
    for type_ in types:
        if not isinstance(type_, ArrayType | WeightedSetType):
            return None
        found = found and joined(found, type_)
    return found


def _texts(parts: Sequence[Compiled], types: Sequence[DataType]) -> Step:
    steps = [(part, text_of(type_)) for part, type_ in zip(parts, types, strict=True)]

    def concat(value: Value, run: Run) -> Value:
        texts: list[str] = []
        for part, to_text in steps:
            found = part.after(value, run)
            if found is None:
                return None
            texts.append(to_text(found))
        return run.text("".join(texts))

    return concat


def _arrays(parts: Sequence[Compiled], fits: Sequence[Fit]) -> Step:
    def append(value: Value, run: Run) -> Value:
        appended: list[Value] = []
        for part, fit in zip(parts, fits, strict=True):
            found = part.after(value, run)
            if found is not None:
                run.elements(len(found))
                appended += fit(found)
        return appended

    return append


def _weights(parts: Sequence[Compiled], fits: Sequence[Fit]) -> Step:
    def append(value: Value, run: Run) -> Value:
        appended: dict[Value, Value] = {}
        for part, fit in zip(parts, fits, strict=True):
            found = part.after(value, run)
            if found is not None:
                run.elements(len(found))
                appended.update(fit(found))
        return appended

    return append
