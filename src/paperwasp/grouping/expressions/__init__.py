"""The functions of the grouping language that make values of hits, one family a file."""
