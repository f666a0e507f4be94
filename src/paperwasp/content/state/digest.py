"""A digest of all documents of a node: equal for nodes that have applied the same records, and hardly ever else.

It is of what records decide: documents by global id with their values, times and layouts, removals, the layout, and
the last record applied of each partition. Rows are not in it, since each node gives its own. Values are compared as
they are read, with members sorted: a node that has given its documents new rows has written those that were changed in
place anew, with members in another order. (To store them in one order would mean to store other bytes than came.)

Cost: every document is read and parsed. The writer's thread, between two batches.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from paperwasp import limits
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.state.node_state import NodeState
from paperwasp.coordination.operation_log import Mark
from paperwasp.document.ids import partition_of
from paperwasp.errors import Corruption
from paperwasp.storage.documents.document_store import StoredDocument
from paperwasp.storage.documents.gid_map import NO_LID

_DIGEST_BYTES: Final = 16
_SORTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


class StateDigest(NamedTuple):
    """The digests by which two nodes are compared. The one of the documents of each partition stands by itself."""

    layout: str
    applied: tuple[Mark, ...]
    partitions: tuple[str, ...]


def digest(state: NodeState, removals_from_us: int = 0) -> StateDigest:
    """Return the digest of a state. Removals from before that time are left out: nodes forget them when they like.

    Errors: Corruption where the store has another document than the rows say.
    """
    hashes = [blake2b(digest_size=_DIGEST_BYTES) for _ in range(limits.PARTITIONS)]
    documents = 0
    for gid, document in state.store.scan(removes=True, in_passing=True):
        if document.is_removed:
            described: list[Any] = [document.timestamp_us] if document.timestamp_us >= removals_from_us else []
        else:
            documents += 1
            described = _described(state, gid, document)
        if described:
            hashes[partition_of(gid)].update(gid + orjson.dumps([document.id, *described], option=_SORTED) + b"\n")
    if documents != state.live_count:
        raise Corruption(f"{documents} documents in the store, {state.live_count} in rows")
    # Generation, and order of types, may change without a record of the log.
    types = Layout(0, dict(sorted(state.layout.types.items()))).to_bytes()
    layout = blake2b(types + orjson.dumps(state.live_counts, option=_SORTED), digest_size=_DIGEST_BYTES)
    return StateDigest(layout.hexdigest(), tuple(state.applied), tuple(found.hexdigest() for found in hashes))


def _described(state: NodeState, gid: bytes, document: StoredDocument) -> list[Any]:
    """Return all that the state has of a document."""
    lid, name = document.lid, type_of_id(document.id)
    found = int(state.gid_map.find(gid)[0])
    if found != lid or found == NO_LID:
        raise Corruption(f"the document with gid {gid.hex()} has lid {found}, and in the store {lid}")
    is_of_earlier_layout = lid < state.conform_below.get(name, 0)
    columns = {field: column.get(lid) for (of_type, field), column in state.columns.items() if of_type == name}
    whole = {field: value for field, value in columns.items() if "." not in field and value is not None}
    return [
        int(state.timestamps.array[lid]),
        int(document.form),
        is_of_earlier_layout,
        orjson.loads(state.stored_fields_of(document)),
        orjson.loads(state.codecs[name].encode(whole)),
        {field: repr(value) for field, value in columns.items() if "." in field},
    ]
