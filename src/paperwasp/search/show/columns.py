"""The values that summaries read without the document: the column of an attribute, and those of the parts of a field
imported from a parent, whose documents a summary does not read.

Of such a field its parts that are attributes are shown, as in Vespa, but for numbers that are unset and empty texts;
the empty texts of a map of texts are shown. A map is shown where its keys and something of its values are attributes.

Vespa: AddDataTypeAndTransformToSummaryOfImportedFields.java, array_attribute_combiner_dfw.cpp,
struct_map_attribute_combiner_dfw.cpp and attribute_field_writer.cpp
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.document.shown import Render
from paperwasp.document.types import DataType, MapType, part_of_element
from paperwasp.schema.model import Field
from paperwasp.storage.attributes import ColumnView, looks_unset


class ShownColumn(Protocol):
    """The values of a field by lid."""

    def get(self, lid: int) -> Any:
        """The value; None: it is unset."""


def column_of(source: Field, columns: Mapping[str, ColumnView]) -> ShownColumn | None:
    """The column of a field, or those of its parts if it is imported; None: only documents have its value."""
    if source.attribute is not None:
        return columns.get(source.name)
    if source.imported is None:
        return None
    is_map = isinstance(source.type, MapType)
    members = [
        _Member(path.removeprefix("value.") if is_map else path, type_, column)
        for path in sorted(source.sub_fields)
        if path != "key" and (column := columns.get(f"{source.name}.{path}")) is not None
        if (type_ := part_of_element(source.type, path)) is not None
    ]
    keys = columns.get(f"{source.name}.key")
    if not members or (is_map and keys is None):
        return None
    values = _Values(members, is_map and "value" in source.sub_fields)
    return _Map(keys, values) if is_map and keys is not None else values


class _Member(Struct, frozen=True):
    name: str
    type: DataType
    column: ColumnView

    def values(self, lid: int) -> Sequence[Any]:
        """One for each element of the field."""
        found: Any = self.column.get(lid)
        return () if found is None else found


class _Values(Struct, frozen=True):
    """The elements of an array of structs, or the values of a map."""

    members: Sequence[_Member]
    are_plain: bool
    """Whether they are no structs: there is one member, the value itself."""

    def get(self, lid: int) -> list[Any] | None:
        if self.are_plain:
            return list(self.members[0].values(lid)) or None
        return list(self._structs(lid)) or None

    def _structs(self, lid: int) -> Iterator[dict[str, Any]]:
        for values in zip_longest(*(member.values(lid) for member in self.members)):
            of_members = zip(self.members, values, strict=True)
            yield {member.name: value for member, value in of_members if not looks_unset(member.type, value)}


class _Map(Struct, frozen=True):
    keys: ColumnView
    values: _Values

    def get(self, lid: int) -> dict[Any, Any] | None:
        keys: Any = self.keys.get(lid)
        return dict(zip(keys, self.values.get(lid) or (), strict=False)) if keys is not None else None


# Summaries that show attributes alone, each as it is under its own name: what is asked of most searches for vectors.
#
# They are written straight from the columns; `search.show.summary` writes all others, and these the same way.


class ShownAttribute(NamedTuple):
    """An attribute that is shown under its own name."""

    name: str
    render: Render | None
    """How its values become JSON; None: they are JSON."""
    missing: object
    """The value that is shown where it is unset; None: nothing is."""


def attributes_json(
    attributes: Iterable[ShownAttribute], columns: Mapping[str, ColumnView], lids: Sequence[int]
) -> list[bytes]:
    """The JSON object of these attributes of each document. All of them have columns."""
    read = [(columns[attribute.name].get, *attribute) for attribute in attributes]
    written = []
    for lid in lids:
        shown = {}
        for get, name, render, missing in read:
            value = get(lid)
            found = missing if value is None else value if render is None else render(value)
            if found is not None:
                shown[name] = found
        written.append(orjson.dumps(shown, option=orjson.OPT_SERIALIZE_NUMPY))
    return written


def values_json(
    attributes: Iterable[ShownAttribute], columns: Mapping[str, ColumnView], lids: NDArray[np.uint32]
) -> list[bytes]:
    """For each of these attributes the JSON array of the values of all documents: null where nothing is shown."""
    written = []
    for name, render, missing in attributes:
        values = columns[name].get_all(lids)
        if render is not None or missing is not None:
            values = [missing if value is None else value if render is None else render(value) for value in values]
        written.append(orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY))
    return written
