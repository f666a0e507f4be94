"""Forgets the documents of one partition of a node: another picture of them comes, or another node has them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from paperwasp import limits
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.state.node_state import NodeState
from paperwasp.document.ids import partition_of
from paperwasp.storage.documents.document_store import StoreWrites


def drop_documents(state: NodeState, partition: int) -> None:
    """Forget all documents of the partition, that any was removed, and that they came from another node."""
    state.imported.pop(partition, None)
    gids: list[bytes] = []
    by_type: dict[str, list[bytes]] = defaultdict(list)

    def forget() -> None:
        writes = StoreWrites()
        for gid in gids:
            writes.forget(gid)
        for document_type, found in by_type.items():
            state.bury(np.asarray(state.gid_map.remove(found)))
            state.references.remove(document_type, b"".join(found))
            state.live_counts[document_type] -= len(found)
        if writes:
            state.store.write(writes)
        gids.clear()
        by_type.clear()

    for gid, document in state.store.scan(removes=True, in_passing=True):
        if partition_of(gid) == partition:
            gids.append(gid)
            if not document.is_removed:
                by_type[type_of_id(document.id)].append(gid)
            if len(gids) >= limits.PARTITION_CHUNK_DOCUMENTS:
                forget()
    forget()
