"""The limits of a content node."""

from __future__ import annotations

from typing import Final

STORE_WRITE_BUFFER_BYTES: Final = 16 * 1024 * 1024
STORE_CACHE_BYTES: Final = 8 * 1024 * 1024
STORE_BLOB_BYTES: Final = 256 * 1024
"""Documents of this size and more stand in files of their own kind: in a block of a table, all that is read from the
same block would be decompressed with them."""
STORE_LARGE_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""Bytes of such documents that are kept in memory before they are written to files: where one of them is replaced again
and again, each of its versions would be there. Small documents wait for `STORE_WRITE_BUFFER_BYTES`."""
STORE_RESERVE_BYTES: Final = 1024 * 1024
"""Of the disk, kept for a start when it is full: RocksDB writes about 40 KB to open a store."""
STORE_REMOVALS_BUFFER_BYTES: Final = 1024 * 1024
ROW_FILES_MERGED: Final = 4
"""Files of the row store of one size class that are merged into one."""
ROW_FILE_LEAST_BYTES: Final = 1024 * 1024
"""Files of the row store up to this are of one size class; each further class is `ROW_FILES_MERGED` times as large."""
ROW_FILE_MOST_BYTES: Final = 256 * 1024 * 1024
"""No files of the row store are merged into a larger one. Files have less than 4 GB: their offsets take four bytes."""
ROW_PIECE_BYTES: Final = 4 * 1024 * 1024
"""Held in memory at a time while files of the row store are merged."""
ROW_CHUNK_DOCUMENTS: Final = 8192
"""Documents that are added to the row store at a time, at most."""
ROW_CHUNK_BYTES: Final = 8 * 1024 * 1024
"""Bytes of JSON that end such a chunk earlier."""
ROW_CHUNK_LEAST: Final = 1024
"""New documents that are added to the row store while others come; fewer only when no more have come for a while."""
ROW_NOTED_BYTES: Final = 16 * 1024 * 1024
"""JSON of puts that are kept in memory until they are in the row store; of those before them it is read again."""
GRAPH_LINKS: Final = 1024
"""The most links of a node in a graph over vectors, by the schema: the kernel makes no graph with more."""
GRAPH_EXPLORED_LEAST: Final = 100
"""How many nodes a search of a graph keeps in sight at least, however few hits it is for. With 10 of them, one vector
in forty is not found by itself where half of all are near one direction; with 100, one in six hundred."""
GRAPH_FIRST_VECTORS: Final = 256
"""Vectors that are added at first to a graph that is built behind the writer."""
GRAPH_STEP_SECONDS: Final = 0.2
"""About how long each later step takes: other chores of the cluster wait for it."""
GRAPH_SECONDS: Final = 1.0
"""How often it is looked whether a graph is to be built."""
ROW_SECONDS: Final = 1.0
"""How often documents are looked for that are not in the row store yet."""
PARTITION_CHUNK_DOCUMENTS: Final = 1024
"""Documents in memory at a time while a partition is moved to another node."""
PARTITION_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Bytes of documents or records that end such a chunk earlier."""
PARTITION_FRAME_BYTES: Final = (1 << 30) + 1024
"""The most bytes of one frame of a moved partition: as large as a record of the log may be."""
TOMBSTONE_SECONDS: Final = 14 * 24 * 3600
"""How long it is remembered that a document was removed."""
CHECKPOINT_DOCUMENTS: Final = 65_536
"""Rows added since the last checkpoint after which the next one is due."""
CHECKPOINT_LOG_BYTES: Final = 64 * 1024 * 1024
"""Bytes written to the log since the last checkpoint after which the next one is due."""
CHECKPOINT_OPERATIONS: Final = 262_144
"""Operations since the last checkpoint after which the next one is due: a start applies them again."""
CHECKPOINT_INDEX_BYTES: Final = 64 * 1024 * 1024
"""Memory of the index that is not yet in files, after which a checkpoint is due."""
CHORE_RETRY_SECONDS: Final = 60.0
"""Pause after a chore of a content cluster that failed."""
RECOVERY_FIRST_SECONDS: Final = 1.0
"""Pause before a content node that could not apply what it had logged tries again; it doubles up to the next."""
RECOVERY_LONGEST_SECONDS: Final = 32.0
PREPARE_SECONDS: Final = 1.0
"""How often posting lists of attributes that have grown old are looked for."""
PRUNE_SECONDS: Final = 60.0
"""How often tombstones are looked for that are old enough to go."""
PRUNE_PAUSE_SECONDS: Final = 0.05
PRUNE_TOMBSTONES: Final = 1000
"""Pruned at a time."""
COLLECT_DOCUMENTS: Final = 256
"""Removed at a time by garbage collection: a client's operation waits behind no more."""
COLLECT_PAUSE_SECONDS: Final = 0.05
"""At least, between two pieces of garbage collection."""
COLLECT_SHARE: Final = 0.2
"""The most of the time of one thread that garbage collection takes."""
COLLECT_FIRST_SECONDS: Final = 60.0
"""How long after a start or a change garbage collection begins, where its interval is not shorter."""
COLLECT_ANSWER_SECONDS: Final = 60.0
"""How long removes of garbage collection may take before the piece counts as failed."""
DISK_LIMIT: Final = 0.75
"""Share of disk from which on feeding is blocked, unless services.xml says another."""
MEMORY_LIMIT: Final = 0.8
DOCUMENT_BYTES: Final = 128 * 1024 * 1024
"""Of a put or an update, unless services.xml says another size for the content cluster."""
DISK_RESERVE_BYTES: Final = 256 * 1024 * 1024
"""Free disk below which feeding is blocked, whoever uses the rest."""
MEMORY_ARENAS: Final = 1
"""Into which the C library divides memory: what is free in one is of no use to the threads of another. A thread seldom
waits for it, since few allocate without the interpreter's lock, and each has small pieces of its own."""
RESOURCE_HYSTERESIS: Final = 0.01
"""How far below its limit usage must fall before feeding goes on."""
RESOURCE_SAMPLE_SECONDS: Final = 1.0
"""How often usage is measured."""
DEAD_ROWS_SHARE: Final = 0.5
"""Share of dead rows above which a start gives all documents new lids."""
DEAD_ROWS_LEAST: Final = 100_000
"""Dead rows below which that is never worth it."""
DEAD_ROWS_SERVED_LEAST: Final = 4096
"""Dead rows, or strings that no row has any more, below which a node that serves does not do the same behind its
writer. Some kilobytes each."""
DEAD_BYTES_LEAST: Final = 4 * 1024 * 1024
"""Bytes of replaced documents, as JSON, below which that is not done for their size. Memory may be ten times that."""
DEAD_BYTES_MOST: Final = 256 * 1024 * 1024
"""Bytes of replaced documents, as JSON, from which that is done also where columns have given their memory back."""
SPARE_STRINGS_LEAST: Final = 16_384
"""Strings that no row has any more below which a column of arrays does not go on without them at once. About 4 MB."""
STRINGS_KEPT_AT_ONCE: Final = 524_288
"""Columns with more live elements wait for the compaction of all documents: this takes 200 ms, while writes wait."""
STRINGS_OUTSIDE_ARENAS: Final = 4096
"""Strings that are added to a column at once, from which on they lie outside Python's own memory."""
COMPACTION_DOCUMENTS: Final = 256
"""Given new rows at a time, between two pauses as long as they took."""
REINDEX_DOCUMENTS: Final = 512
"""Documents that are indexed again at a time: a client's operation waits behind no more."""
REINDEX_BYTES: Final = 8 * 1024 * 1024
REINDEX_SLOW_SECONDS: Final = 10.0
"""How long documents of a chunk are processed where scripts call components; it may take the time of one call more."""
REINDEX_SCANNED: Final = 20_000
"""Documents of any type looked at for those."""
