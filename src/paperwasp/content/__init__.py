"""The write half of a content node; the read half, which answers queries of its views, is `search`. It makes operations
durable, applies them in order, and shows readers a view.

Modules of this folder, and wings (folders) whose imports go downwards here, in the end to the modules at the bottom:

    node · housekeeping            a node, put together and opened; the chores that are due
    partitions · upkeep            one partition moves to another node; what runs behind the writer
    writer · consumer              the one thread that changes a node; its second half, which applies and publishes
    checkpoints                    all documents on disk, written behind the writer
    views                          what readers see of the state
    state                          all documents in memory; entries of the log change it
    log                            operations on their way into the log, and as its records
    layouts                        what the schemas make of stored documents
    fault · addresses              why a node takes no operations; where clusters are served

A put comes this way:

    log.operation_queue → writer → log.producer → consumer → state.apply → views.publishing → its reply

After a start `state.replay` applies what the log has behind the last checkpoint.
"""
