"""Readers that turn files into the operations of a feed, one at a time, whatever the size of the file.

`read.read_file` chooses by the ending: Vespa's JSON (`json_values`, `json_operations`), rows of CSV (`delimited`), of
Parquet and Arrow (`arrow_table`), which `rows.RowMapping` makes operations of.
"""
