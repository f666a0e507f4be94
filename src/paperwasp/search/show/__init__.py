"""Hits as they are shown: summaries, bolding, teasers, matched elements, and why a hit scores what it does."""
