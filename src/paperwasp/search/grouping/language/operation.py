"""The operations of a statement, the functions in them, their levels, and the text of their expressions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from paperwasp.base.patterns import compile_later
from paperwasp.document.numbers import double_text
from paperwasp.errors import LanguageError
from paperwasp.search.grouping.request import Bucket, Constant, Expression, Filter, Infinite, Limit

# The functions of the grouping language, by what they take, and which of them aggregate.
#
# Vespa: GroupingParser.jj


_ONE: Final = """
    neg normalizesubject reverse size sort stddev strlen sum first todouble tolong toraw tostring
    time.date time.dayofmonth time.dayofweek time.dayofyear time.hourofday time.minuteofhour time.monthofyear
    time.secondofminute time.year math.exp math.log math.log1p math.log10 math.sin math.asin math.cos math.acos
    math.tan math.atan math.sqrt math.sinh math.asinh math.cosh math.acosh math.tanh math.atanh math.floor math.cbrt
    zcurve.x zcurve.y
"""
ONE: Final = frozenset(_ONE.split())
"""Functions of one expression."""
TWO: Final = frozenset(("math.pow", "math.hypot", "argmin", "argmax"))
"""Functions of two expressions."""
MANY: Final = frozenset(("add", "and", "cat", "div", "mod", "mul", "or", "strcat", "sub"))
"""Functions of two expressions or more."""
BOTH: Final = frozenset(("avg", "max", "min", "xor"))
"""Aggregators where they have one expression, functions where they have more."""
NONE: Final = frozenset(("count", "docidnsspecific", "now", "relevance"))
BITS: Final = {"md5": 128, "xorbit": 64}
"""Functions of an expression and a number of bits, and the largest number of bits that each takes."""
OF_ATTRIBUTES: Final = frozenset(("array.at", "interpolatedlookup"))
"""Functions of the name of an attribute and an expression."""
OWN: Final = frozenset(
    ("attribute", "debugwait", "fixedwidth", "predefined", "quantiles", "summary", "uca", "geo_distance")
)
"""Whose arguments nothing else has."""
NAMESPACES: Final = frozenset(("array", "math", "time", "zcurve"))
ALL: Final = ONE | TWO | MANY | BOTH | NONE | BITS.keys() | OF_ATTRIBUTES | OWN

AGGREGATORS: Final = frozenset(("argmax", "argmin", "count", "first", "quantiles", "stddev", "sum"))
"""With those of BOTH that have one argument."""
OF_HITS: Final = frozenset(
    ("array.at", "attribute", "attribute_function", "docidnsspecific", "interpolatedlookup", "map", "map_source",
     "relevance", "summary")
)  # fmt: skip
"""Functions of a single hit."""


def is_aggregator(function: str, arguments: int) -> bool:
    """Whether a function with this number of arguments is computed over the hits of a group."""
    return function in AGGREGATORS or (function in BOTH and arguments == 1)


# The operations of a statement: `all(…)` and `each(…)` with what is in them.


UNLIMITED: Final = 2**31 - 1
"""`max(inf)`."""


class Operation(Struct):
    """One operation. It is built while a statement is read, and changed by nobody after that."""

    is_each: bool
    group_by: Expression | None = None
    filter: Filter | None = None
    hints: list[str] = field(default_factory=list)
    max: int | None = None
    order: list[Expression] = field(default_factory=list)
    outputs: list[Expression] = field(default_factory=list)
    precision: int = 0
    """0: as the query says."""
    accuracy: float = 0.95
    where: str | None = None
    children: list[Operation] = field(default_factory=list)
    label: str = ""

    def walk(self) -> list[Operation]:
        """This operation, and all below it."""
        found = [self]
        for operation in found:
            found.extend(operation.children)
        return found


def operation_text(operation: Operation) -> str:
    """The operation as Vespa writes it in errors."""
    parts = []
    if operation.group_by is not None:
        parts.append(f"group({expression_text(operation.group_by)})")
    if operation.filter is not None:
        parts.append(f"filter({filter_text(operation.filter)})")
    parts += [f"hint({hint})" for hint in dict.fromkeys(operation.hints)]
    if operation.max is not None:
        parts.append(f"max({operation.max})")
    if operation.order:
        parts.append(f"order({', '.join(map(expression_text, operation.order))})")
    if operation.outputs:
        parts.append(f"output({', '.join(map(_output_text, operation.outputs))})")
    if operation.precision:
        parts.append(f"precision({operation.precision})")
    if operation.where is not None:
        parts.append(f"where({operation.where})")
    parts += map(operation_text, operation.children)
    label = f" as({label_text(operation.label)})" if operation.label else ""
    return f"{'each' if operation.is_each else 'all'}({' '.join(parts)}){label}"


def _output_text(output: Expression) -> str:
    return expression_text(output) + (f" as({label_text(output.label)})" if output.label else "")


# The level of an operation or an expression: 0 a single hit, 1 a group, 2 a list of groups, 3 a list of those, …
#
# Vespa: resolveLevel of GroupingOperation, EachOperation, AggregatorNode, DocumentValue


def level_name(level: int) -> str:
    """How errors name a level."""
    if level <= 1:
        return "single group" if level == 1 else "single hit"
    return "list of " * (level - 1) + "groups"


def check_levels(operation: Operation, level: int = 1) -> dict[int, int]:
    """The levels of an operation, and of those in it, by their identity (`id`). `level`: of what goes into it.

    Errors: LanguageError for what does not fit the level that it is about.
    """
    levels: dict[int, int] = {}
    _check(operation, level, levels)
    return levels


def _check(operation: Operation, level: int, levels: dict[int, int]) -> None:
    if operation.is_each:
        _refuse(operation, level, "operate on")
        level -= 1
    if operation.group_by is not None:
        _refuse(operation, level, "group")
        check_level(operation.group_by, level - 1)
        level += 1
    if operation.max is not None:
        _refuse(operation, level, "apply max to")
    levels[id(operation)] = level
    for expression in operation.outputs:
        check_level(expression, level)
    if operation.order:
        _refuse(operation, level, "order")
        for expression in operation.order:
            check_level(expression, level - 1)
    for child in operation.children:
        _check(child, level, levels)


def _refuse(operation: Operation, level: int, action: str) -> None:
    if level == 0:
        raise LanguageError(f"Operation '{operation_text(operation)}' can not {action} {level_name(level)}.")


def check_level(expression: Expression, level: int) -> None:
    """Errors: LanguageError for an expression that is not about what has this level."""
    name, is_inner = expression.function, is_aggregator(expression.function, len(expression.arguments))
    if level < 0:
        raise LanguageError(f"Expression '{expression_text(expression)}' recurses through a single hit.")
    if (is_inner and level < 1) or (name in OF_HITS and level != 0):
        raise LanguageError(f"Expression '{expression_text(expression)}' not applicable for {level_name(level)}.")
    for argument in expression.arguments if name not in OF_ATTRIBUTES else ():
        if isinstance(argument, Expression):
            check_level(argument, level - 1 if is_inner else level)


# The text of expressions and predicates as Vespa writes them: it labels lists of groups and outputs.
#
# Vespa: toString of the classes in com.yahoo.search.grouping.request


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
