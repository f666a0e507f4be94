"""All documents of a node in memory, which the entries of the log change. The writer's thread.

node_state         the state: lids, columns, index, store
bitmaps            bits by lid
references         which documents the reference fields name
apply              applies entries
relayout           takes the documents from one layout to the next
replay             applies the records of the log, each once
since_checkpoint   how much has changed since the last checkpoint
digest             by which nodes that applied the same records are compared
"""
