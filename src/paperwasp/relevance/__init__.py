"""Is it better? Queries and judgments of people, measures of rankings, and what changed between two of them."""
