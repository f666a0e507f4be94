"""Work behind the writer of a node, a little at a time, and the watch over its disk and memory.

row_filling          adds new documents to the rows from which hits are rendered
graph_building       builds graphs over vectors that lack them
garbage_collection   removes documents that the selections of the cluster do not match
reindexing           indexes documents again
resources            measures disk and memory, and refuses operations when they run out
"""
