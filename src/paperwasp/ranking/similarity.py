"""Expressions that a kernel works where the vectors of documents stand: dot products, and the forms of MaxSim.

What the types allow is found when an expression is compiled. The vectors of the query must be the same for all hits,
which blocks tell: where they are not, the nodes do what they say.
Vespa: https://docs.vespa.ai/en/ranking/tensor-examples.html
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core.budget import budget
from paperwasp.core.rank.best_parts import BestHits
from paperwasp.core.together import Together
from paperwasp.document.tensor import products
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.errors import TooLarge
from paperwasp.ranking.tensor_node import Block, Dependence, TensorNode
from paperwasp.ranking.tensor_run import batch, kept


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """The sum over one dimension of the query of the greatest, over the mapped one of documents, of products."""

    query: TensorNode
    documents: TensorNode
    nearest: products.Nearest
    summed: str
    """Empty: the query is one vector."""

    def __call__(self, block: Block) -> TensorBatch | None:
        """None: the query has other vectors for other hits."""
        query = batch(self.query, block)
        if not query.is_single:
            return None
        return products.max_similarity(self.nearest, query, kept(self.documents, block), self.summed)


@dataclass(frozen=True, slots=True, eq=False)
class DotProduct:
    """The sum of the products of a dense tensor of the query and one of documents."""

    query: TensorNode
    documents: TensorNode

    def __call__(self, block: Block) -> TensorBatch | None:
        """None: the query has other cells for other hits, or the cells of documents are of another type."""
        query = batch(self.query, block)
        return products.dots(query, kept(self.documents, block)) if query.is_single else None

    def best(
        self, block: Block, hits: NDArray[np.uint64], count: int, threads: int = 1, together: Together | None = None
    ) -> BestHits | None:
        """The best by the dot product alone: a `FindBest`."""
        if self.documents.stored is None or self.query.dependence is Dependence.HIT or self.query.levels:
            return None
        stored = self.documents.stored(block)
        if stored is None:
            return None
        taken = budget.taken_bytes
        try:
            query = batch(self.query, block)
        except TooLarge:  # as scoring a hit then says
            return None
        finally:
            budget.taken_bytes = taken
        return products.best_dots(query, stored, hits, count, threads, together) if query.is_single else None


def dot_product(node: TensorNode, names: tuple[str, ...]) -> DotProduct | None:
    """The kernel form of the sum of `node` over dimensions; None unless it is a dot product over all its dimensions."""
    if node.key[:2] != ("join", "multiply") or len(names) != len(node.type.dimensions):
        return None
    for query, documents in (node.operands, node.operands[::-1]):
        if documents.kept is not None and query.type.dimensions == documents.type.dimensions == node.type.indexed:
            return DotProduct(query, documents)
    return None


def max_similarity(node: TensorNode, names: tuple[str, ...]) -> Similarity | None:
    """The kernel form of the sum of `node` over dimensions; None unless it is a sum of greatest similarities."""
    return _nearest_of(node.operands[0], node.key[2], names[0]) if _is_greatest(node) and len(names) == 1 else None


def greatest_similarity(node: TensorNode, names: tuple[str, ...]) -> Similarity | None:
    """The kernel form of the greatest cell of `node`; None unless its cells are similarities to one query vector."""
    return _nearest_of(node, names, "")


def _is_greatest(node: TensorNode) -> bool:
    return node.key[:2] == ("reduce", "max")


def _nearest_of(node: TensorNode, best: tuple[str, ...], summed: str) -> Similarity | None:
    """The kernel form for a node with a number for each vector of the query and of the document; None: it has none."""
    if len(best) != 1 or {d.name for d in node.type.dimensions} != {best[0], summed} - {""}:
        return None
    inverse = _inverse(node)
    if inverse is None:
        return _by_dots(node, best[0], summed)
    numerator, added, bits = inverse
    sides = _sides(bits.operands[0], bits, best[0], summed) if bits.operands else None
    if sides is None or any(side.type.cell_type != "int8" for side in sides):
        return None
    return Similarity(*sides, products.greatest_by_hamming(numerator, added, node.type.cell_type), summed)


def _by_dots(node: TensorNode, best: str, summed: str) -> Similarity | None:
    """Sums of products. A factor of bits that are unpacked is not unpacked."""
    if node.key[:2] != ("reduce", "sum") or len(node.operands) != 2:
        return None
    sides = _sides(node, node, best, summed)
    if sides is None:
        return None
    query, documents = sides
    if documents.key[0] != "unpack_bits" or len(documents.type.indexed) != 1:
        return Similarity(query, documents, products.greatest_dots, summed)
    words = documents.key[1]
    nearest = products.greatest_dots_with_bits(documents.type, words[1] if len(words) > 1 else "big")
    return Similarity(query, documents.operands[0], nearest, summed)


def _sides(joined: TensorNode, reduced: TensorNode, best: str, summed: str) -> tuple[TensorNode, TensorNode] | None:
    """The query and the documents of what is joined and summed, where each vector of one meets each of the other."""
    if len(joined.operands) != 2:
        return None
    for query, documents in (joined.operands, joined.operands[::-1]):
        inner = documents.type.indexed
        rest = tuple(d for d in query.type.dimensions if d.name != summed)
        within = set(reduced.key[2]) or {d.name for d in inner}
        is_matrix = [d.name for d in documents.type.mapped] == [best] and within == {d.name for d in inner}
        if is_matrix and rest == inner and len(query.type.dimensions) == len(rest) + bool(summed):
            return query, documents
    return None


def _inverse(node: TensorNode) -> tuple[float, float, TensorNode] | None:
    """a, b and the sum of bits that differ, of `a / (b + sum(hamming(…)))` where a and b are above 0."""
    if node.key[:2] != ("join", "divide") or (numerator := _number(node.operands[0])) is None:
        return None
    below = node.operands[1]
    if below.key[:2] != ("join", "add"):
        return None
    for one, other in (below.operands, below.operands[::-1]):
        added = _number(one)
        is_sum = other.key[:2] == ("reduce", "sum") and len(other.operands) == 1
        if added is not None and is_sum and other.operands[0].key[:2] == ("join", "hamming"):
            return (numerator, added, other) if numerator > 0 and added > 0 else None
    return None


def _number(node: TensorNode) -> float | None:
    """The value of a constant number."""
    return float(node.folded.cells[0]) if node.folded is not None and node.type.is_number else None
