"""Whole documents: by global id on disk (`document_store`), by row for pages of hits (`row_store`), and `gid_map`."""
