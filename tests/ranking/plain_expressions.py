"""Ranking expressions by their definitions: one hit at a time, a tree walked, tensors as dictionaries.

What compiled expressions are compared to; `tests/document/tensor/plain_tensors.py` has the tensor functions. Names are
looked up in one mapping, and a name that is bound comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking.tree import (
    Call,
    Generate,
    If,
    Lambda,
    Membership,
    Number,
    Operation,
    Prefix,
    RankNode,
    Reference,
    Slice,
    SlicePlace,
    Switch,
    TensorCall,
    TensorLiteral,
    Word,
    Words,
)
from tests.document.tensor import plain_functions
from tests.document.tensor import plain_tensors as plain
from tests.document.tensor.plain_tensors import PlainTensor

Names = Mapping[str, PlainTensor]
_FUNCTIONS = {**plain_functions.EXACT, **plain_functions.ROUNDED}
_BINARY = {
    "+": "add", "-": "subtract", "*": "multiply", "==": "equal", "!=": "notEqual", "<": "less", "<=": "lessEqual",
    ">": "greater", ">=": "greaterEqual", "&&": "and", "||": "or", "%": "modulo",
}  # fmt: skip
_PREFIX = {"-": "negate", "!": "not"}
_CALLS = {"abs": "fabs", "fmod": "modulo"}


def plain_of(tensor: Tensor) -> PlainTensor:
    """A tensor as a dictionary."""
    sizes = {d.name: d.size for d in tensor.type.dimensions}
    cells = {}
    mapped = [d.name for d in tensor.type.mapped]
    places = plain.all_places(sizes)
    order = [d.name for d in tensor.type.indexed]
    for labels, row in zip(tensor.labels, tensor.cells, strict=True):
        for place in places:
            indexes = dict(place)
            address = frozenset([*zip(mapped, labels, strict=True), *indexes.items()])
            cells[address] = float(row[tuple(indexes[name] for name in order)])
    return PlainTensor(sizes, cells, tensor.type.cell_type)


def value(node: RankNode, names: Names) -> PlainTensor:  # noqa: C901 (a case for each node)
    """The value of an expression for one hit."""
    match node:
        case Number():
            return plain.number(node.value)
        case Reference():
            return names[str(node)]
        case Operation():
            parts = [value(operand, names) for operand in node.operands]
            result = parts[0]
            for operator, part in zip(node.operators, parts[1:], strict=True):
                result = plain.joined(result, part, _FUNCTIONS[_BINARY[operator]])
            return result
        case Prefix():
            return plain.mapped(value(node.operand, names), _FUNCTIONS[_PREFIX[node.operator]])
        case Call():
            function = _FUNCTIONS[_CALLS.get(node.function, node.function)]
            last = node.arguments[-1]
            if node.function in ("max", "min") and isinstance(last, Reference) and str(last) not in names:
                return plain.reduced(value(node.arguments[0], names), node.function, [last.name])
            parts = [value(argument, names) for argument in node.arguments]
            return plain.mapped(parts[0], function) if len(parts) == 1 else plain.joined(parts[0], parts[1], function)
        case If():
            chosen = node.if_true if _truth(node.condition, names) else node.if_false
            return value(chosen, names)
        case Switch():
            number = value(node.discriminant, names).number
            results = [result for case, result in node.cases if value(case, names).number == number]
            return value([*results, node.default][0], names)
        case Membership():
            sought = value(node.value, names)
            found = [plain.joined(sought, value(c, names), _FUNCTIONS["equal"]) for c in node.choices]
            return reduce(lambda a, b: plain.joined(a, b, _FUNCTIONS["or"]), found)
        case TensorCall():
            return _call(node, names)
        case Generate():
            sizes = {d.name: d.size for d in node.type.dimensions}
            return plain.dense(sizes, lambda at: _cell(node.body, names, at), node.type.cell_type)
        case TensorLiteral():
            sizes = {d.name: d.size for d in node.type.dimensions}
            addresses = [_address(node, cell.address) for cell in node.cells]
            cells = {a: value(c.value, names).number for a, c in zip(addresses, node.cells, strict=True)}
            return plain.of(sizes, plain.complete(sizes, cells), node.type.cell_type)
        case Slice():
            tensor = value(node.tensor, names)
            return plain.sliced(tensor, dict(_place(place, tensor, names) for place in node.places))
    raise AssertionError(node)


def _truth(node: RankNode, names: Names) -> bool:
    return sum(value(node, names).cells.values()) != 0


def _cell(body: RankNode, names: Names, at: Mapping[str, str | int]) -> float:
    return value(body, {**names, **{name: plain.number(float(place)) for name, place in at.items()}}).number


def _address(node: TensorLiteral, address: tuple[str, ...]) -> plain.Address:
    parts = zip(node.type.dimensions, address, strict=True)
    return frozenset((d.name, label if d.is_mapped else int(label)) for d, label in parts)


def _place(place: SlicePlace, tensor: PlainTensor, names: Names) -> tuple[str, str | int]:
    is_mapped = tensor.sizes[place.dimension] is None
    if place.label is not None:
        return place.dimension, place.label if is_mapped else int(place.label)
    assert place.index is not None
    number = int(value(place.index, names).number)
    return place.dimension, str(number) if is_mapped else number


def _call(node: TensorCall, names: Names) -> PlainTensor:
    tensors = [value(a, names) for a in node.arguments if not isinstance(a, Word | Words | Lambda)]
    words = [a.text for a in node.arguments if isinstance(a, Word)]
    renamed = [a.words for a in node.arguments if isinstance(a, Words)]
    functions = [a for a in node.arguments if isinstance(a, Lambda)]

    def function(*values: float) -> float:
        [each] = functions
        return value(each.body, dict(zip(each.parameters, map(plain.number, values), strict=True))).number

    def of_subspace(subspace: PlainTensor) -> PlainTensor:
        [each] = functions
        return value(each.body, {each.parameters[0]: subspace})

    match node.function:
        case "map":
            return plain.mapped(tensors[0], function)
        case "join":
            return plain.joined(tensors[0], tensors[1], function)
        case "merge":
            return plain.merged(tensors[0], tensors[1], function)
        case "map_subspaces":
            inner = {name: size for name, size in tensors[0].sizes.items() if size is not None}
            ones = plain.of(inner, dict.fromkeys(plain.all_places(inner), 1.0), tensors[0].cell_type)
            return plain.map_subspaces(tensors[0], of_subspace, of_subspace(ones).sizes)
        case "filter_subspaces":
            return plain.filter_subspaces(tensors[0], of_subspace)
        case "rename":
            return plain.renamed(tensors[0], dict(zip(*renamed, strict=True)))
        case "concat":
            return plain.concatenated(tensors[0], tensors[1], words[0])
        case "cell_cast":
            return plain.cast(tensors[0], words[0])
        case "reduce":
            return plain.reduced(tensors[0], words[0], words[1:])
    return plain.reduced(tensors[0], node.function, words)
