"""Plans: queries for words and vectors that are compiled once, and run in the core."""
