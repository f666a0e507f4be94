"""Matching and ranking: which documents a query matches, and which of them are best, phase by phase."""
