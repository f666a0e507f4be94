"""Scores of hits, and the best of them."""
