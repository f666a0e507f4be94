"""Readers that turn files into the operations of a feed, one at a time, whatever the size of the file.

`read.read_file` chooses by the ending: Vespa's JSON (`json_operations`), rows of CSV (`read`), of Parquet and Arrow
(`arrow`), which `rows.RowMapping` makes operations of.
"""
