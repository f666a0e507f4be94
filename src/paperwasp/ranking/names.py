"""The names that type inference looks up in a rank profile and in the rank features, and those an expression uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct, field

from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.declarations import Model
from paperwasp.ranking.forest import Forest
from paperwasp.schema.model import Function

Type = TensorType | None
"""None: not known."""


class Description(Struct, frozen=True):
    """A rank feature as an expression sees it."""

    type: Type = NUMBER
    pending: str = ""
    """The reason why it is not executed yet; empty: it is."""
    expressions: tuple[int, ...] = ()
    """The arguments that are expressions, by number."""


class TypeCatalog(Protocol):
    """The rank features that exist, with their types."""

    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        """Raises LanguageError (without position) for what cannot be. An argument of None is not known."""

    def each(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """The features that foreach(arguments) goes over; raises LanguageError as `describe`."""


class Uses(Struct):
    """The features, inputs and tensors that an expression uses, its functions included."""

    features: dict[str, None] = field(default_factory=dict)
    """Names of rank features."""
    pending: dict[str, None] = field(default_factory=dict)
    """Descriptions of what is not executed yet."""
    undeclared: dict[str, None] = field(default_factory=dict)
    """Names in query(name) that are not declared; they are numbers."""
    references: dict[str, None] = field(default_factory=dict)
    """Rank features in full, such as `bm25(title)`, and inputs: those whose arguments are known."""
    has_tensors: bool = False

    def add(self, other: Uses) -> None:
        self.has_tensors |= other.has_tensors
        self.features |= other.features
        self.references |= other.references
        self.pending |= other.pending
        self.undeclared |= other.undeclared


def input_name(key: str) -> str:
    """The name in `query(name)`; empty for anything else."""
    return key[6:-1] if key.startswith("query(") and key.endswith(")") else ""


def no_model(name: str) -> Model:
    """Refuse an ONNX model where there are none."""
    raise LanguageError(f"no onnx-model {name!r}")


def no_forest(kind: str, name: str) -> Forest | None:
    """Refuse a forest where there are no models."""
    raise LanguageError(f"no {kind} model {name!r}")


class Names(Struct, frozen=True):
    """The names that a rank profile declares, with their types."""

    functions: Mapping[str, Function]
    constants: Mapping[str, TensorType]
    inputs: Mapping[str, Type]
    """query(name) → type; None: a string."""
    model: Callable[[str], Model] = field(default=no_model)
    """The ONNX model of a name, or in a file. Raises LanguageError (without position) if there is none."""
    forest: Callable[[str, str], Forest | None] = field(default=no_forest)
    """The forest of `xgboost` or `lightgbm` in a file; None: files are not available. Raises as `model`."""
