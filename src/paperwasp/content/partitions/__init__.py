"""One partition moves from a node to another while both serve: docs/internals/formats/partition.md.

exporting   reads a picture of the documents, then the records of the log after it
frames      both as bytes
importing   checks them, applies them, logs the records
dropping    forgets the documents, on the node that gave them too
"""
