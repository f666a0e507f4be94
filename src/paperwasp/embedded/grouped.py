"""Groups of an answer as tables: a row a group, a column for each level and each output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from paperwasp.base.records import dataclass
from paperwasp.embedded.frames import arrow_table, pandas_frame
from paperwasp.embedded.html import framed, table_html

if TYPE_CHECKING:
    import pandas
    import pyarrow

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The groups of one list, with those within them. A row is an innermost group, or one that has outputs."""

    name: str
    """What the groups are of, as the query names it."""
    rows: tuple[Mapping[str, Any], ...]
    """By column: the value of each level by what it groups by, then the outputs."""

    def to_pandas(self) -> pandas.DataFrame:
        """Errors: MissingLibrary."""
        return pandas_frame(self.rows)

    def to_arrow(self) -> pyarrow.Table:
        """Errors: MissingLibrary."""
        return arrow_table(self.rows)

    def _repr_html_(self) -> str:
        return framed(table_html(self.rows, self.name))


def group_tables(root: Json) -> Iterator[GroupTable]:
    """The tables of a root group: of what it is all about, where that has outputs, and of each list in it."""
    if outputs := root.get("fields"):
        yield GroupTable("all", (dict(outputs),))
    for each in root.get("children", ()):
        if _is_list(each):
            yield GroupTable(str(each["label"]), tuple(_rows(each, {})))


def _rows(group_list: Json, outer: Json) -> Iterator[dict[str, Any]]:
    for group in group_list.get("children", ()):
        levels = {**outer, str(group_list["label"]): _value(group)}
        lists = [each for each in group.get("children", ()) if _is_list(each)]
        outputs = group.get("fields", {})
        if outputs or not lists:
            yield {**levels, **outputs}
        for each in lists:
            yield from _rows(each, levels)


def _is_list(child: Json) -> bool:
    return str(child.get("id", "")).startswith("grouplist:")


def _value(group: Json) -> Any:
    """What identifies the group; the bounds of one that is a range."""
    if "limits" in group:
        return f"{group['limits']['from']} … {group['limits']['to']}"
    return group.get("value")
