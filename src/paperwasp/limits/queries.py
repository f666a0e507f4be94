"""The limits of queries and of what is kept for later ones."""

from __future__ import annotations

from typing import Final

DEFAULT_HITS: Final = 10
MAX_HITS: Final = 400
MAX_OFFSET: Final = 1000
GLOBAL_RERANK_COUNT: Final = 10_000
"""How many hits of a document type the global phase ranks again: all of them are sent to the container."""
QUERY_TIMEOUT_MS: Final = 500
LONGEST_QUERY_TIMEOUT_MS: Final = 600_000
"""The longest timeout that a query has, whatever it says."""
SIGNIFICANCE_MODEL_BYTES: Final = 256 * 1024 * 1024
"""The largest file with document frequencies, inflated."""
SUMMARY_FORMS: Final = 256
"""How many selections of summary fields one content node remembers what they show of."""
VOCABULARIES: Final = 32
"""Caches from words of shown texts to their terms in the index: one for each language and text profile."""
VOCABULARY_WORDS: Final = 32_768
"""Words in one such cache, each of at most 64 bytes. When it is full it is emptied."""
QUERY_MEMORY_BYTES: Final = 64 * 1024 * 1024
"""What the tensors that one query computes may take at a time, unless services.xml says more."""
MOST_QUERY_MEMORY_BYTES: Final = 8 << 30
"""The most that services.xml may say."""
QUERY_THREADS: Final = 2
"""The threads of a content cluster's queries, where it has fewer cores and services.xml does not say how many."""
MOST_QUERY_THREADS: Final = 1024
"""The most that services.xml may say."""
QUERY_QUEUE_LENGTH: Final = 256
STREAMED_DOCUMENTS: Final = 10_000
"""The documents of a type with mode streaming that are searched together."""
STREAMED_BYTES: Final = 16 * 1024 * 1024
"""About, of those."""
STREAMED_BETWEEN_CLOCKS: Final = 64
"""Documents read between two looks at the clock."""
LENIENT_JSON_BYTES: Final = 256 * 1024
"""The largest body of a query whose JSON is not strict: single quotes, line breaks in strings."""
QUERY_PARAMETERS: Final = 10_000
"""The most parameters of one request, in its body and its address."""
COLLAPSE_FIELDS: Final = 100
"""The most fields by which one query collapses."""
SORT_KEYS: Final = 100
"""The most keys by which one query sorts."""
SORT_CHARACTERS: Final = 64 * 1024
"""The longest sort specification."""
SEARCH_CACHE_BYTES: Final = 32 * 1024 * 1024
"""All answers that a container keeps, with their requests."""
SEARCH_CACHE_ANSWER_BYTES: Final = 1024 * 1024
"""Larger answers are not kept."""
PREPARED_QUERIES: Final = 2048
"""Shapes of queries that a container keeps prepared."""
PREPARED_QUERIES_BYTES: Final = 32 * 1024 * 1024
"""The memory of all of them, about."""
PREPARED_QUERY_CHARACTERS: Final = 16 * 1024
"""The parameters of a request together, but for inputs: with more its query is not kept."""
REQUEST_FORMS: Final = 512
"""Lists of parameter names of which a container remembers what they say; and requests that it knows but for their
text."""
REQUEST_FORM_BYTES: Final = 8 * 1024
"""The names of the parameters of a request, about, or all but the vector of one that is known but for its text or
vector: longer ones are not remembered."""
QUERY_VECTOR_BYTES: Final = 64 * 1024
"""A request of which all but its vector may be known: longer ones go the general way."""
