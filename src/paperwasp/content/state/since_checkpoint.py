"""How much of a state is in no checkpoint yet: this decides when the next one is due."""

from __future__ import annotations

from paperwasp import limits
from paperwasp.content.state.node_state import NodeState


class SinceCheckpoint:
    """How much has changed since the last checkpoint."""

    def __init__(self, limit: int) -> None:
        self.restart(limit)

    def restart(self, limit: int, changes: int = 0) -> None:
        """Count from 0 again: a checkpoint was begun when lids reached up to `limit`."""
        self.limit = limit
        self.changes = changes
        self.log_bytes = 0

    def note(self, changes: int, log_bytes: int) -> None:
        """Count changes that were applied, and the bytes that they take in the log."""
        self.changes += changes
        self.log_bytes += log_bytes

    def is_due(self, state: NodeState) -> bool:
        """Return whether that is enough for the next checkpoint."""
        return (
            state.limit - self.limit >= limits.CHECKPOINT_DOCUMENTS
            or self.log_bytes >= limits.CHECKPOINT_LOG_BYTES
            or self.changes >= limits.CHECKPOINT_OPERATIONS
            or state.index.memory_bytes() >= limits.CHECKPOINT_INDEX_BYTES
        )
