"""Tensors as text: `{{x:a,y:1}:2.0}`, `{a:1,b:2}`, `[[1,2],[3,4]]`, `{a:[1,2]}`, hex dumps.

The type comes before the value, as in `tensor<float>(x[3]):[1,2,3]`, or is known from elsewhere.

Vespa: https://docs.vespa.ai/en/reference/ranking/tensor.html#tensor-literal-form
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

import orjson

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.document.tensor.types import Dimension, TensorType, is_assignable
from paperwasp.document.tensor.value import Labels, Tensor, TensorBuilder, hex_cells
from paperwasp.errors import LanguageError, Position, TooLarge

_SPACE: Final = compile_later(r"\s*")
_TYPE: Final = compile_later(r"tensor\s*(<[^>]*>\s*)?\([^)]*\)")
_NUMBER: Final = compile_later(
    r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE
)
_LABEL: Final = compile_later(r"[A-Za-z0-9_@][A-Za-z0-9_@$]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_JSON_NUMBERS: Final = frozenset({int, float})
_HEX: Final = compile_later(r"([\"']?)([0-9A-Fa-f]+)\1(?![\w.])")  # in quotes, as in the JSON of documents


def parse_tensor(text: str, type_: TensorType | None = None, source: str = "") -> Tensor:
    """The value that `text` writes; `type_`: what it must be, if known. Errors: LanguageError with the place in it;
    TooLarge; OutOfTime."""
    if len(text) > limits.LANGUAGE_TEXT_BYTES:
        raise TooLarge(f"a tensor literal has {len(text)} characters; at most {limits.LANGUAGE_TEXT_BYTES}")
    return _Reader(text, source).tensor(type_)


class _Reader:
    """A cursor over the text."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.at = 0

    def tensor(self, wanted: TensorType | None) -> Tensor:
        type_ = self.written_type(wanted) or wanted or self.type_of_first_address()
        start = self.at
        try:
            builder = TensorBuilder(type_)
        except ValueError as error:
            self.fail(str(error))
        self.value(builder)
        self.skip()
        if self.at < len(self.text):
            self.fail(f"expected the end, found {self.text[self.at]!r}")
        try:
            return builder.build()
        except ValueError as error:
            self.fail(str(error), start)

    def written_type(self, wanted: TensorType | None) -> TensorType | None:
        self.skip()
        match = _TYPE.match(self.text, self.at)
        if match is None:
            return None
        try:
            type_ = TensorType.parse(match.group())
        except ValueError as error:
            self.fail(str(error))
        if wanted is not None and not is_assignable(type_, wanted):
            self.fail(f"expected a {wanted}, found a {type_}")
        self.at = match.end()
        self.expect(":")
        return type_ if wanted is None or 0 in wanted.shape else wanted

    def type_of_first_address(self) -> TensorType:
        """Without a type all dimensions are mapped, and the first address names them."""
        start = self.at
        if not (self.accept("{") and self.accept("{")):
            self.fail("the value needs a type, as in tensor(x[2]):[1, 2]", start)
        names = []
        while not self.accept("}"):
            names.append(self.label())
            self.expect(":")
            self.label()
            self.accept(",")
        self.at = start
        if len(set(names)) < len(names):
            self.fail("a dimension is twice in an address", start)
        return TensorType.of(Dimension(name) for name in names)

    # Values

    def value(self, builder: TensorBuilder) -> None:
        type_ = builder.type
        if self.peek("{") and (type_.is_number or not self.begins_with_label()):
            self.cells(builder)
        elif type_.mapped:
            self.read_mapped(builder, ())
        else:
            self.subspace(builder, ())

    def begins_with_label(self) -> bool:
        start = self.at
        self.expect("{")
        found = not self.peek("{") and not self.peek("}")
        self.at = start
        return found

    def cells(self, builder: TensorBuilder) -> None:
        """`{ {dimension:label, …}:value, … }`"""
        self.expect("{")
        while not self.accept("}"):
            start = self.at
            labels, indexes = self.address(builder.type)
            self.expect(":")
            value = self.number()
            try:
                builder.cell(labels, indexes, value)
            except ValueError as error:
                self.fail(str(error), start)
            self.separate("}")

    def address(self, type_: TensorType) -> tuple[Labels, tuple[int, ...]]:
        start = self.at
        self.expect("{")
        found: dict[str, str] = {}
        while not self.accept("}"):
            name = self.label()
            if name in found:
                self.fail(f"dimension {name!r} is twice in an address", start)
            self.expect(":")
            found[name] = self.label()
            self.separate("}")
        if sorted(found) != [dimension.name for dimension in type_.dimensions]:
            self.fail(f"an address in {type_} names each of its dimensions", start)
        for dimension in type_.indexed:
            if not found[dimension.name].isdecimal() or len(found[dimension.name]) > 10:
                self.fail(f"{found[dimension.name]!r} is no index of dimension {dimension}", start)
        return tuple(found[d.name] for d in type_.mapped), tuple(int(found[d.name]) for d in type_.indexed)

    def read_mapped(self, builder: TensorBuilder, labels: Labels) -> None:
        """Reads `{ label:value, … }`, one level for each mapped dimension."""
        if len(labels) == len(builder.type.mapped):
            return self.subspace(builder, labels)
        self.expect("{")
        while not self.accept("}"):
            label = self.label()
            self.expect(":")
            self.read_mapped(builder, (*labels, label))
            self.separate("}")
        return None

    def subspace(self, builder: TensorBuilder, labels: Labels) -> None:
        type_ = builder.type
        self.skip()
        start = self.at
        hex_dump = _HEX.match(self.text, self.at) if type_.indexed else None
        try:
            if hex_dump:
                self.at = hex_dump.end()
                builder.subspace(labels, hex_cells(hex_dump.group(2), type_))
                return
            values = self.brackets(type_.shape) if type_.indexed else [self.number()]
            builder.subspace(labels, values)
        except ValueError as error:
            self.fail(str(error), start)

    def brackets(self, shape: tuple[int, ...]) -> list[float]:
        """Numbers in brackets, nested as the dimensions are; or flat, as was the rule once."""
        start = self.at
        values = self.plain_numbers()
        if values is not None:
            self.check_count(values, shape, start)
            return values
        self.expect("[")
        values = []
        nested = 0
        while not self.accept("]"):
            if len(shape) > 1 and self.peek("["):
                values += self.brackets(shape[1:])
                nested += 1
            else:
                values.append(self.number())
            self.separate("]")
        if nested and nested != shape[0]:
            self.fail(f"expected {shape[0]} parts in brackets, found {nested}", start)
        if not nested:
            self.check_count(values, shape, start)
        return values

    def plain_numbers(self) -> list[float] | None:
        """Reads numbers in brackets at once, if they are written as JSON has them; None: they are to be read one by
        one."""
        check_time()
        self.skip()
        end = self.text.find("]", self.at) + 1
        try:
            values = orjson.loads(self.text[self.at : end])
        except orjson.JSONDecodeError:
            return None
        kinds = set(map(type, values)) if type(values) is list else {None}
        if not kinds <= _JSON_NUMBERS or (int in kinds and "-0" in self.text[self.at : end]):  # a zero has a sign
            return None
        self.at = end
        return list(map(float, values)) if int in kinds else values

    def check_count(self, values: list[float], shape: tuple[int, ...], start: int) -> None:
        if len(shape) == 1 and len(values) != shape[0]:
            self.fail(f"expected {shape[0]} value(s), found {len(values)}", start)

    # Tokens

    def number(self) -> float:
        check_time()
        self.skip()
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            self.fail(f"expected a number, found {self.describe_found()}")
        self.at = match.end()
        return float(match.group())

    def label(self) -> str:
        self.skip()
        match = _LABEL.match(self.text, self.at)
        if match is None:
            self.fail(f"expected a label, found {self.describe_found()}")
        self.at = match.end()
        text = match.group()
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL) if text[0] in "\"'" else text

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # matches always

    def peek(self, character: str) -> bool:
        self.skip()
        return self.text.startswith(character, self.at)

    def accept(self, character: str) -> bool:
        found = self.peek(character)
        self.at += found
        return found

    def expect(self, character: str) -> None:
        if not self.accept(character):
            self.fail(f"expected {character!r}, found {self.describe_found()}")

    def separate(self, closing: str) -> None:
        """A comma, unless the list ends here."""
        if not self.accept(",") and not self.peek(closing):
            self.fail(f"expected ',' or {closing!r}, found {self.describe_found()}")

    def describe_found(self) -> str:
        return repr(self.text[self.at]) if self.at < len(self.text) else "the end"

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        offset = self.at if at is None else at
        line_start = self.text.rfind("\n", 0, offset) + 1
        position = Position(self.source, self.text.count("\n", 0, offset) + 1, offset - line_start + 1)
        raise LanguageError(message, position)
