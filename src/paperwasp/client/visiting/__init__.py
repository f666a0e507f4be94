"""Visits: all documents of a service, or a selection of them, read in parallel slices and written to a file.

`parts` reads one slice and begins again where it broke off, `run` reads all of them and writes, `state` keeps the
place for a visit that is interrupted, and `tables` makes CSV and Parquet of what was written.
"""
