"""The roles of the process: the content clusters and containers of all applications, and how they change together."""
