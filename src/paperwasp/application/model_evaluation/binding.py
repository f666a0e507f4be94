"""From the texts of a request to values for the arguments of a function.

A text is a tensor in its literal form or in a JSON form of documents, or a number. A text that is none of these for its
argument is bound as a string: where the argument is a number, as the number that stands for the string; where it is a
tensor, it does not fit. Sizes that the type of an argument leaves open are those of the value.

Vespa: https://docs.vespa.ai/en/reference/ranking/tensor.html#tensor-literal-form; ModelsEvaluationHandler.java and
FunctionEvaluator.java
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from paperwasp import limits
from paperwasp.application.model_evaluation.functions import Function, NoSuchThing, NotEvaluated, Values
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import NUMBER, Dimension, TensorType, is_assignable
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import LanguageError
from paperwasp.ranking.text_hash import text_hash
from paperwasp.text.large_json import load_json

MISSING_VALUE: Final = "missing-value"
"""The parameter whose value is that of all arguments that have none. No argument has a name with a dash."""
_WRITTEN_TYPE: Final = compile_later(r"\s*(tensor\s*(?:<[^>]*>\s*)?\([^)]*\))\s*:")
_NUMBER_IN_BRACES: Final = compile_later(r"\s*(?:tensor\s*\(\s*\)\s*:)?\s*\{([^{}:]+)\}\s*")
_INDEX: Final = compile_later(r"([A-Za-z_]\w*)[\"']?\s*:\s*[\"']?(\d{1,10})\b")


def bound_values(function: Function, texts: Mapping[str, str]) -> Values:
    """A value for each argument. Errors: NoSuchThing for a value that does not fit; NotEvaluated for none; TooLarge."""
    missing = _missing_value(texts[MISSING_VALUE]) if MISSING_VALUE in texts else _number(math.nan)
    values = {}
    for name, type_ in function.arguments.items():
        if name in texts:
            values[name] = _bound(name, texts[name], type_)
        elif is_assignable(missing.type, type_):
            own = TensorType(missing.type.dimensions, type_.cell_type)
            cells = as_cells(missing.cells.astype(np.float64), type_.cell_type)
            values[name] = Tensor(own, missing.labels, cells)
        else:
            raise NotEvaluated(f"Argument '{name}' must be bound to a value of type {type_}")
    return values


def _bound(name: str, text: str, type_: TensorType) -> Tensor:
    value = tensor_in(text, type_)
    if value is not None:
        return value
    if type_.is_number:
        return _number(text_hash(text))
    raise NoSuchThing(f"'{name}' must be of type {type_}, not {NUMBER}")


def _missing_value(text: str) -> Tensor:
    try:
        return _number(_plain_number(text))
    except ValueError:
        pass
    try:
        return parse_tensor(text)
    except (LanguageError, MemoryError) as error:
        raise NoSuchThing(f"Illegal {MISSING_VALUE}: {error}") from None


def tensor_in(text: str, type_: TensorType) -> Tensor | None:
    """The value of this type that a text writes; None: it writes none. Errors: TooLarge, OutOfTime."""
    if type_.is_number:
        try:
            return _number(_plain_number(text))
        except ValueError:
            pass
    try:
        return _literal(text, type_)
    except (LanguageError, ValueError, MemoryError):
        pass
    try:
        return _json(text, type_)
    except (LanguageError, ValueError, MemoryError):
        return None


def _plain_number(text: str) -> float:
    """The number of `5`, `{5}` or `tensor():{5}`. Errors: ValueError."""
    if "_" in text:
        raise ValueError("no digits are parted in a number")
    braced = _NUMBER_IN_BRACES.fullmatch(text)
    return float(text if braced is None else braced[1])


def _number(value: float) -> Tensor:
    return Tensor(NUMBER, ((),), np.array([value]))


def _literal(text: str, type_: TensorType) -> Tensor:
    """Errors: LanguageError, ValueError."""
    written = _WRITTEN_TYPE.match(text)
    body = text
    if written is not None:
        given = TensorType.parse(written[1])
        if not is_assignable(_opened(given, type_), type_):
            raise ValueError("it is of another type")
        body = text[written.end() :]
        type_ = _with_sizes(type_, {d.name: d.size or 0 for d in given.indexed})
    if 0 in type_.shape:
        type_ = _with_sizes(type_, _sizes_in_text(body, type_))
    _check_size(type_)
    return parse_tensor(body, type_)


def _opened(given: TensorType, wanted: TensorType) -> TensorType:
    """The type that is written, whose own open sizes are those of the argument."""
    sizes = {d.name: d.size for d in wanted.indexed}
    dimensions = (d if d.size != 0 else Dimension(d.name, sizes.get(d.name, 0)) for d in given.dimensions)
    return TensorType.of(dimensions, given.cell_type)


def _with_sizes(type_: TensorType, sizes: Mapping[str, int]) -> TensorType:
    """The type with sizes where it leaves them open."""
    dimensions = (d if d.size != 0 else Dimension(d.name, sizes.get(d.name, 0)) for d in type_.dimensions)
    return TensorType.of(dimensions, type_.cell_type)


def _check_size(type_: TensorType) -> None:
    if 0 in type_.shape or math.prod(type_.shape) > limits.TENSOR_CELLS:
        raise ValueError("it has no cells, or too many")


def _sizes_in_text(body: str, type_: TensorType) -> dict[str, int]:
    """The least sizes that a literal without them needs: of nested brackets, or of the greatest indexes."""
    if body.lstrip().startswith("["):
        return _sizes_of(load_json(body.encode()), type_)
    sizes: dict[str, int] = {}
    for found in _INDEX.finditer(body):
        sizes[found[1]] = max(sizes.get(found[1], 0), int(found[2]) + 1)
    return sizes


def _sizes_of(values: Any, type_: TensorType) -> dict[str, int]:
    """The sizes of a dense tensor whose cells are nested in arrays, or all in one."""
    shape: list[int] = []
    at = values
    while isinstance(at, list):
        shape.append(len(at))
        at = at[0] if at else None
    names = [dimension.name for dimension in type_.indexed]
    if len(shape) == 1 and len(names) > 1 and type_.shape.count(0) == 1:
        rest = math.prod(size for size in type_.shape if size)
        shape = [size or len(values) // rest for size in type_.shape]
    return dict(zip(names, shape, strict=False))


def _json(text: str, type_: TensorType) -> Tensor:
    """Errors: LanguageError, ValueError."""
    value = load_json(text.encode())
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        given = TensorType.parse(value["type"])
        if not is_assignable(_opened(given, type_), type_):
            raise ValueError("it is of another type")
        type_ = _with_sizes(type_, {d.name: d.size or 0 for d in given.indexed})
        value = {key: each for key, each in value.items() if key != "type"}
    if 0 in type_.shape:
        type_ = _with_sizes(type_, dict(_sizes_in_json(value, type_)))
    _check_size(type_)
    return tensor_of(value, type_)


def _sizes_in_json(value: Any, type_: TensorType) -> Iterator[tuple[str, int]]:
    if not isinstance(value, dict):
        return
    if "values" in value:
        yield from _sizes_of(value["values"], type_).items()
    cells = value.get("cells")
    sizes: dict[str, int] = {}
    for cell in cells if isinstance(cells, list) else ():
        address = cell.get("address") if isinstance(cell, dict) else None
        for name, label in address.items() if isinstance(address, dict) else ():
            if str(label).isdecimal() and len(str(label)) <= 10:
                sizes[name] = max(sizes.get(name, 0), int(label) + 1)
    yield from sizes.items()
