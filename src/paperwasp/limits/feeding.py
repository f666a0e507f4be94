"""The limits of operations on documents, of visits and of reindexing."""

from __future__ import annotations

from typing import Final

DOCUMENT_TIMEOUT_MS: Final = 180_000
OPERATION_QUEUE_BYTES: Final = 256 * 1024 * 1024
"""The bodies of such operations together; a single larger one is taken when none waits."""
OPERATION_QUEUE_LENGTH: Final = 4096
"""Operations accepted and not yet written to the log; one more is refused, and waits in the container that sent it."""
DOCUMENT_QUEUE_LENGTH: Final = 256
"""Messages that wait in a container because their content cluster has no room; one more is answered with 429."""
DOCUMENT_QUEUE_SECONDS: Final = 3.0
"""How long the first in line may have waited when another joins it."""
DOCUMENT_QUEUE_BYTES: Final = 512 * 1024 * 1024
"""The bodies of such messages: an eighth of the memory that a service has at least. A single larger one is taken."""
CHANGES_TOGETHER: Final = 64
"""Plain changes that are sent to a content cluster as one message, which is taken or refused; fewer than may wait."""
ALIKE_CHANGES: Final = 256
"""Methods, starts of paths and query strings of puts and updates for which it is kept where they lead."""
ALIKE_CHANGE_CHARACTERS: Final = 1024
"""Of the start of a path with the query string; for longer ones nothing is kept."""
GATHERING_PAUSES: Final = 4
GATHERING_SECONDS: Final = 0.001
"""The writer waits so often, and so long each time, for the rest of the operations that come together."""
ANSWERS_NS: Final = 1_000_000
"""The event loop takes answers of content clusters for about so long at a time, and then looks what else has come."""
LOG_BATCH_BYTES: Final = 64 * 1024 * 1024
LOG_BATCH_OPERATIONS: Final = 1024
LOG_RECORD_BYTES: Final = 1 << 30
LOG_FILE_BYTES: Final = 64 * 1024 * 1024
REPLAY_REPEATS: Final = 1024
"""How many of the last records of a partition a log may give again. Of older ones it is not known whether they are the
same, and the node stops."""
REPLAY_HELD_BYTES: Final = 256 * 1024 * 1024
"""Of records that wait, after a change of the layout, until all partitions have come to it."""
UNFIT_ENTRIES: Final = 16
"""The most operations of a batch that the log refuses because a defect keeps them from being applied."""
DOCUMENT_ID_BYTES: Final = 65_535
PARTITIONS: Final = 16
"""Partitions of a content cluster. Part of the on-disk format: never change it for existing data."""

# Visiting
VISIT_DOCUMENTS: Final = 1024
"""In one chunk; and what a visit without `wantedDocumentCount` gives at a time: as many as a bucket of Vespa's has."""
VISIT_BYTES: Final = 1024 * 1024
"""About, of one chunk."""
VISIT_SCANNED: Final = 8192
"""Documents and tombstones looked at for one chunk."""
VISIT_ANSWER_DOCUMENTS: Final = 65_536
"""In one answer that is not streamed, whatever `wantedDocumentCount` says."""
VISIT_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""About, of one answer that is not streamed."""
VISITS_AT_ONCE: Final = 1
"""Chunks of visits read at a time in one content cluster: fewer than its threads, so that queries never wait."""
VISITS_WAITING: Final = 256
"""Chunks of visits that wait for their turn in one content cluster; one more is answered with 429."""
VISIT_CONCURRENCY: Final = 1024
BULK_OPERATIONS: Final = 256
"""Operations of one bulk request that are in flight together."""
BULK_TIME_CHUNK_MS: Final = 60_000
VISIT_RETRY_SECONDS: Final = 0.02
"""Pause before what found a queue full is tried again."""


# Reindexing
REINDEX_TRIES: Final = 60
"""Times in a row that a chunk may find its cluster overloaded or away, before the reindexing has failed."""
REINDEX_AGAIN_SECONDS: Final = 1.0
"""Pause before such a chunk is tried again."""
REINDEX_RETRY_SECONDS: Final = 600.0
"""Pause before a reindexing that failed goes on."""
