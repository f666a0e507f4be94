"""Rows as tables of pandas and Arrow, which are not installed with paperwasp: imported where somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import orjson

from paperwasp.errors import InvalidInput

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = Mapping[str, Any]


class MissingLibrary(InvalidInput):
    """What was asked for needs a library that is not installed."""


def pandas_frame(rows: Iterable[Row]) -> pandas.DataFrame:
    """A frame with a column for each name that any row has. Errors: MissingLibrary."""
    return _import("pandas", "a pandas frame").DataFrame(list(rows))


def arrow_table(rows: Iterable[Row]) -> pyarrow.Table:
    """A table with a column for each name that any row has, null where a row does not have it. Values of a column that
    have no type in common are shown as JSON. Errors: MissingLibrary."""
    library = _import("pyarrow", "an Arrow table")
    kept = list(rows)
    names = list(dict.fromkeys(name for row in kept for name in row))
    return library.table({name: _column(library, [row.get(name) for row in kept]) for name in names})


def arrow_rows() -> Any:
    """The module that reads rows of tables. Errors: MissingLibrary."""
    _import("pyarrow", "rows of a table")
    return import_module("paperwasp.client.sources.arrow_table")


def _column(library: Any, values: list[Any]) -> Any:
    try:
        return library.array(values)
    except (library.ArrowInvalid, library.ArrowTypeError):
        return library.array([None if value is None else orjson.dumps(value).decode() for value in values])


def _import(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingLibrary(f"For {what}, install {name}: pip install {name}") from None
