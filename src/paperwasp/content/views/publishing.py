"""Makes the view that readers of a content node get: its state, as it was configured last.

One thread, the writer's. What it changes in place afterwards shows in the view, too; all else of the view stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.state.bitmaps import open_ended
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.views.imported_fields import Import, add_imported
from paperwasp.content.views.view import View
from paperwasp.storage.attributes import ColumnView

_NOTHING: Final = Configuration()


def view_of(state: NodeState, configured: Configuration | None, imports: Sequence[Import]) -> View:
    """The state as it is now; None: it is not configured yet."""
    configured = configured or _NOTHING
    state.settle()
    live = state.live.copy(state.limit)
    # The index drops the dead when it merges, and must not take rows that are being added for dead.
    state.index.live = open_ended(live, state.limit)
    columns: dict[tuple[str, str], ColumnView] = {key: column.snapshot() for key, column in state.columns.items()}
    add_imported(columns, imports, state.references.snapshot(state.gid_map))
    return View(
        limit=state.limit,
        live=live,
        live_count=state.live_count,
        live_counts=MappingProxyType(dict(state.live_counts)),
        index=state.index.snapshot(),
        columns=columns,
        document_types=state.document_types.view(),
        gids=state.gids.view(),
        changed=state.changed.view(),
        timestamps=state.timestamps.view(),
        store=state.store,
        rows=state.rows,
        layout=state.layout,
        schemas=configured.schemas,
        codecs=state.codecs,
        conform_below=MappingProxyType(dict(state.conform_below)),
        modes=configured.modes,
        timestamp_us=state.timestamp_us,
        distribution_key=configured.distribution_key,
    )
