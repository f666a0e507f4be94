"""From tokens to expressions.

Vespa: GroupingParser.jj, MathResolver
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from paperwasp.errors import LanguageError
from paperwasp.search.grouping.language import operation
from paperwasp.search.grouping.language.operation import bucket_text, expression_text
from paperwasp.search.grouping.language.reader import TokenReader, unquoted
from paperwasp.search.grouping.request import Bucket, Constant, Expression, Infinite, Limit

# The buckets of `predefined`: each from its low limit, with it, to its high one, without it.
#
# A low limit that is left out, and a high one that is in, become the next larger value.
# Vespa: BucketResolver, BucketValue, PredefinedFunction


_MAX_LONG: Final = 2**63 - 1
_TYPES: Final = {int: "LongValue", float: "DoubleValue", str: "StringValue", bytes: "RawValue"}


def next_value(value: Limit) -> Limit:
    """The least value that is larger."""
    match value:
        case int():
            return min(value + 1, _MAX_LONG)
        case float():
            return math.nextafter(value, math.inf)
        case str():
            return value + " "
        case bytes():
            return value + b"\0"
    return value


class BucketReader:
    """Takes buckets as they are written. Errors: LanguageError for limits of several types, or out of order."""

    def __init__(self) -> None:
        self._last: Limit | None = None
        self.buckets: list[Bucket] = []

    def add(self, low: Limit, has_low: bool, high: Limit, has_high: bool) -> None:
        """Adds a bucket; `has_low`, `has_high`: whether the limit is in it."""
        for limit in (low, high):
            self._check_type(limit)
            self._last = limit
        bucket = Bucket(low if has_low else next_value(low), next_value(high) if has_high else high)
        if _is_below(bucket.high, bucket.low):
            raise LanguageError("Bucket to-value cannot be less than from-value.")
        self.buckets.append(bucket)

    def _check_type(self, limit: Limit) -> None:
        last = self._last
        if last is None:
            return
        if isinstance(last, Infinite) or isinstance(limit, Infinite):
            if isinstance(last, Infinite) and isinstance(limit, Infinite):
                raise LanguageError("Bucket type mismatch, cannot both be infinity.")
        elif type(last) is not type(limit):
            names = f"expected '{_TYPES[type(last)]}' got '{_TYPES[type(limit)]}'"
            raise LanguageError(f"Bucket type mismatch, {names}.")

    def finish(self) -> Sequence[Bucket]:
        """All buckets. Errors: LanguageError where they do not rise."""
        types = {type(limit) for bucket in self.buckets for limit in (bucket.low, bucket.high)} - {Infinite}
        if len(types) > 1:
            raise LanguageError(f"Bucket type mismatch, got {' and '.join(sorted(_TYPES[each] for each in types))}.")
        for bucket, following in zip(self.buckets, self.buckets[1:], strict=False):
            if _is_below(following.low, bucket.high):
                texts = f"{bucket_text(bucket)} before {bucket_text(following)}"
                raise LanguageError(f"Buckets must be monotonically increasing, got {texts}.")
        return self.buckets


def _is_below(value: Limit, other: Limit) -> bool:
    """Whether a limit is smaller than another of the same type. Bytes have signs, as in Java."""
    if isinstance(value, Infinite) or isinstance(other, Infinite):
        low = isinstance(value, Infinite) and value.is_negative
        return (low or (isinstance(other, Infinite) and not other.is_negative)) and value != other
    if isinstance(value, bytes) and isinstance(other, bytes):
        return _signed(value) < _signed(other)
    if isinstance(value, str) and isinstance(other, str):
        return value.encode("utf-16-be", "surrogatepass") < other.encode("utf-16-be", "surrogatepass")
    return value < other  # type: ignore[operator]


def _signed(value: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in value]


_OPERATORS: Final = {"+": (0, "add"), "-": (1, "sub"), "/": (2, "div"), "%": (3, "mod"), "*": (4, "mul")}
"""Symbol → how strongly it binds, and its function. Each binds more strongly than the one before."""
_STRENGTHS: Final = ("PRIMARY", "SECONDARY", "TERTIARY", "QUATERNARY", "IDENTICAL")
_LEAST_LONG: Final = 2**63
T = TypeVar("T")
_Argument = Expression | Constant | Bucket


class Aliases:
    """The aliases of one operation; those of the operations around it are found, too."""

    def __init__(self, outer: Aliases | None = None) -> None:
        self._outer = outer
        self._known: dict[str, tuple[Expression, int]] = {}

    def put(self, name: str, expression: Expression, size: int) -> None:
        """`size`: of functions and values."""
        self._known[name] = expression, size

    def get(self, name: str) -> tuple[Expression, int] | None:
        scope: Aliases | None = self
        while scope is not None:
            if name in scope._known:
                return scope._known[name]
            scope = scope._outer
        return None


class ExpressionParser:
    """Reads expressions of one operation. Errors: LanguageError, in Vespa's words where it has some."""

    def __init__(self, reader: TokenReader, aliases: Aliases) -> None:
        self._reader = reader
        self._aliases = aliases

    def listed(self) -> list[Expression]:
        """Expressions with commas between them."""
        found = [self.expression()]
        while self._reader.accept(","):
            found.append(self.expression())
        return found

    def expression(self) -> Expression:
        """An expression, with a sign before it and a label behind it where they are."""
        reader = self._reader
        with reader.within():
            is_negative = reader.at_symbol("-")
            if is_negative or reader.at_symbol("+"):
                reader.expect("-", "+")
            if is_negative and reader.at_number() and reader.current.text == str(_LEAST_LONG):
                reader.next()
                reader.skip_space()
                found = self._made("constant", -_LEAST_LONG)
            else:
                found = self._aliased()
                found = self._made("neg", found) if is_negative else found
            return Expression(found.function, found.arguments, self.label() or found.label)

    def label(self) -> str:
        """`as(…)`; empty: there is none."""
        reader = self._reader
        if not reader.at_word("as"):
            return ""
        reader.next()
        reader.expect("(")
        text = reader.string()
        reader.expect(")")
        return text

    def _aliased(self) -> Expression:
        reader = self._reader
        if not reader.at_symbol("$"):
            return self._infix()
        reader.next()
        name = reader.identifier()
        if reader.accept("="):
            before = reader.size
            self._aliases.put(name, self._infix(), reader.size - before)
        known = self._aliases.get(name)
        if known is None:
            raise LanguageError(f"Unknown alias '${name}'")
        reader.count(known[1])
        return known[0]

    def _infix(self) -> Expression:
        reader = self._reader
        operands = [self._value()]
        operators: list[str] = []
        while reader.at_symbol(*_OPERATORS) or reader.at_symbol("-inf"):
            symbol = reader.expect(*_OPERATORS)
            while operators and _OPERATORS[operators[-1]][0] >= _OPERATORS[symbol][0]:
                self._reduce(operands, operators)
            operators.append(symbol)
            operands.append(self._value())
        while operators:
            self._reduce(operands, operators)
        return operands[0]

    def _reduce(self, operands: list[Expression], operators: list[str]) -> None:
        right = operands.pop()
        operands[-1] = self._made(_OPERATORS[operators.pop()][1], operands[-1], right)

    def _made(self, function: str, *arguments: _Argument) -> Expression:
        self._reader.count()
        return Expression(function, arguments)

    def _value(self) -> Expression:
        reader = self._reader
        token = reader.current
        if reader.accept("("):
            found = self.expression()
            reader.expect(")")
            return found
        if token.kind == "string":
            reader.next()
            reader.skip_space()
            return self._made("constant", unquoted(token))
        if token.kind == "parameter":
            return self._made("constant", reader.parameter()[1])
        if reader.at_number():
            return self._made("constant", reader.literal())
        following = reader.peek()
        if token.kind == "identifier" and following.kind == "symbol":
            if token.text in operation.NAMESPACES and following.text == ".":
                name = f"{token.text}.{reader.peek(2).text}"
                if name in operation.ALL and reader.peek(3).text == "(":
                    reader.next()
                    reader.next()
                    return self._call(name)
            elif token.text in operation.ALL and following.text == "(":
                return self._call(token.text)
        return self._attribute()

    def _call(self, name: str) -> Expression:
        reader = self._reader
        reader.next()
        reader.expect("(")
        arguments = self._own(name) if name in operation.OWN else self._arguments(name)
        reader.expect(")")
        if name == "attribute":
            name = "attribute_function"
        elif name == "geo_distance":
            reader.expect(".")
            if not reader.at_word("km", "miles"):
                reader.fail('"km"', '"miles"')
            name = f"geo_distance.{reader.identifier()}"
        return self._made(name, *arguments)

    def _arguments(self, name: str) -> list[_Argument]:
        reader = self._reader
        if name in operation.NONE:
            return []
        if name in operation.OF_ATTRIBUTES:
            return [self._name(), *self._after(self.expression)]
        if name in operation.BITS:
            inner = self.expression()
            reader.expect(",")
            bits, most = reader.number(), operation.BITS[name]
            if not 1 <= bits <= most:
                raise LanguageError(f"{name} requires a number of bits between 1 and {most}, but got {int(bits)}")
            return [inner, int(bits)]
        arguments: list[_Argument] = [self.expression()]
        if name in operation.TWO or name in operation.MANY:
            arguments += self._after(self.expression)
        if name in operation.MANY or name in operation.BOTH:
            while reader.accept(","):
                arguments.append(self.expression())
        return arguments

    def _after(self, read: Callable[[], T]) -> list[T]:
        self._reader.expect(",")
        return [read()]

    def _own(self, name: str) -> list[_Argument]:
        """The arguments of a function that are like those of no other."""
        reader = self._reader
        match name:
            case "attribute":
                found = self._attribute()
                return [found if found.function != "attribute" else found.arguments[0]]
            case "summary":
                return ["" if reader.at_symbol(")") else reader.string()]
            case "quantiles":
                return self._quantiles()
            case "geo_distance":
                if not reader.at_call("attribute"):
                    reader.fail('"attribute"')
                place = self._value()
                if isinstance(place.arguments[0], Expression):
                    raise LanguageError(f"geo_distance takes a position, not {expression_text(place)}")
                return [place, *self._after(self.expression), *self._after(self.expression)]
        inner = self.expression()
        match name:
            case "debugwait":
                wait = self._after(reader.number)
                return [inner, float(wait[0]), *self._after(reader.truth)]
            case "fixedwidth":
                return [inner, *self._after(reader.number)]
            case "uca":
                return [inner, *self._after(reader.string), *self._strength()]
        buckets = BucketReader()
        reader.expect(",")
        self._bucket(buckets)
        while reader.accept(","):
            self._bucket(buckets)
        return [inner, *buckets.finish()]

    def _strength(self) -> list[str]:
        if not self._reader.accept(","):
            return []
        strength = self._reader.string()
        if strength not in _STRENGTHS:
            raise LanguageError(f"Not a valid UCA strength: {strength}")
        return [strength]

    def _quantiles(self) -> list[_Argument]:
        reader = self._reader
        reader.expect("[")
        wanted = [reader.number()]
        while reader.accept(","):
            wanted.append(reader.number())
        reader.expect("]")
        for quantile in wanted:
            if not 0 <= quantile <= 1:
                raise LanguageError(f"Quantile must be between 0 and 1, got {quantile}")
        inner = self._after(self.expression)
        reader.count(len(wanted))
        return [*inner, *map(float, wanted)]

    def _bucket(self, buckets: BucketReader) -> None:
        reader = self._reader
        if not reader.at_word("bucket"):
            reader.fail('"bucket"')
        reader.next()
        has_low = reader.expect("(", "[", "<") != "<"
        reader.count()
        low = self._limit(Infinite(is_negative=True))
        high, is_single = low, True
        if reader.accept(","):
            high, is_single = self._limit(Infinite(is_negative=False)), False
        has_high = reader.expect(")", "]", ">") == "]"
        buckets.add(low, has_low, high, has_high or is_single)

    def _limit(self, infinite: Infinite) -> Limit:
        reader = self._reader
        if reader.at_symbol("-inf") or reader.at_word("inf"):
            if (reader.current.text == "-inf") != infinite.is_negative:
                reader.fail("<INTEGER>", "<FLOAT>", "<STRING>")
            reader.next()
            reader.skip_space()
            return infinite
        if reader.accept("{"):
            return self._raw()
        if reader.at_number() or reader.at_symbol("-"):
            sign = "-" if reader.at_symbol("-") and reader.next() else ""
            return reader.literal(sign)
        if reader.current.kind == "parameter":
            reader.fail("<INTEGER>", "<FLOAT>", "<STRING>")
        return reader.string()

    def _raw(self) -> bytes:
        reader = self._reader
        found = bytearray()
        while True:
            token = reader.next()
            if token.kind == "string":
                found += token.text.encode("utf-8", "replace")
            elif token.kind == "integer" and token.text.isdecimal() and int(token.text[:9]) < 128:
                found.append(int(token.text))
            elif token.kind == "integer":
                raise LanguageError(f'Value out of range. Value:"{token.text}" Radix:10')
            else:
                reader.fail("<INTEGER>", "<STRING>")
            if reader.expect(",", "}") == "}":
                return bytes(found)

    def _name(self) -> str:
        """The name of an attribute, with dots."""
        reader = self._reader
        name = reader.identifier()
        while reader.at_symbol("."):
            reader.next()
            name += f".{reader.identifier()}"
        return name

    def _attribute(self) -> Expression:
        """An attribute, or what a map has for a key: `map{"key"}.part`, `map{attribute(key)}.part`."""
        reader = self._reader
        name = self._name()
        if not reader.accept("{"):
            return self._made("attribute", name)
        function, key = "map", ""
        if reader.at_call("attribute"):
            reader.next()
            reader.expect("(")
            function, key = "map_source", self._name()
            reader.expect(")")
        else:
            key = reader.string()
        reader.expect("}")
        suffix = ""
        while reader.at_symbol("."):
            reader.next()
            suffix += f".{reader.identifier()}"
        return self._made(function, name, key, suffix)
