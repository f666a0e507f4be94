"""The write half of a content node: it makes operations durable, applies them in order, and shows readers a view.

node               is made of the parts below
operation_queue    where operations wait; `gathering` decides how many are taken at once
writer             the one thread that takes them, and answers when they are applied
producer           stamps, encodes and logs them; `records` has the bytes
consumer           applies what is logged (`apply`) to `node_state`, whose types and fields `layout` decides
publishing         makes the `view` of the state that readers see; `reader` has the present one

After a start `replay` applies the log behind the last `checkpoint`. Behind the writer run `checkpoint_writer`, and in
`housekeeping` the chores that are due: `row_filling`, `graph_building`, `garbage_collection`. `partition_*` move one
partition to another node. Queries of the views are in `search`.
"""
