"""Brings test collections of information retrieval into one form: a feed, queries and judgments.

`python -m tools.collections --help` says how.
"""
