"""The state that a content node goes on with, the schemas that it was configured with, and what readers see of both.

One thread, the writer's; other threads only take the reference `state`, which is swapped.
"""

from __future__ import annotations

from weakref import finalize

from paperwasp.content.checkpoint import Since
from paperwasp.content.layout import Layout
from paperwasp.content.node_state import NodeState
from paperwasp.content.publishing import Configuration, view_of
from paperwasp.content.reader import Reader
from paperwasp.content.references import Import, imports_of
from paperwasp.storage.documents.document_store import DocumentStore


class CurrentState:
    """Holds the state in force. Whoever changes it calls `publish` afterwards."""

    def __init__(self, state: NodeState, since_checkpoint: Since) -> None:
        self.state = state
        self.since_checkpoint = since_checkpoint
        self.configured: Configuration | None = None
        self._imports: tuple[Import, ...] = ()
        self._store_removals: list[finalize[..., DocumentStore]] = []
        """Of the stores from before the documents were given new rows, while somebody may read them."""
        self.reader = Reader(view_of(state, None, ()))

    def publish(self) -> None:
        """Shows readers the state as it is now."""
        self.reader.show(view_of(self.state, self.configured, self._imports))

    def set_layout(self, layout: Layout, configured: Configuration) -> None:
        """The layout that the configured schemas make of the one before, with the same types as the state has."""
        self.state.layout = layout
        self._imports = imports_of(configured.schemas.values())

    def retire(self, before: NodeState) -> None:
        """Closes a state that another has replaced. Its store goes when nobody reads it any more."""
        self._store_removals = [removal for removal in self._store_removals if removal.alive]
        self._store_removals.append(before.store.remove_when_unread())
        before.index.close()

    def close(self) -> None:
        """Closes the state in force, and removes the stores of those before it."""
        self.state.store.close()
        self.state.index.close()
        for remove_store in self._store_removals:
            remove_store()
