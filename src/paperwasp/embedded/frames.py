"""Rows as tables of pandas and Arrow, which are not installed with paperwasp: imported where somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from paperwasp.errors import InvalidInput

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = Mapping[str, Any]
_NON_FINITE: Final = frozenset(("NaN", "Infinity", "-Infinity"))
"""How services write numbers that JSON has not."""


class MissingLibrary(InvalidInput):
    """A library that is needed is not installed."""


def row_of(own: dict[str, Any], fields: Row) -> dict[str, Any]:
    """A row of columns of its own and of fields. A field with the name of one of these is `fields.name`."""
    return own | {f"fields.{name}" if name in own else name: value for name, value in fields.items()}


def pandas_frame(rows: Iterable[Row]) -> pandas.DataFrame:
    """A frame with a column for each name that any row has. Errors: MissingLibrary."""
    return import_optional("pandas", "a pandas frame").DataFrame(list(rows))


def arrow_table(rows: Iterable[Row]) -> pyarrow.Table:
    """A table with a column for each name that any row has, null where a row does not have it. Values of a column that
    have no type in common are shown as JSON; names of NaN and the infinities are numbers among numbers. Errors:
    MissingLibrary."""
    library = import_optional("pyarrow", "an Arrow table")
    kept = list(rows)
    names = list(dict.fromkeys(name for row in kept for name in row))
    return library.table({name: _column(library, [row.get(name) for row in kept]) for name in names})


def write_parquet(path: Path, rows: Iterable[Row]) -> None:
    """Writes a table, as of `arrow_table`, to a file. Errors: MissingLibrary."""
    table = arrow_table(rows)
    import_module("pyarrow.parquet").write_table(table, path)


def arrow_rows() -> Any:
    """The module that reads rows of tables. Errors: MissingLibrary."""
    import_optional("pyarrow", "rows of a table")
    return import_module("paperwasp.client.sources.arrow")


def table_fitting() -> Any:
    """The module that makes tables fit a schema. Errors: MissingLibrary."""
    import_optional("pyarrow", "rows of a table")
    return import_module("paperwasp.embedded.tables")


def _column(library: Any, values: list[Any]) -> Any:
    try:
        return library.array(values)
    except (library.ArrowInvalid, library.ArrowTypeError):
        if all(value is None or _is_number(value) for value in values):
            return library.array([None if value is None else float(value) for value in values], library.float64())
        return library.array([None if value is None else orjson.dumps(value).decode() for value in values])


def _is_number(value: Any) -> bool:
    is_named = isinstance(value, str) and value in _NON_FINITE
    return is_named or (isinstance(value, int | float) and not isinstance(value, bool))


def import_optional(name: str, what: str, package: str | None = None) -> Any:
    """A library that is not installed with paperwasp. Errors: MissingLibrary, which says what needs it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingLibrary(f"For {what}, install {package or name}: pip install '{package or name}'") from None
