"""The update of one field: a place in the field, and an action on the value there.

Values are typed, as in `document.operations`. JSON to updates and back: `document.update_json`; what an action makes of
a value: `document.apply_updates`.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#update
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from paperwasp.document.tensor.value import Labels, Tensor

Value = Any
"""A typed value: what a field's type says (`document.types`), never None."""

Arithmetic = Literal["increment", "decrement", "multiply", "divide"]
CellOperation = Literal["replace", "add", "multiply"]


class Member(Struct, frozen=True):
    """Into a field of a struct; of a position: into its `x` or `y`."""

    name: str


class Key(Struct, frozen=True):
    """Into the value of a map's key, or the weight of a weighted set's key."""

    key: Value


class Index(Struct, frozen=True):
    """Into an element of an array."""

    index: int


class Each(Struct, frozen=True):
    """A step into all elements of an array, or all values of a map, in turn. A variable with a name stands for
    the index or key meanwhile: where it is again, further in, it leads to that alone."""

    variable: str = ""


class Match(Struct, frozen=True):
    """The target of `match` in JSON: an element of an array, by its index; or a key of a weighted set, which is
    created and removed by the weighted set's properties."""

    element: Value


Step = Member | Key | Index | Each | Match


class Assign(Struct, frozen=True):
    """Replaces the value; None clears the field, or takes the entry away."""

    value: Value | None


class Add(Struct, frozen=True):
    """Appends a list to an array; sets the weights of a dict in a weighted set."""

    values: Value


class Take(Struct, frozen=True):
    """`remove`: with values, all elements of an array, or keys of a weighted set, that equal one of them; without,
    what stands at the path, an element or an entry."""

    values: tuple[Value, ...] | None = None


class Calculate(Struct, frozen=True):
    """Arithmetic on a number, or on the weight that the path leads to."""

    operation: Arithmetic
    operand: int | float


class ModifyCells(Struct, frozen=True):
    """`modify` of a tensor: changes cells that are there; with `create_default`, others are made with it first.

    `cells`: labels of the mapped dimensions, indexes of the indexed ones → operand.
    """

    operation: CellOperation
    cells: tuple[tuple[Labels, tuple[int, ...], float], ...]
    create_default: float | None = None


class AddCells(Struct, frozen=True):
    """`add` of a tensor with mapped dimensions: its subspaces replace those of the same labels, or are new."""

    tensor: Tensor


class RemoveCells(Struct, frozen=True):
    """`remove` of a tensor with mapped dimensions: all subspaces that have these labels (dimension name → label);
    dimensions that an address does not name are any."""

    addresses: tuple[tuple[tuple[str, str], ...], ...]


Action = Assign | Add | Take | Calculate | ModifyCells | AddCells | RemoveCells


class FieldUpdate(Struct, frozen=True):
    """One action on one field, or at a place in it. `match` of the JSON is a path of `Match` alone."""

    field: str
    action: Action
    path: tuple[Step, ...] = ()
