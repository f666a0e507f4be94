"""The limits of the small languages, of types and values, and of words."""

from __future__ import annotations

from typing import Final

EXPRESSION_DEPTH: Final = 200
"""Nesting of parentheses, items and blocks in any of the languages."""
INHERITANCE_DEPTH: Final = 100
"""Generations of schemas, documents, rank profiles or document summaries that inherit each other."""
INDEXING_SCRIPT_DEPTH: Final = 30
"""Nesting of blocks and parentheses in one indexing script."""
INDEXING_CHARACTERS: Final = 64 * 1024 * 1024
"""The most characters of the texts that indexing scripts put together for one document."""
INDEXING_ELEMENTS: Final = 1_000_000
"""The most elements of the collections that indexing scripts make for one document."""
REPLACEMENT_CHARACTERS: Final = 5000
"""U+FFFD in one text that is tokenized, where they are more than a quarter of it."""
INDEXING_PATTERN_BYTES: Final = 1024 * 1024
"""Memory of the compiled regular expression of a `split`."""
DATA_TYPE_DEPTH: Final = 30
"""Nesting of collections and structs in one data type."""
VALUE_DEPTH: Final = 100
"""Nesting of objects and arrays in a value of a struct that holds itself."""
FIELD_PATH_STEPS: Final = 50
"""The most steps of the path to one place in a field."""
UPDATE_PLACES: Final = 10_000
"""Operations at places within fields in one update."""
UPDATE_WALKS: Final = 100
"""The most of these at places that are each element of an array or map."""
PREDICATE_DEPTH: Final = 50
"""Nesting of parentheses in one predicate of a document."""
PREDICATE_CHARACTERS: Final = 1024 * 1024
"""The longest predicate of a document."""
DATA_TYPE_PARTS: Final = 10_000
"""Types within one data type, each counted as often as it is there."""
SCHEMA_PARTS: Final = 1_000_000
"""Types within the fields and structs of a package; settings of the rank profiles, or fields of the document
summaries, of one schema. What is inherited counts in each heir."""
SCHEMA_PROBLEMS: Final = 500
"""Errors in schemas, or in the rank profiles of one, after which the rest of them is not looked at."""
NEAREST_WORDS: Final = 500
"""Known words among which the nearest one is looked for."""
LANGUAGE_TEXT_BYTES: Final = 4 * 1024 * 1024
SELECTION_CHARACTERS: Final = 1024 * 1024
CONDITION_CHARACTERS: Final = 64 * 1024
"""The longest selection that an operation demands: it is read again wherever the operation is applied."""
SELECTION_KEPT_CHARACTERS: Final = 4096
"""The longest selection that is cached; of longer ones only the last is: a thousand of them would fill the memory."""
SELECTION_DEPTH: Final = 100
"""Nesting of a document selection. Chains of `and` or of `or` are one level."""
SELECTION_PATTERNS: Final = 100
"""Regular expressions in one document selection."""
SELECTION_PATTERNS_KEPT: Final = 128
"""Compiled regular expressions, and as many globs."""
SELECTION_PATTERN_BYTES: Final = 1024 * 1024
"""Memory of one compiled regular expression."""
SELECTION_TEXT_CHARACTERS: Final = 1024 * 1024
"""The longest string that a document selection puts together."""
SELECTION_BINDINGS: Final = 100_000
"""Ways to bind the variables of a document selection that are looked at for one document."""
QUERY_TEXT_BYTES: Final = 1024 * 1024
QUERY_TEXT_KEPT_CHARACTERS: Final = 4096
"""The longest text of a query whose tree is kept for the next query."""
QUERY_TREES_CHARACTERS: Final = 32 * 1024
"""All texts, in each query language, whose trees are kept: for a character a tree takes up to some 400 bytes."""
VIEW_WORDS: Final = 4096
"""Words whose operators are kept for the queries of one view and document type."""
VIEW_FILTER_BYTES: Final = 4 * 1024 * 1024
"""Bitmaps of the documents that filters leave, kept for the queries of one view and document type."""
INLINE_QUERY_ITEMS: Final = 64
"""Items of a query, times document types, that are planned on the event loop; larger ones on a worker thread."""
INLINE_QUERY_HITS: Final = 100
"""Hits that a query writes."""
INLINE_RANKED_HITS: Final = 1000
"""Hits that it finds for a global phase, without writing them."""
INLINE_TENSOR_CELLS: Final = 1 << 15
"""Of the tensors that an answer shows: larger answers are written on a thread."""
INLINE_FEATURES: Final = 4096
"""Rank features that all hits of an answer show."""
INLINE_EXPLANATIONS: Final = 10
"""Hits of an answer that are shown with their explanations."""
INLINE_JSON_BYTES: Final = 4 * 1024 * 1024
"""What hits of an answer as JSON show of documents: it is copied."""
INLINE_XML_BYTES: Final = 128 * 1024
"""The same of an answer in another format: it is read, and written again."""
INLINE_GROUPS: Final = 4096
"""Groups, with their values, that are put together and written on the event loop."""
GROUPING_AS_GROUPS: Final = 32
"""How many groups a grouping counts as, beside the groups that it has."""
INLINE_QUERY_NS: Final = 1_000_000
"""Queries that are expected to take longer are answered on a worker thread. A hand-off costs up to 0.7 ms."""
SHORT_QUERY_NS: Final = 50_000_000
"""Queries that are expected to take no longer do not wait for others that take longer: where both threads for queries
are at work, one more thread takes them."""
QUERY_INLINE_BYTES: Final = 16 * 1024
"""Larger requests are read and planned outside the event loop, one at a time."""
QUERY_ITEMS: Final = 10_000
FREQUENT_TERMS_BYTES: Final = 64 * 1024 * 1024
"""Memory for bitmaps of the documents that have frequent terms, of the whole process. Terms beyond have none, and are
read from their postings. Of 500,000 abstracts all bitmaps together take 61 MB."""
TERM_WORTHS_BYTES: Final = 64 * 1024 * 1024
"""Memory for what occurrences of terms are worth by nativeRank, a byte for each document with the term, of the whole
process. Of terms beyond it is worked out by each query."""
TERM_FREQUENCIES: Final = 16_384
"""Counts of the live documents with a term that are kept of each state of the index: about 3 MB."""
FIELD_MATCH_CHARACTERS: Final = 1_000_000
"""The most characters of a text that are cut into words, where `match: max-length` sets no other limit."""
TERM_OCCURRENCES: Final = 10_000
"""The most occurrences of a term in a text that are indexed, where `match: max-occurrences` sets no other limit."""
TOKEN_CHARACTERS: Final = 1000
"""The longest word that is indexed, where `match: max-token-length` sets no other limit."""
QUERY_PATTERN_BYTES: Final = 1024 * 1024
"""Memory of one compiled regular expression of a query: what it may take for each byte of a string grows with it."""
QUERY_PATTERN_CHARACTERS: Final = 64 * 1024
"""The longest regular expression of a query: compiling it cannot be interrupted."""
QUERY_TERM_CHARACTERS: Final = 100_000
"""The longest text that is searched for in an index: cutting it into tokens cannot be interrupted."""
FUZZY_CHARACTERS: Final = 1024
"""The longest fuzzy term."""
