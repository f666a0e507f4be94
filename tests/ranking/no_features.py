"""A catalog without rank features, which tests compile expressions by; some add the features that they need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NoReturn

from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError
from paperwasp.ranking.compiler import Constants
from paperwasp.ranking.names import Description
from paperwasp.ranking.program import Feature


def refuse(name: str) -> NoReturn:
    raise LanguageError(f"no feature {name}")


class NoFeatures:
    """Both a `TypeCatalog` and a `FeatureCatalog`."""

    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        refuse(name)

    def each(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        refuse("foreach")

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> Feature:
        refuse(name)


def constants_of(values: Mapping[str, float | Tensor]) -> Constants:
    """Constants that have been read."""
    return {name: partial(values.__getitem__, name) for name in values}
