"""The result of grouping as clients see it: trees of groups, made of the results of requests and shown page by page."""
