"""What every function of a model is: its name, its arguments with their types, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidInput, NotFound, PaperwaspError

Values = Mapping[str, Tensor]
"""Argument → value, of the type of the argument: of all arguments."""


class NoSuchThing(NotFound):
    """There is no such model or function, or a value is none for its argument."""


class NotEvaluated(InvalidInput):
    """An argument has no value, or the function cannot be computed for these values."""


class Function(Protocol):
    """A function of a model. Immutable; any thread may evaluate it."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, TensorType]:
        """The arguments by name, in the order of their names. A size of 0 is open: any size is right."""

    @property
    def most_rows(self) -> int:
        """How many rows are evaluated faster together than one after another; 1: none are."""

    def evaluate_all(self, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        """The result for each row, or why there is none. Errors: OutOfTime."""
