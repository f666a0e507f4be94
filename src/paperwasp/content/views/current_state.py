"""The state in force of a content node, the schemas that it was configured with, and the view of both.

One thread, the writer's; other threads only take the reference `state`, which is swapped.
"""

from __future__ import annotations

from weakref import finalize

from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.since_checkpoint import SinceCheckpoint
from paperwasp.content.views.imported_fields import Import, imports_of
from paperwasp.content.views.publishing import view_of
from paperwasp.content.views.reader import Reader
from paperwasp.errors import Corruption
from paperwasp.storage.documents.document_store import DocumentStore


class CurrentState:
    """Holds the state in force. Whoever changes it calls `publish` afterwards."""

    def __init__(self, state: NodeState, since_checkpoint: SinceCheckpoint) -> None:
        self.state = state
        self.since_checkpoint = since_checkpoint
        self._configured: Configuration | None = None
        self._layout: Layout | None = None
        """The layout of the configured schemas."""
        self._imports: tuple[Import, ...] = ()
        self._store_removals: list[finalize[..., DocumentStore]] = []
        """Remove the stores from before the documents were given new rows, while somebody may read them."""
        self.reader = Reader(view_of(state, None, ()))

    def publish(self) -> None:
        """Show readers the state as it is now. Its layout has the types of the configured one, if there is one."""
        if self._layout is not None:
            self.state.layout = self._layout
        self.reader.show(view_of(self.state, self._configured, self._imports))

    def configure(self, configured: Configuration, layout: Layout) -> None:
        """Set the schemas to publish the state with, and their layout."""
        self._configured, self._layout = configured, layout
        self._imports = imports_of(configured.schemas.values())

    def check_layout(self, state: NodeState) -> None:
        """Errors: Corruption where the log has led a state to another layout than that of the configured schemas."""
        if self._layout is not None and state.layout.types != self._layout.types:
            raise Corruption(
                "the log has another layout than this node was configured with: another producer logged it"
            )

    def replace_state(self, state: NodeState) -> None:
        """Publish a state of the same documents for the one that there is, which goes when nobody reads it any
        more."""
        before, self.state = self.state, state
        self.publish()
        self._store_removals = [removal for removal in self._store_removals if removal.alive]
        self._store_removals.append(before.store.remove_when_unread())
        before.index.close()

    def close(self) -> None:
        """Close the state in force, and remove the stores of those before it."""
        self.state.store.close()
        self.state.index.close()
        for remove_store in self._store_removals:
            remove_store()
