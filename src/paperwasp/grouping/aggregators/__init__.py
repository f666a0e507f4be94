"""The aggregators of the grouping language, one a file."""
