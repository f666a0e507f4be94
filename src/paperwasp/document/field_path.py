"""Field paths: the place in a field that an update is about, as the name of a member of its JSON.

    words{apple}  words{"two words"}  scores[3]  person.name  people{7}.phones[0]
    people.name   each element of an array of structs        words.value  each value of a map, each weight of a set
    grid[$x][$x]  each element, the variable meaning the same index wherever it is

In quotes, `\\"` is a quotation mark and `\\\\` a backslash.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-field-path.html
Differs: the keys of a map (`.key`) cannot be updated, and between two parts of a path stands what the grammar says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.document.converters import converter_of
from paperwasp.document.shown import render_of
from paperwasp.document.types import (
    INT,
    POSITION,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
    unroll,
)
from paperwasp.document.updates import Each, Index, Key, Match, Member, Step

_IS_PATH: Final = compile_later(r"[.\[{]")
_NAME: Final = compile_later(r"[^.\[{]*")
_QUOTED_KEY: Final = compile_later(r'\{\s*"([^"\\]*(?:\\["\\][^"\\]*)*)"\s*\}')
_BARE_KEY: Final = compile_later(r"\{\s*([^}\s][^}]*|)\}")
_INDEX: Final = compile_later(r"\[(?:([0-9]{1,10})|\$([^\]]*))\]")
_ESCAPED: Final = compile_later(r"\\(.)")
_LARGEST_INDEX: Final = 2**31 - 1


class FieldPath(NamedTuple):
    """A place in a field, and the type of what is there."""

    field: str
    steps: tuple[Step, ...]
    data_type: DataType


def is_field_path(name: str) -> bool:
    """Return whether a member of an update's `fields` is a path, not a field's name."""
    return _IS_PATH.search(name) is not None


def parse_field_path(text: str, fields: Mapping[str, DataType], document_type: str) -> FieldPath:
    """The place that `text` names in documents of this type. Errors: ValueError."""
    at = _end(_NAME, text, 0)
    field = text[:at]
    data_type = fields.get(field)
    if data_type is None:
        raise ValueError(f"Field '{field}' not found in document type '{document_type}'")
    steps: list[Step] = []
    while at < len(text):
        if len(steps) >= limits.FIELD_PATH_STEPS:
            raise ValueError(f"A field path has at most {limits.FIELD_PATH_STEPS} steps")
        if isinstance(data_type, ArrayType) and text[at] in ".{":
            steps.append(Each())
        else:
            at, step = _step(text, at, data_type)
            steps.append(step)
        data_type = type_after(steps[-1], data_type)
    return FieldPath(field, tuple(steps), data_type)


def type_after(step: Step, data_type: DataType) -> DataType:
    """The type of what a step leads to. Errors: ValueError for a step that this type does not have."""
    match data_type, step:
        case ArrayType(), Index() | Each() | Match():
            return unroll(data_type.element)
        case MapType(), Key() | Each():
            return unroll(data_type.value)
        case WeightedSetType(), Key() | Each() | Match():
            return INT
        case StructType(), Member():
            found = data_type.field(step.name)
            if found is None:
                raise ValueError(f"Field '{step.name}' not found in struct '{data_type}'")
            return unroll(found)
    if data_type == POSITION and isinstance(step, Member) and step.name in ("x", "y"):
        return INT
    raise ValueError(f"'{data_type}' does not support further recursion in structure")


def types_along(steps: Sequence[Step], data_type: DataType) -> Iterator[DataType]:
    """The type that each step starts from, then that of the place itself."""
    yield data_type
    for step in steps:
        data_type = type_after(step, data_type)
        yield data_type


def write_field_path(field: str, steps: Sequence[Step], data_type: DataType) -> str:
    """The text of a path, without `Match`; `data_type`: of the field. Parsing it gives the same steps."""
    parts = [field]
    for step, type_, after in zip(steps, types_along(steps, data_type), [*steps[1:], None], strict=False):
        parts.append(_as_text(step, type_, after))
    return "".join(parts)


def _as_text(step: Step, data_type: DataType, after: Step | None) -> str:
    match step:
        case Member():
            return f".{step.name}"
        case Index():
            return f"[{step.index}]"
        case Key() if isinstance(data_type, MapType | WeightedSetType):
            return f"{{{_quote(_key_text(step.key, data_type.key))}}}"
        case Each() if step.variable:
            return f"[${step.variable}]" if isinstance(data_type, ArrayType) else f"{{${step.variable}}}"
        case Each():
            return "" if isinstance(data_type, ArrayType) else ".value"
    raise ValueError(f"no step of a field path: {step}")


def _key_text(key: Any, data_type: DataType) -> str:
    render = render_of(data_type)
    shown = key if render is None else render(key)
    return shown if isinstance(shown, str) else orjson.dumps(shown, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _step(text: str, at: int, data_type: DataType) -> tuple[int, Step]:
    """The step that begins at this place, and where it ends."""
    read = _STEPS.get(text[at])
    if read is None:
        raise ValueError(f"Expected '.', '[' or '{{' at '{text[at : at + 40]}'")
    return read(text, at, data_type)


def _member(text: str, at: int, data_type: DataType) -> tuple[int, Step]:
    end = _end(_NAME, text, at + 1)
    name = text[at + 1 : end]
    if not isinstance(data_type, MapType | WeightedSetType):
        return end, Member(name)
    if name == "value":
        return end, Each()
    if name == "key":
        raise ValueError(f"The keys of a '{data_type}' cannot be updated")
    raise ValueError(f"'{data_type.key}' does not support further recursion in structure: {name}")


def _key(text: str, at: int, data_type: DataType) -> tuple[int, Step]:
    if not isinstance(data_type, MapType | WeightedSetType):
        raise ValueError(f"'{data_type}' has no keys: {text[at : at + 40]}")
    if found := _QUOTED_KEY.match(text, at):
        key = _ESCAPED.sub(r"\1", found[1])
    elif text[at + 1 :].lstrip().startswith('"'):
        raise ValueError(f"Escaped key '{text[at : at + 40]}' is incomplete. No matching '\"'")
    elif found := _BARE_KEY.match(text, at):
        key = found[1]
        if key.startswith("$"):
            return found.end(), Each(_variable(key[1:]))
    else:
        raise ValueError(f"Key '{text[at : at + 40]}' is incomplete. No matching '}}'")
    try:
        return found.end(), Key(converter_of(data_type.key)(key))
    except ValueError as error:
        raise ValueError(f'key "{key}": {error}') from None


def _index(text: str, at: int, data_type: DataType) -> tuple[int, Step]:
    if not isinstance(data_type, ArrayType):
        raise ValueError(f"'{data_type}' has no elements: {text[at : at + 40]}")
    found = _INDEX.match(text, at)
    if found is None:
        if "]" not in text[at:]:
            raise ValueError("Array subscript must be closed with ]")
        raise ValueError(f'For input string: "{text[at + 1 : text.index("]", at)]}"')
    if found[1] is None:
        return found.end(), Each(_variable(found[2]))
    if int(found[1]) > _LARGEST_INDEX:
        raise ValueError(f'For input string: "{found[1]}"')
    return found.end(), Index(int(found[1]))


_STEPS: Final[Mapping[str, Callable[[str, int, DataType], tuple[int, Step]]]] = {
    ".": _member,
    "{": _key,
    "[": _index,
}
"""The character that begins a step → the reader of the step."""


def _variable(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(f"'${name}' is no variable")
    return name


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
