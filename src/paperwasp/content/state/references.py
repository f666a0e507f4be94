"""Where references lead: for each reference field, the lid of the document that each of its distinct ids names.

A reference field's column has a code by lid for the id (`attributes.string`). Here is, by code, the lid of that
document, or NO_LID while there is none: `Targets`. It follows the documents: put (a new lid), removed, put after their
children. Parents and children are documents of one node, so all lids are of one space.

What readers get is never changed: the next change goes into a copy. Where no reference refers to a document's type, its
being put or removed costs one look into a dict.

Vespa: https://docs.vespa.ai/en/schemas/parent-child.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.ids import DocumentId
from paperwasp.document.types import ReferenceType
from paperwasp.storage.attributes import Column
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.string import StringColumn
from paperwasp.storage.documents.gid_map import GID_BYTES, NO_LID, GidMap

if TYPE_CHECKING:
    from paperwasp.content.layouts.layout import Layout

Lids = NDArray[np.uint32]
ColumnKey = tuple[str, str]
"""Document type and field."""


class Targets:
    """The documents that one reference field refers to."""

    def __init__(self, column: StringColumn) -> None:
        self.column = column
        self._lids = GrowableArray(np.uint32, NO_LID)
        self._codes = GidMap()
        """gid → code."""
        self._same: dict[int, int] = {}
        """Code → an earlier code of the same document: `n=07` and `n=7` are one number."""
        self._is_shared = False
        """Whether readers hold the lids: they must be copied before they are changed."""

    def update(self, documents: GidMap) -> None:
        """Look up the ids that are new in the column."""
        first, end = self._lids.length, len(self.column.dictionary)
        if first == end:
            return
        gids = b"".join(_gid_of(self.column.dictionary[code]) for code in range(first, end))
        earlier = self._codes.insert(gids, np.arange(first, end, dtype=np.uint32))
        for place in np.flatnonzero(earlier != NO_LID).tolist():
            self._same[first + place] = int(earlier[place])
        self._lids.extend(documents.find(gids))

    def move(self, gids: bytes, lids: Lids) -> None:
        """Note that documents have other lids now, or none: NO_LID. Ignores those that `update` did not look up."""
        codes = self._codes.find(gids)
        places = np.flatnonzero(codes != NO_LID)
        if len(places) == 0:
            return
        if self._is_shared:
            self._lids.move()
            self._is_shared = False
        self._lids.array[codes[places]] = lids[places]
        for place in places.tolist() if self._same else ():
            code = int(codes[place])
            while (code := self._same.get(code, -1)) >= 0:
                self._lids.array[code] = lids[place]

    def snapshot(self) -> Lids:
        """Return the lids by code, for readers."""
        self._is_shared = True
        return self._lids.view()


class References:
    """The references of all document types of a node. One thread, the writer's."""

    def __init__(self) -> None:
        self._fields: dict[ColumnKey, Targets] = {}
        self._of_parents: dict[str, list[Targets]] = {}
        """The reference fields by the type that they refer to."""

    def configure(self, layout: Layout, columns: Mapping[ColumnKey, Column]) -> None:
        """Take up the reference fields of a layout. Columns that stay keep what was looked up."""
        fields: dict[ColumnKey, Targets] = {}
        of_parents: dict[str, list[Targets]] = {}
        for key, target in _reference_fields(layout):
            column, known = columns[key], self._fields.get(key)
            assert isinstance(column, StringColumn)
            targets = known if known is not None and known.column is column else Targets(column)
            fields[key] = targets
            of_parents.setdefault(target, []).append(targets)
        self._fields, self._of_parents = fields, of_parents

    def move(self, document_type: str, gids: bytes, lids: Lids) -> None:
        """Note that documents of one type have these lids now; NO_LID: they are gone."""
        for targets in self._of_parents.get(document_type, ()):
            targets.move(gids, lids)

    def remove(self, document_type: str, gids: bytes) -> None:
        """Note that documents of this type are gone."""
        if document_type in self._of_parents:
            self.move(document_type, gids, np.full(len(gids) // GID_BYTES, NO_LID, np.uint32))

    def snapshot(self, documents: GidMap) -> dict[ColumnKey, Lids]:
        """Return for each reference field the lids by code."""
        for targets in self._fields.values():
            targets.update(documents)
        return {key: targets.snapshot() for key, targets in self._fields.items()}


def _reference_fields(layout: Layout) -> Iterable[tuple[ColumnKey, str]]:
    """Yield the reference fields, with the type that each refers to."""
    for kind in layout.types.values():
        for field in kind.attributes:
            if isinstance(field.type, ReferenceType):
                yield (kind.name, field.name), field.type.target


def _gid_of(id_text: str) -> bytes:
    """The gid of the document that an id names; of no document, for the code of "unset"."""
    return DocumentId.parse(id_text).gid if id_text else bytes(GID_BYTES)
