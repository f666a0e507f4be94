"""Operations that were made under the layout before the one in force, and come late.

A container processes a document by its application, and a deployment may change the layout before the node's turn with
it. Such an operation was valid when it was made, so it is taken as if it had come before the change: what the new
layout has no place for goes, as it goes from documents that are there (`content/state/relayout.py`).

One thread.
"""

from __future__ import annotations

from paperwasp.base.records import replace
from paperwasp.content.layouts.codec import Codecs, DocumentCodec
from paperwasp.content.layouts.layout import EMPTY, Layout, TypeLayout
from paperwasp.content.log.records import AnyOperation, Logged, Mutate, Reindex, entry_of, logged_of
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Operation, Put, Update
from paperwasp.document.plain_fields import operation_of

_Described = Operation | Reindex | Mutate


class LateOperations:
    """Encodes operations under the layout in force, and where that fails under the one before."""

    def __init__(self) -> None:
        self._before: Layout = EMPTY
        self._codecs = Codecs()

    def note_change(self, before: Layout) -> None:
        """The layout that was in force, which another now follows."""
        self._before, self._codecs = before, Codecs()

    def entry(self, operation: AnyOperation, kind: TypeLayout, codec: DocumentCodec, timestamp_us: int) -> Logged:
        """Errors: those of `entry_of`, where the operation fits neither layout."""
        try:
            return logged_of(operation, kind, codec, timestamp_us)
        except Exception:
            if isinstance(operation, PlainChange):
                operation = operation_of(operation)
            before = self._before.types.get(kind.name)
            if before is None or before.fields == kind.fields:
                raise
            codec_before = self._codecs.of(before)
            if not _fits(operation, before, codec_before):
                raise
            return entry_of(_carried_over(operation, codec_before, kind, codec), kind, codec, timestamp_us)


def _fits(operation: _Described, kind: TypeLayout, codec: DocumentCodec) -> bool:
    try:
        entry_of(operation, kind, codec, 0)
    except Exception:
        return False
    return True


def _carried_over(
    operation: _Described, codec_before: DocumentCodec, kind: TypeLayout, codec: DocumentCodec
) -> _Described:
    """The operation with only what the layout has a place for."""
    if isinstance(operation, Put):
        return replace(operation, fields=codec.decode_kept(codec_before.encode(operation.fields)), json=b"")
    if isinstance(operation, Update):
        kept = (one for one in operation.updates if _fits(replace(operation, updates=(one,), json=b""), kind, codec))
        return replace(operation, updates=tuple(kept), json=b"")
    if isinstance(operation, Reindex):
        made = (operation.derived or {}).items()
        kept_made = {name: value for name, value in made if _fits(Reindex(operation.id, {name: value}), kind, codec)}
        return replace(operation, derived=kept_made)
    return operation
