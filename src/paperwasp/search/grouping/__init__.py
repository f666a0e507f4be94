"""Grouping: the language, what a content node does for it, and the result as clients see it.

A statement of the language (`all(group(year) each(output(count())))`) is parsed into operations (`language/`), and
these become linear requests, each a chain of levels (`request.py`). A content node works a request out level by level
(`execution.py`): expressions (`expressions/`, one file a family) make one value or several of each hit, hits with equal
values are one group, and aggregators (`aggregators/`, by family) keep a state a group, in columns. The partial
results of document types, nodes and clusters (`partial.py`) are merged, and become the tree that is rendered
(`result_tree.py`, `shown_groups.py`), where continuations say how to turn pages.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html
"""
