"""All documents of a node on disk, as of one place in the log: a start loads them and applies the log after it.

checkpoint_writer   decides when one is due, and writes it behind the writer
checkpoint          freezes the state, writes it, loads it
compaction          gives the documents new lids where most are dead
node_files          the files that a backup holds
"""
