"""The view that readers have of a node: the documents of one moment, published after each batch.

current_state   the state in force, and what of it is published
publishing      makes a view of the state
view            the view
imported_fields the columns of parents
reader          holds the present view, and reads single documents
visiting        documents in the order of their global ids, a chunk at a time
"""
