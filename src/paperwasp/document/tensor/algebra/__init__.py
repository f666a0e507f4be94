"""The tensor functions of ranking expressions, over batches: pure functions, one file a primitive.

    number(values) · numbers(batch)                          scalars of hits as batches of the type tensor(), and back
    mapped(batch, f)                                         f of each cell
    reduced(batch, aggregator, dimensions=())                over these dimensions; over all if none is named
    joined(a, b, f) · merged(a, b, f)                        f of the cells of both that have an address in common
    concatenated(a, b, dimension) · renamed(batch, old, new)
    sliced(batch, places)                                    places: dimension → int64 (hits or 1), label numbers or
                                                             indexes: label_place(label, labels) · index_place(index) ·
                                                             label_places(values, labels) · index_places(values)
    cast(batch, cell_type) · unpacked(batch, cell_type="float", endian="big") · expanded(batch, dimension)
    generated(type, values) · filled(type, hits, f)          values of all cells (hits or 1, cells of the type)
    places_of(type, first, count)                            the indexes of cells of tensors below each other
    literal(type, addresses, values, labels)                 values: one column (hits or 1) for each address
    map_subspaces(batch, f) · filter_subspaces(batch, f)     f: of a batch in which each subspace is a hit
    cell_order(batch, order) · top(n, batch)
    argmax · argmin · l1_normalize · l2_normalize · softmax  (batch, dimensions=())
    cosine_similarity · euclidean_distance · matmul          (a, b, dimension)
    summed_products(a, b, dimensions=())                     reduce(a * b, sum, dimensions), without all the products
    xw_plus_b(x, w, b, dimension) · range_cells(type) · diagonal(type) · random_cells(type, generator)
    retyped(batch, type)                                     the same cells as a type that holds them
    chosen(which, batches, type)                             for each hit the tensor of batch number which[hit]
    repeated(batch, times) · spread(batch, hits) · taken(batch, hits)

`f` of cells is a `CellFunction`: from arrays of one shape to an array of that shape. `CELL_FUNCTIONS` has those of
ranking expressions by the names of `core.rank.rank_program.OPERATIONS`. Cells come to it as float32 or float64.

A batch of many hits and one that is the same for all are combined as if the latter was there for each hit.
Errors: TooLarge for a result of more cells than `limits.TENSOR_BATCH_CELLS`, or more memory than the work of the thread
may take (`core.budget`); OutOfTime when the time of the thread is over. Types are those of `document.tensor.types`,
whose ValueError says what does not fit.
"""

from paperwasp.document.tensor.algebra.generated import (
    argmax,
    argmin,
    cosine_similarity,
    diagonal,
    euclidean_distance,
    expanded,
    filled,
    generated,
    l1_normalize,
    l2_normalize,
    literal,
    matmul,
    number,
    numbers,
    places_of,
    random_cells,
    range_cells,
    softmax,
    xw_plus_b,
)
from paperwasp.document.tensor.algebra.joined import concatenated, joined, merged, renamed
from paperwasp.document.tensor.algebra.mapped import (
    BatchFunction,
    Places,
    cast,
    cell_order,
    chosen,
    filter_subspaces,
    index_place,
    index_places,
    label_place,
    label_places,
    map_subspaces,
    mapped,
    retyped,
    sliced,
    top,
    unpacked,
)
from paperwasp.document.tensor.algebra.reduced import AGGREGATORS, reduced, summed_products
from paperwasp.document.tensor.algebra.rows import CELL_FUNCTIONS, CellFunction, converted, repeated, spread, taken

__all__ = [
    "AGGREGATORS",
    "CELL_FUNCTIONS",
    "BatchFunction",
    "CellFunction",
    "Places",
    "argmax",
    "argmin",
    "cast",
    "cell_order",
    "chosen",
    "concatenated",
    "converted",
    "cosine_similarity",
    "diagonal",
    "euclidean_distance",
    "expanded",
    "filled",
    "filter_subspaces",
    "generated",
    "index_place",
    "index_places",
    "joined",
    "l1_normalize",
    "l2_normalize",
    "label_place",
    "label_places",
    "literal",
    "map_subspaces",
    "mapped",
    "matmul",
    "merged",
    "number",
    "numbers",
    "places_of",
    "random_cells",
    "range_cells",
    "reduced",
    "renamed",
    "repeated",
    "retyped",
    "sliced",
    "softmax",
    "spread",
    "summed_products",
    "taken",
    "top",
    "unpacked",
    "xw_plus_b",
]
