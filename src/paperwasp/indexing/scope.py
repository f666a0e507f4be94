"""The scope in which expressions are compiled (`Scope`), that of a run (`Run`), the registry of compilers, and the
values of scripts.

A compiled expression takes the value of the expression before it, None where there is none, and gives its own. One that
`needs_input` is not run where there is no value: there is none after it either.

Values become text as Java writes it: the `toString` of com.yahoo.document.datatypes is what scripts concatenate, join
and parse.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.numbers import double_text, half, single, single_text
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    POSITION,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    MapType,
    NumericType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    array_of,
)
from paperwasp.errors import LanguageError, Timeout
from paperwasp.indexing.components import BUILT_IN, Components, Context, TimeLeft, no_end
from paperwasp.schema.indexing_tree import Expression

Value = Any
"""A typed value of a document, as `document.types` says, or None."""


class ScriptError(ValueError):
    """A value with which a script cannot go on."""


class Run(Struct):
    """One document, or the values of one update, on the way through the scripts of its schema."""

    inputs: Mapping[str, Value]
    id: DocumentId
    now_seconds: int
    random: Callable[[int], int]
    """Returns a whole number from 0 to below a bound."""
    is_update: bool = False
    language: str = ""
    """The tag that `set_language` has set; empty: none."""
    variables: MutableMapping[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    characters_left: int = limits.INDEXING_CHARACTERS
    """The characters of text that the scripts may still put together, for all fields."""
    elements_left: int = limits.INDEXING_ELEMENTS
    time_left: TimeLeft = no_end
    """The time that the operation still has, for components."""

    def text(self, text: str) -> str:
        """A text that was put together. Errors: ScriptError where there are too many."""
        self.characters_left -= len(text)
        if self.characters_left < 0:
            raise ScriptError(f"the scripts make more than {limits.INDEXING_CHARACTERS} characters of one document")
        return text

    def elements(self, count: int) -> None:
        """Counts elements of collections that were made. Errors: ScriptError where there are too many."""
        self.elements_left -= count
        if self.elements_left < 0:
            raise ScriptError(f"the scripts make more than {limits.INDEXING_ELEMENTS} elements of one document")


Step = Callable[[Value, Run], Value]


class Compiled(NamedTuple):
    """One expression, ready to run."""

    run: Step
    type: DataType | None
    """The type of its value; None: it never has one."""
    needs_input: bool = True

    def after(self, value: Value, run: Run) -> Value:
        """Return the value after `value`."""
        return None if value is None and self.needs_input else self.run(value, run)


class Scope(Struct):
    """The scope of the expressions of one script while they are compiled."""

    owner: str
    """The field that the script makes."""
    type: DataType
    """The type that is needed at the end: that of the field, or of what the expressions after this one need."""
    sources: Mapping[str, DataType]
    """The fields that `input` may name."""
    components: Components = BUILT_IN
    document_type: str = ""
    variables: dict[str, DataType] = field(default_factory=dict)
    warnings: list[LanguageError] = field(default_factory=list)
    """Of a script that can be compiled and does not work as it is, placed in the script."""

    def compile(self, expression: Expression, type_: DataType | None) -> Compiled:
        """The expression after a value of `type_` (None: no value). Errors: LanguageError, placed in the script."""
        return COMPILERS[expression.keyword](expression, type_, self)

    @property
    def destination(self) -> str:
        """The field that the script makes, with its document type."""
        return f"{self.document_type}.{self.owner}"

    def context(self, run: Run, arguments: tuple[str, ...]) -> Context:
        """The context in which a component is called. Errors: Timeout where the time of the operation is over."""
        left = run.time_left()
        if left <= 0:
            raise Timeout("the operation's time is over")
        return Context(self.destination, run.language, arguments, left)

    def fail(self, expression: Expression, message: str) -> NoReturn:
        raise LanguageError(f"For expression '{expression}': {message}", expression.position)

    def warn(self, expression: Expression, message: str) -> None:
        """Has a deployment warn of an expression."""
        self.warnings.append(LanguageError(f"For expression '{expression}': {message}", expression.position))

    def expected(self, expression: Expression, what: str, type_: DataType | None) -> NoReturn:
        self.fail(expression, f"Expected {what} input, {f'got {type_}' if type_ else 'but no input is specified'}")

    def before(self, following: Sequence[Expression]) -> Scope:
        """The scope of an expression that these follow."""
        needed = self.type
        for expression in reversed(following):
            if (of := NEEDED.get(expression.keyword)) is not None:
                needed = of(needed)
        return self if needed is self.type else replace(self, type=needed)


NEEDED: Final[dict[str, Callable[[DataType], DataType]]] = {}
"""Keyword → the type that is needed before it, by the one that is needed after it; others change none."""
Compiler = Callable[[Expression, DataType | None, Scope], Compiled]
COMPILERS: Final[dict[str, Compiler]] = {}
"""Keyword → what compiles it; filled by the modules of the families, which `compiler` imports."""


def compiles(*keywords: str) -> Callable[[Compiler], Compiler]:
    """Registers a compiler for expressions of these keywords."""

    def register(compiler: Compiler) -> Compiler:
        COMPILERS.update(dict.fromkeys(keywords, compiler))
        return compiler

    return register


# Values

ToText = Callable[[Value], str]
Fit = Callable[[Value], Value]
_WIDTHS: Final[dict[DataType, int]] = {BYTE: 0, INT: 1, LONG: 2, FLOAT16: 3, FLOAT: 4, DOUBLE: 5}
"""Numeric types, each holding those before it, as far as Java widens them."""
_ROUNDED: Final[dict[DataType, Callable[[float], float]]] = {FLOAT16: half, FLOAT: single}


_WHITESPACE: Final = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680" + "".join(
    map(chr, (*range(0x2000, 0x2007), *range(0x2008, 0x200B), 0x2028, 0x2029, 0x205F, 0x3000))
)
"""The characters for which Java's Character.isWhitespace is true."""


def is_blank(text: str) -> bool:
    """Tell whether a text is empty or all whitespace, as Java's String.isBlank does."""
    return not text.strip(_WHITESPACE)


def is_number(type_: DataType | None) -> bool:
    return isinstance(type_, NumericType) and type_ != BOOL


def is_text(type_: DataType | None) -> bool:
    return type_ in (STRING, URI)


def is_float(type_: DataType | None) -> bool:
    return type_ in (FLOAT16, FLOAT, DOUBLE)


def primitive_of(type_: DataType) -> DataType:
    """The type of the elements, of an array or a weighted set; any other itself."""
    return primitive_of(type_.inner[0]) if isinstance(type_, ArrayType | WeightedSetType) else type_


# Text


def text_of(type_: DataType) -> ToText:
    """The function that writes a value of the type as text."""
    match type_:
        case ArrayType():
            element = text_of(type_.element)
            return lambda values: f"[{', '.join(map(element, values))}]"
        case WeightedSetType() | MapType():
            key, item = text_of(type_.inner[0]), text_of(type_.inner[1] if isinstance(type_, MapType) else INT)
            return lambda entries: f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in entries.items())}}}"
        case StructType():
            members = {name: text_of(inner) for name, inner in type_.fields}
            return lambda value: f"{{{', '.join(f'{name}={members[name](v)}' for name, v in value.items())}}}"
    return _TEXTS.get(type_.name, str)


_TEXTS: Final[dict[str, ToText]] = {
    BOOL.name: lambda value: "true" if value else "false",
    STRING.name: lambda value: value,
    URI.name: lambda value: value,
    FLOAT16.name: single_text,
    FLOAT.name: single_text,
    DOUBLE.name: double_text,
    RAW.name: lambda value: base64.b64encode(value).decode(),
    POSITION.name: lambda place: f"{place[0]};{place[1]}",
}


# Types


def joined(first: DataType | None, second: DataType | None) -> DataType | None:
    """The type that values of both can be given; None: there is none."""
    if first is None or second is None or first == second:
        return first or second
    if is_number(first) and is_number(second):
        return max(first, second, key=lambda type_: _WIDTHS[type_])
    if is_text(first) and is_text(second):
        return STRING
    if isinstance(first, ArrayType) and isinstance(second, ArrayType):
        element = joined(first.element, second.element)
        return element and array_of(element)
    return None


def fit_of(source: DataType, target: DataType) -> Fit | None:
    """Return the function that makes a value of `source` one of `target`, without loss; None: it cannot be."""
    if source == target or (is_text(source) and is_text(target)):
        return _same
    if is_number(source) and is_number(target):
        return _number_fit(source, target)
    match source, target:
        case ArrayType(), ArrayType():
            element = fit_of(source.element, target.element)
            if element is None or element is _same:
                return element
            return lambda values: [element(value) for value in values]
        case WeightedSetType(), WeightedSetType():
            key = fit_of(source.key, target.key)
            if key is None or key is _same:
                return key
            return lambda entries: {key(each): weight for each, weight in entries.items()}
        case TensorFieldType(), TensorFieldType():
            return _tensor_fit(source.tensor, target.tensor)
        case (StructType(), StructType()) | (MapType(), MapType()) if source.name == target.name:
            return _same
    return None


def _same(value: Value) -> Value:
    return value


def _number_fit(source: DataType, target: DataType) -> Fit | None:
    if _WIDTHS[source] > _WIDTHS[target]:
        return None
    if not is_float(target) or is_float(source):
        return _same
    rounded = _ROUNDED.get(target)
    return float if rounded is None else lambda value: rounded(float(value))


def _tensor_fit(source: TensorType, target: TensorType) -> Fit | None:
    """Cells of any type become cells of another; dimensions must be the same."""
    if source.dimensions != target.dimensions:
        return None

    def fit(tensor: Tensor) -> Tensor:
        cells: Any = as_cells(tensor.cells.astype(np.float64), target.cell_type)
        return Tensor(target, tensor.labels, cells)

    return fit
