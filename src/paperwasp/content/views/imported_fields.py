"""Imported fields: columns of parent documents, read through the reference fields of their children.

Vespa: https://docs.vespa.ai/en/schemas/parent-child.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from paperwasp.content.state.references import ColumnKey, Lids
from paperwasp.schema.model import Field, Schema
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.string import StringView


class Import(Struct, frozen=True):
    """One imported field: its own column, that of the reference, and that of the parent."""

    column: ColumnKey
    reference: ColumnKey
    parent: ColumnKey


def imports_of(schemas: Iterable[Schema]) -> tuple[Import, ...]:
    """Return the imported fields of all schemas, parents before those that import from them."""
    found: dict[ColumnKey, Import] = {}
    for schema in schemas:
        name = schema.document.name
        for field in _imported_fields(schema):
            if (imported := field.imported) is not None:
                parent = (imported.target_document, imported.target)
                found[name, field.name] = Import((name, field.name), (name, imported.reference), parent)

    def generation(each: Import) -> int:
        count = 0
        while (parent := found.get(each.parent)) is not None:
            each, count = parent, count + 1
        return count

    return tuple(sorted(found.values(), key=generation))


def _imported_fields(schema: Schema) -> Iterator[Field]:
    """Yield the imported fields of a schema, and their parts."""
    for field in schema.fields.values():
        if field.imported is not None:
            yield field
            parts = (schema.field_named(f"{field.name}.{path}") for path in field.sub_fields)
            yield from (part for part in parts if part is not None and part.attribute is not None)


def add_imported(
    columns: dict[ColumnKey, ColumnView], imports: Iterable[Import], targets: Mapping[ColumnKey, Lids]
) -> None:
    """Add the views of imported fields to `columns`, where parents have such a column."""
    for each in imports:
        reference, parent = columns.get(each.reference), columns.get(each.parent)
        if isinstance(reference, StringView) and parent is not None and each.reference in targets:
            columns[each.column] = ImportedView(reference, targets[each.reference], parent)
