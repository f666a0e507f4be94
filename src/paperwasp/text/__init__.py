"""Texts of every kind: natural language as words, formal languages as tokens, JSON as values."""
