"""The first rows of a file, each a mapping of columns to values, by the readers that feed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import islice
from typing import Any, Final

from paperwasp.base.records import dataclass
from paperwasp.client.sources.operations import BadInput, SourceOperation
from paperwasp.client.sources.read import ReadOptions, read_file
from paperwasp.client.sources.rows import RowMapping, RowOptions, refuse_twice
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

SAMPLED_ROWS: Final = 10_000
_ANY_ID: Final = DocumentId.parse("id:sample:sample::row")


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a file."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Column → what the type of a table says of its values (`RowMapping.note_meanings`)."""

    def values(self, column: str) -> list[Any]:
        """The values of a column, without rows that have none."""
        return [value for row in self.rows if (value := row.get(column)) not in (None, "")]


def read_sample(path: str, options: ReadOptions) -> Sample:
    """The first rows of a file of rows. Errors: InvalidInput for a file that is empty, damaged, or has operations."""
    rows = _Rows()
    unreadable = ""
    for item in islice(read_file(path, options, rows=rows), SAMPLED_ROWS):
        if isinstance(item, BadInput):
            if item.is_end:
                raise InvalidInput(item.message)
            unreadable = unreadable or item.message
    if not rows.found:
        raise InvalidInput(unreadable or f"'{path}' has no rows, so nothing can be said of its columns")
    if all("fields" in row and isinstance(row.get("fields"), Mapping) for row in rows.found[:10]):
        raise InvalidInput(
            f"'{path}' has operations of Vespa's feed format: the application that it is for has a schema"
        )
    columns = dict.fromkeys(name for row in rows.found for name in row)
    return Sample(tuple(columns), tuple(rows.found), rows.meanings)


class _Rows(RowMapping):
    """Keeps rows as they come, instead of making operations of them."""

    def __init__(self) -> None:
        super().__init__(RowOptions(document_type="sample"))
        self.found: list[Mapping[str, Any]] = []
        self.meanings: Mapping[str, str] = {}

    def check_columns(self, name: str, columns: Iterable[str]) -> None:
        refuse_twice(name, list(columns))

    def note_meanings(self, meanings: Mapping[str, str]) -> None:
        self.meanings = {column: meaning for column, meaning in meanings.items() if meaning}

    def operation(self, row: Mapping[str, Any], place: str) -> SourceOperation:
        self.found.append({column: _plain(value) for column, value in row.items()})
        return SourceOperation("put", _ANY_ID, b"{}", None, False, place)


def _plain(value: Any) -> Any:
    """A value of Python's own types: columns of Arrow give arrays of NumPy."""
    return value.tolist() if hasattr(value, "tolist") else value
