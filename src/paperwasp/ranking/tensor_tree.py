"""The nodes of tensors in the tree of a ranking expression.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#tensor-functions
"""

from __future__ import annotations

from paperwasp.base.records import dataclass
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import quoted
from paperwasp.ranking.tree import Node, enclose


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A word that stands for itself: a dimension, an aggregator, a cell type."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Words(Node):
    """Words in parentheses, as `rename` takes them; a single one stands without."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.words[0] if len(self.words) == 1 else f"({','.join(self.words)})"


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`f(x,y)(body)`: a function without a name. It sees its parameters only."""

    parameters: tuple[str, ...]
    body: Node

    def children(self) -> tuple[Node, ...]:
        return (self.body,)

    def __str__(self) -> str:
        return f"f({','.join(self.parameters)})({self.body})"


@dataclass(frozen=True, slots=True)
class TensorCall(Node):
    """A function of `tensor_functions.FUNCTIONS`. Arguments are expressions, words and lambdas."""

    function: str
    arguments: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class OfType(Node):
    """`range(x[10])`, `diag(x[2],y[2])`, `random(x[3])`: a dense tensor of a type, its cells given by the function."""

    function: str
    type: TensorType

    def __str__(self) -> str:
        return f"{self.function}({','.join(map(str, self.type.dimensions))})"


@dataclass(frozen=True, slots=True)
class Generate(Node):
    """`tensor(x[3])(expression)`: a dense tensor. The expression sees the dimensions, and all that is around it."""

    type: TensorType
    body: Node

    def children(self) -> tuple[Node, ...]:
        return (self.body,)

    def __str__(self) -> str:
        return f"{self.type}({self.body})"


@dataclass(frozen=True, slots=True)
class Cell(Node):
    """One cell of a literal: a label or index for each dimension of the type, and an expression."""

    address: tuple[str, ...]
    value: Node

    def children(self) -> tuple[Node, ...]:
        return (self.value,)

    def __str__(self) -> str:
        return f"{{{','.join(map(quoted, self.address))}}}:{self.value}"


@dataclass(frozen=True, slots=True)
class TensorLiteral(Node):
    """`tensor(x{}):{a:1, b:expression}` and the other forms, all as cells."""

    type: TensorType
    cells: tuple[Cell, ...]

    def children(self) -> tuple[Node, ...]:
        return self.cells

    def __str__(self) -> str:
        names = [dimension.name for dimension in self.type.dimensions]
        parts = []
        for cell in self.cells:
            address = ",".join(f"{name}:{quoted(label)}" for name, label in zip(names, cell.address, strict=True))
            parts.append(f"{{{address}}}:{cell.value}")
        return f"{self.type}:{{{', '.join(parts)}}}"


@dataclass(frozen=True, slots=True)
class Place(Node):
    """Where a slice cuts one dimension: at a label, or at the index (or label) that an expression gives.

    Without a dimension it is the only mapped one for a label, the only indexed one for an index.
    """

    dimension: str
    label: str | None = None
    index: Node | None = None

    def children(self) -> tuple[Node, ...]:
        return () if self.index is None else (self.index,)

    def __str__(self) -> str:
        value = f"({self.index})" if self.label is None else quoted(self.label)
        return f"{self.dimension}:{value}" if self.dimension else value


@dataclass(frozen=True, slots=True)
class Slice(Node):
    """`tensor{x:a, y:(expression)}`, `tensor{a}` and `tensor[expression]`."""

    tensor: Node
    places: tuple[Place, ...]

    def children(self) -> tuple[Node, ...]:
        return (self.tensor, *self.places)

    def __str__(self) -> str:
        tensor = enclose(self.tensor, self.level)
        [first, *others] = self.places
        if not others and not first.dimension and first.index is not None:
            return f"{tensor}[{first.index}]"
        return f"{tensor}{{{', '.join(map(str, self.places))}}}"
