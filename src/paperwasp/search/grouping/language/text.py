"""The text of expressions and predicates as Vespa writes them: it labels lists of groups and outputs.

Vespa: toString of the classes in com.yahoo.search.grouping.request
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.float_text import double_text
from paperwasp.search.grouping.expression import Bucket, Constant, Expression, Infinite, Limit
from paperwasp.search.grouping.request import Filter

_IDENTIFIER: Final = compile_later(r"[A-Za-z][A-Za-z0-9_@]*")
_ESCAPES: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\", '"': '\\"'}


def expression_text(expression: Expression) -> str:
    """The text of an expression, without its label."""
    name, arguments = expression.function, expression.arguments
    match name:
        case "attribute":
            return _name(arguments[0])
        case "attribute_function":
            (named,) = arguments
            return f"attribute({expression_text(named) if isinstance(named, Expression) else _name(named)})"
        case "constant":
            return _argument(arguments[0])
        case "map":
            return f'{_name(arguments[0])}{{"{_name(arguments[1])}"}}{_name(arguments[2])}'
        case "map_source":
            return f"{_name(arguments[0])}{{attribute({_name(arguments[1])})}}{_name(arguments[2])}"
        case "array.at" | "interpolatedlookup":
            return f"{name}({_name(arguments[0])}, {_argument(arguments[1])})"
        case "summary":
            return f"summary({_name(arguments[0])})"
        case "quantiles":
            return f"quantiles([{','.join(map(_argument, arguments[1:]))}],{_argument(arguments[0])})"
        case "geo_distance.km" | "geo_distance.miles":
            return f"geo_distance({_listed(arguments)}).{name.partition('.')[2]}"
    return f"{name}({_listed(arguments)})"


def _name(argument: Expression | Constant | Bucket) -> str:
    """A name, or a part of one."""
    assert isinstance(argument, str)
    return argument


def _listed(arguments: Iterable[Expression | Constant | Bucket]) -> str:
    return ", ".join(map(_argument, arguments))


def _argument(argument: Expression | Constant | Bucket) -> str:
    if isinstance(argument, Expression):
        return expression_text(argument)
    return bucket_text(argument) if isinstance(argument, Bucket) else limit_text(argument)


def bucket_text(bucket: Bucket) -> str:
    """`bucket[low, high>`."""
    return f"bucket[{limit_text(bucket.low)}, {limit_text(bucket.high)}>"


def limit_text(limit: Limit) -> str:
    """The text of a literal, or of the limit of a bucket."""
    match limit:
        case Infinite():
            return "-inf" if limit.is_negative else "inf"
        case bool():
            return str(limit).lower()
        case int():
            return str(limit)
        case float():
            return double_text(limit)
        case str():
            return quoted(limit)
    return "{" + ",".join(str(byte - 256 if byte > 127 else byte) for byte in limit) + "}"


def quoted(text: str) -> str:
    """A string between double quotes; what is not printable ASCII is escaped, by units of UTF-16."""
    return f'"{"".join(map(_escape, text))}"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def label_text(label: str) -> str:
    """A label as it is written in `as(…)`: in quotes where it is not an identifier."""
    return label if _IDENTIFIER.fullmatch(label) else quoted(label)


def filter_text(predicate: Filter) -> str:
    """The text of a predicate."""
    kind, parts = predicate.kind, predicate.parts
    if kind in ("and", "or"):
        return f" {kind} ".join(_operand(part, kind) for part in parts)
    if kind == "not":
        return f"not {_operand(parts[0], kind)}"
    assert predicate.expression is not None
    inner = expression_text(predicate.expression)
    match kind, predicate.settings:
        case "regex", (str() as pattern,):
            return f"regex({quoted(pattern)}, {inner})"
        case "range", (low, high, bool() as with_low, bool() as with_high):
            limits = f"{limit_text(low)}, {limit_text(high)}"  # type: ignore[arg-type]
            return f"range({limits}, {inner}, {limit_text(with_low)}, {limit_text(with_high)})"
        case "in", values:
            return f"in({', '.join([inner, *(quoted(str(value)) for value in values)])})"
    return f"{kind}({inner})"


def _operand(part: Filter, outer: str) -> str:
    text = filter_text(part)
    is_weaker = part.kind == "or" or (part.kind == "and" and outer == "not")
    return f"({text})" if is_weaker and part.kind != outer else text
