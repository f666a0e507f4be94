"""Every limit on size, depth, queue and time, in one place. Units last in the name."""

from __future__ import annotations

from typing import Final

from paperwasp.connection_limits import *  # noqa: F403  # they are many, and named `limits.HTTP_…` all the same
from paperwasp.remote_limits import *  # noqa: F403  # as those

# Languages and requests
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
QUERY_TREES_CHARACTERS: Final = 128 * 1024
"""All texts, in each query language, whose trees are kept: for a character a tree takes up to some 400 bytes."""
VIEW_WORDS: Final = 4096
"""Words whose operators are kept for the queries of one view and document type."""
INLINE_QUERY_ITEMS: Final = 64
"""Items of a query, times document types, that are planned on the event loop; larger ones on a worker thread."""
INLINE_QUERY_HITS: Final = 100
"""Hits that a query writes."""
INLINE_RANKED_HITS: Final = 1000
"""Hits that it finds for a global phase, without writing them."""
INLINE_QUERY_NS: Final = 1_000_000
"""Queries that are expected to take longer are answered on a worker thread. A hand-off costs up to 0.7 ms."""
QUERY_INLINE_BYTES: Final = 16 * 1024
"""Larger requests are read and planned outside the event loop, one at a time."""
QUERY_ITEMS: Final = 10_000
FREQUENT_TERMS_BYTES: Final = 64 * 1024 * 1024
"""Memory for bitmaps of the documents that have frequent terms, of the whole process. Terms beyond have none, and are
read from their postings. Of 500,000 abstracts all bitmaps together take 61 MB."""
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
JSON_PIECE_BYTES: Final = 32 * 1024
"""Larger texts of JSON are decoded outside the event loop, and in pieces of about this size: to build the values of one
takes about a millisecond, for which nobody else runs."""
JSON_PIECE_VALUES: Final = 1024
"""Values that are written at a time where an array may be large, for the same reason."""
DOCUMENT_INLINE_QUERY_CHARACTERS: Final = 4096
"""Requests to /document/v1/ with a longer query string are read outside the event loop, too: a selection takes some
microseconds for each character."""
JSON_VALUES: Final = 4_000_000
"""Values and names in one text of JSON that is larger than that: refused before any of them is built."""
JSON_DEPTH: Final = 1024
"""Levels of arrays and objects in such a text."""
LARGE_REQUEST_BYTES: Final = 1024 * 1024
"""Bodies, inflated, of which so much memory is used for a while that it is given back to the system afterwards."""
HTTP_DOCUMENT_BODY_BYTES: Final = 100 * 1024 * 1024
HTTP_QUERY_BODY_BYTES: Final = 16 * 1024 * 1024
HTTP_PACKAGE_BODY_BYTES: Final = 512 * 1024 * 1024

HTTP_ESCAPES: Final = 500_000
"""Percent signs in one name or value: each takes half a microsecond to decode."""
HTTP_DISCARDED_BYTES: Final = 16 * 1024 * 1024
"""How much of a refused body is read and thrown away."""
HTTP_DISCARDED_MOST_BYTES: Final = 1 << 40
"""Nothing is read of a body that is announced to be longer."""
HTTP_DISCARD_SECONDS: Final = 2.0
"""How long that may take."""
MEMORY_RETURN_SECONDS: Final = 2.0
"""How long after the answer to a large request free memory is given back to the system."""
GARBAGE_OBJECTS: Final = 10_000
"""How many more objects that may be parts of cycles are made than freed before those that came last are looked through
for garbage: about half a millisecond's work."""
OPEN_FILES: Final = 16_384
"""Descriptors that a process should be allowed: connections, files of the index and the store."""
HTTP_INLINE_CBOR_BYTES: Final = 64 * 1024
"""Larger bodies become JSON or CBOR outside the event loop."""
CBOR_BODY_BYTES: Final = 1024 * 1024
"""The size of a request body of CBOR, inflated. It is decoded at once, and no other thread runs meanwhile: each byte
may be a value."""
CBOR_DEPTH: Final = 200
"""Nesting of arrays, maps and tags."""
HTTP_COMPRESSED_LEAST_BYTES: Final = 1400
"""Answers smaller than this, which fit into one packet, are not compressed."""
HTTP_INLINE_GZIP_BYTES: Final = 256 * 1024
"""Larger answers, and chunks of them, are compressed outside the event loop."""
HTTP_STREAM_STOP_SECONDS: Final = 5.0
"""How long a stop lets streamed answers, bodies and unread answers go on; less than it waits for requests at all."""
STOP_SECONDS: Final = 10
"""How long a stop waits for requests in flight."""
CONTAINER_PORTS_TRIED: Final = 1000
"""Ports after the command line's that a container without one of its own may get."""
RESTART_WAITING_MESSAGES: Final = 4096
"""Messages that wait while a content cluster is restarted; one more is answered with 429."""
REINDEXING_CALL_SECONDS: Final = 150
"""How long a chunk of reindexing may take before it is requested again."""
HTTP_SMALL_GUNZIP_BYTES: Final = 64 * 1024
"""Bodies that say they inflate to no more than this are inflated on the event loop, without letting other threads run
meanwhile; all others outside it, one at a time."""

# Queries
DEFAULT_HITS: Final = 10
MAX_HITS: Final = 400
MAX_OFFSET: Final = 1000
GLOBAL_RERANK_COUNT: Final = 10_000
"""How many hits of a document type the global phase ranks again: all of them are sent to the container."""
QUERY_TIMEOUT_MS: Final = 500
SIGNIFICANCE_MODEL_BYTES: Final = 256 * 1024 * 1024
"""The largest file with document frequencies, inflated."""
SUMMARY_FORMS: Final = 256
"""How many selections of summary fields one content node remembers what they show of."""
VOCABULARIES: Final = 32
"""Caches of what the words of shown texts are indexed as: one for each language and text profile."""
VOCABULARY_WORDS: Final = 32_768
"""Words in one such cache, each of at most 64 bytes. When it is full it is emptied."""
QUERY_THREADS: Final = 2
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
"""The parameters of a request together: with more its query is not kept."""
REQUEST_FORMS: Final = 512
"""Lists of parameter names of which a container remembers what they say."""
REQUEST_FORM_BYTES: Final = 8 * 1024
"""The names of the parameters of a request, about: longer ones are not remembered."""

# Feeding
DOCUMENT_TIMEOUT_MS: Final = 180_000
OPERATION_QUEUE_BYTES: Final = 256 * 1024 * 1024
"""The bodies of such operations together; a single larger one is taken when none waits."""
OPERATION_QUEUE_LENGTH: Final = 4096
"""Operations accepted and not yet written to the log; one more is refused, and waits in the container that sent it."""
DOCUMENT_QUEUE_LENGTH: Final = 256
"""Messages that wait in a container because their content cluster has no room; one more is answered with 429."""
DOCUMENT_QUEUE_SECONDS: Final = 3.0
"""How long the first in line may have waited when another joins it."""
DOCUMENT_QUEUE_BYTES: Final = 512 * 1024 * 1024
"""The bodies of such messages: an eighth of the memory that a service has at least. A single larger one is taken."""
GATHERING_PAUSES: Final = 4
GATHERING_SECONDS: Final = 0.001
"""The writer waits so often, and so long each time, for the rest of the operations that come together."""
LOG_BATCH_BYTES: Final = 64 * 1024 * 1024
LOG_BATCH_OPERATIONS: Final = 1024
LOG_RECORD_BYTES: Final = 1 << 30
LOG_FILE_BYTES: Final = 64 * 1024 * 1024
DOCUMENT_ID_BYTES: Final = 65_535
PARTITIONS: Final = 16
"""Partitions of a content cluster. Part of the on-disk format: never change it for existing data."""

# Visiting
VISIT_DOCUMENTS: Final = 1024
"""In one chunk; and what a visit without `wantedDocumentCount` gives at a time: as many as a bucket of Vespa's has."""
VISIT_BYTES: Final = 1024 * 1024
"""About, of one chunk."""
VISIT_SCANNED: Final = 8192
"""Documents and tombstones looked at for one chunk."""
VISIT_ANSWER_DOCUMENTS: Final = 65_536
"""In one answer that is not streamed, whatever `wantedDocumentCount` says."""
VISIT_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""About, of one answer that is not streamed."""
VISITS_AT_ONCE: Final = 1
"""Chunks of visits read at a time in one content cluster: fewer than its threads, so that queries never wait."""
VISITS_WAITING: Final = 256
"""Chunks of visits that wait for their turn in one content cluster; one more is answered with 429."""
VISIT_CONCURRENCY: Final = 1024
BULK_OPERATIONS: Final = 256
"""Operations of one bulk request that are in flight together."""
BULK_TIME_CHUNK_MS: Final = 60_000
VISIT_RETRY_SECONDS: Final = 0.02
"""Pause before what found a queue full is tried again."""

# Application packages
PACKAGE_FILES: Final = 10_000
PACKAGE_UNPACKED_BYTES: Final = 2 * 1024 * 1024 * 1024
PACKAGE_PATH_LENGTH: Final = 1024
PACKAGE_UNPACKED_FACTOR: Final = 200
"""How many times larger than its archive a package may be; a bomb is a thousand times larger and more."""
PACKAGE_UNPACKED_FREE_BYTES: Final = 64 * 1024 * 1024
"""Up to this size the factor does not matter."""
PACKAGE_PROBLEMS: Final = 50
"""Problems of one package that are reported; the rest are counted."""
OVERRIDE_DAYS: Final = 30
"""How far ahead an override of validation-overrides.xml may reach."""
SESSIONS: Final = 100
"""Inactive sessions kept of a tenant; when there are a tenth more, the oldest make room."""
TENANTS: Final = 100
TENANT_DEPLOYMENTS: Final = 16
"""Deployment steps of one tenant that run or wait; one more is answered with 429."""
APPLICATION_NAME_LENGTH: Final = 60
"""The longest name of a tenant, application or instance: together they are a key of the config store."""
DEPLOY_TIMEOUT_SECONDS: Final = 24 * 3600.0
"""The longest `timeout` of a deployment step that a request may have."""
DEPLOY_ANSWER_SECONDS: Final = 0.5
"""How much longer the answer waits for a step whose time is over to report the reason itself."""
CONVERGENCE_POLL_SECONDS: Final = 0.05
MODELS_KEPT: Final = 8
"""Models of packages kept for the step after: a prepared package is not built again to be activated."""
PACKAGE_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Unpacked packages up to this size are kept for the next request; of the models of larger ones only the last."""
MULTIPART_PARTS: Final = 16
MULTIPART_HEADER_BYTES: Final = 8 * 1024

# Reindexing
REINDEX_TRIES: Final = 60
"""Times in a row that a chunk may find its cluster overloaded or away, before the reindexing has failed."""
REINDEX_AGAIN_SECONDS: Final = 1.0
"""Pause before such a chunk is tried again."""
REINDEX_RETRY_SECONDS: Final = 600.0
"""Pause before a reindexing that failed goes on."""

# Logs
SERVICE_LOG_FILE_BYTES: Final = 8 * 1024 * 1024
SERVICE_LOG_FILES: Final = 8
SERVICE_LOG_MESSAGE_LENGTH: Final = 16 * 1024
SERVICE_LOG_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""The largest answer with log lines; the youngest are given."""
CONFIG_KEY_LENGTH: Final = 200
XML_BYTES: Final = 4 * 1024 * 1024
XML_DEPTH: Final = 64
QUERY_PROFILE_DEPTH: Final = 64
"""Levels of query profiles, or types, that inherit and refer to each other; and parts of a field's name."""
QUERY_PROFILE_VALUES: Final = 100_000
"""Values of one query profile with all that it refers to, in all its variants."""
QUERY_PROFILES_RESOLVED: Final = 1024
"""Variants of query profiles that are kept ready."""
SUBSTITUTED_VALUES: Final = 10_000
"""Values of query profiles that one request has put into others."""
XML_ELEMENTS: Final = 50_000
XML_ATTRIBUTES: Final = 100
"""The most attributes of one element."""
XML_INCLUDE_DEPTH: Final = 16
"""Files of a package that include each other."""
PACKAGE_FINDINGS: Final = 2_000
"""Errors and notes kept of one package; the rest are counted."""

# Semantic rules
RULE_BASES: Final = 1_000
RULE_STATEMENTS: Final = 100_000
"""Rules and named conditions of one rule base with all that it includes."""
RULE_BASE_DEPTH: Final = 32
"""Rule bases that include each other."""
RULE_DEPTH: Final = 50
"""Levels of parentheses in a condition, and of named conditions that refer to each other."""
RULE_STEPS: Final = 200_000
"""The steps of evaluating one query: conditions that are tried, and terms that are looked at or made."""
RULE_TRACE_MESSAGES: Final = 1_000
"""The most trace messages about the rules of one query."""

# Tensors
TENSOR_CELLS: Final = 1 << 26
"""The most cells of one tensor, cells of indexed dimensions that are not given included."""
FIELD_TENSOR_CELLS: Final = 1 << 22
"""The cells of all indexed dimensions of a field's tensor: a document with it, and a column, begin with so many."""
TENSOR_BATCH_CELLS: Final = 1 << 26
"""The most cells of the tensors of all hits that are computed at a time."""
TENSOR_FOLDED_CELLS: Final = 1 << 20
"""The cells of operands, multiplied, up to which a constant is computed with the profile, else with each query."""
TENSOR_DIMENSIONS: Final = 64
TENSOR_FILE_BYTES: Final = 1 << 28
"""The largest file of a constant, inflated."""
TENSOR_DIMENSION_SIZE: Final = 2**31 - 1

# Ranking
FOREST_FEATURE_CHARACTERS: Final = 1000
FOREST_FEATURES: Final = 10_000
"""Expressions that the splits of one xgboost or lightgbm model ask for."""
FOREST_FILE_BYTES: Final = 1 << 29
FOREST_NODES: Final = 4_000_000
UBJSON_DEPTH: Final = 50
UBJSON_VALUES: Final = 4_000_000
"""The most values of one file; an array of numbers of one type is one value."""
MODEL_EVALUATION_SECONDS: Final = 30
"""How long what the Model-evaluation API evaluates together may take."""
MODEL_EVALUATIONS_WAITING: Final = 1000
"""Requests of the Model-evaluation API that wait, or are evaluated, before others are refused."""
MODEL_FILE_BYTES: Final = 2**31 - 1
"""The largest file of a model: no more fits into a protocol buffer."""
MODEL_NAME_BYTES: Final = 1024
MODEL_VALUES: Final = 1000
"""Inputs and outputs of one model."""
ONNX_BATCH_CELLS: Final = 1 << 22
"""The most cells of all inputs of one run."""
ONNX_BATCH_HITS: Final = 128
ONNX_PROBE_BYTES: Final = 8 << 30
"""The address space, beside that for the model, of the process that tries a model at a deployment."""
ONNX_PROBE_SECONDS: Final = 60
ONNX_PROBES_KEPT: Final = 1000
RANK_ARGUMENT_CHARACTERS: Final = 10_000
"""The longest argument of a rank feature, with the arguments of functions put in their places."""
RANK_EXPRESSION_DEPTH: Final = 300
"""Nesting of one rank expression with the functions that it calls put in their places."""
FIELD_LENGTH: Final = 2**31 - 1
"""In words, where a rank property says one."""
FIELD_MATCH_SEGMENTATIONS: Final = 1_000_000
"""Alternative segmentations of one hit, by a rank property."""
FIELD_MATCH_OCCURRENCES: Final = 1_000_000_000
FIELD_MATCH_PROXIMITY: Final = 1000
"""Words between which proximity matters, by a rank property."""
LISTED_TERMS: Final = 100
"""Terms whose features are among the default rank features, by rank properties."""
BOOST_TABLE_VALUES: Final = 1 << 16
"""In one table of a native rank feature. A field may have several, and a schema many fields."""
QUERY_VECTOR_ITEMS: Final = 100_000
"""Numbers of a vector that a query brings as text, for a rank feature."""
PATH_POINTS: Final = 1_000
"""The most points of the path from which a query measures distances: each is compared with all positions of hits."""
EXPLAINED_DEPTH: Final = 60
"""Levels of the tree that explains the score of a hit: clients read JSON of a bounded depth."""
EXPLAINED_HITS: Final = 100
"""The most hits of one answer of a content cluster that have such a tree."""
EXPLAINED_NODES: Final = 1000
"""The most nodes of one tree."""
EXPLAINED_PLAN_NODES: Final = 10_000
"""The most nodes whose values are shown of one rank expression, with its functions put in their places."""
EXPLAINED_TENSOR_CELLS: Final = 32
EXPLAINED_TEXT_CHARACTERS: Final = 200
RANK_INFERENCE_NODES: Final = 500_000
"""The most nodes whose types are inferred for a rank profile, once for each call of a function with other arguments."""
RANK_TREES_CHARACTERS: Final = 1024 * 1024
"""All rank expressions whose trees are remembered."""
RANK_PROGRAM_OPERATIONS: Final = 1_000_000
"""The most nodes visited while one rank expression is compiled, once for each call of a function."""

# The content node
STORE_WRITE_BUFFER_BYTES: Final = 16 * 1024 * 1024
STORE_CACHE_BYTES: Final = 8 * 1024 * 1024
STORE_BLOB_BYTES: Final = 256 * 1024
"""Documents of this size and more stand in files of their own kind: in a block of a table, all that is read from the
same block would be decompressed with them."""
STORE_REMOVALS_BUFFER_BYTES: Final = 1024 * 1024
ROW_FILES_MERGED: Final = 4
"""Files of the row store of one size class that are merged into one."""
ROW_FILE_LEAST_BYTES: Final = 1024 * 1024
"""Files of the row store up to this are of one size class; each further class is `ROW_FILES_MERGED` times as large."""
ROW_FILE_MOST_BYTES: Final = 256 * 1024 * 1024
"""No files of the row store are merged into a larger one. Files have less than 4 GB: their offsets take four bytes."""
ROW_PIECE_BYTES: Final = 4 * 1024 * 1024
"""Held in memory at a time while files of the row store are merged."""
ROW_CHUNK_DOCUMENTS: Final = 8192
"""Documents that are added to the row store at a time, at most."""
ROW_CHUNK_BYTES: Final = 8 * 1024 * 1024
"""Bytes of JSON that end such a chunk earlier."""
ROW_CHUNK_LEAST: Final = 1024
"""New documents that are added to the row store while others come; fewer only when no more have come for a while."""
GRAPH_LINKS: Final = 1024
"""The most links of a node in a graph over vectors, by the schema: the kernel makes no graph with more."""
GRAPH_FIRST_VECTORS: Final = 256
"""Vectors that are added at first to a graph that is built behind the writer."""
GRAPH_STEP_SECONDS: Final = 0.2
"""About how long each later step takes: other chores of the cluster wait for it."""
GRAPH_SECONDS: Final = 1.0
"""How often it is looked whether a graph is to be built."""
ROW_SECONDS: Final = 1.0
"""How often documents are looked for that are not in the row store yet."""
TOMBSTONE_SECONDS: Final = 14 * 24 * 3600
"""How long it is remembered that a document was removed."""
CHECKPOINT_DOCUMENTS: Final = 65_536
"""Rows added since the last checkpoint after which the next one is due."""
CHECKPOINT_LOG_BYTES: Final = 64 * 1024 * 1024
"""Bytes written to the log since the last checkpoint after which the next one is due."""
CHECKPOINT_OPERATIONS: Final = 262_144
"""Operations since the last checkpoint after which the next one is due: a start applies them again."""
CHECKPOINT_INDEX_BYTES: Final = 64 * 1024 * 1024
"""Memory of the index that is not yet in files, after which a checkpoint is due."""
CHORE_RETRY_SECONDS: Final = 60.0
"""Pause after a chore of a content cluster that failed."""
RECOVERY_FIRST_SECONDS: Final = 1.0
"""Pause before a content node that could not apply what it had logged tries again; it doubles up to the next."""
RECOVERY_LONGEST_SECONDS: Final = 32.0
PREPARE_SECONDS: Final = 1.0
"""How often posting lists of attributes that have grown old are looked for."""
PRUNE_SECONDS: Final = 60.0
"""How often tombstones are looked for that are old enough to go."""
PRUNE_PAUSE_SECONDS: Final = 0.05
PRUNE_TOMBSTONES: Final = 1000
"""Pruned at a time."""
COLLECT_DOCUMENTS: Final = 256
"""Removed at a time by garbage collection: a client's operation waits behind no more."""
COLLECT_PAUSE_SECONDS: Final = 0.05
"""At least, between two pieces of garbage collection."""
COLLECT_SHARE: Final = 0.2
"""The most of the time of one thread that garbage collection takes."""
COLLECT_FIRST_SECONDS: Final = 60.0
"""How long after a start or a change garbage collection begins, where its interval is not shorter."""
COLLECT_ANSWER_SECONDS: Final = 60.0
"""How long removes of garbage collection may take before the piece counts as failed."""
DISK_LIMIT: Final = 0.75
"""Share of disk from which on feeding is blocked, unless services.xml says another."""
MEMORY_LIMIT: Final = 0.8
DISK_RESERVE_BYTES: Final = 256 * 1024 * 1024
"""Free disk below which feeding is blocked, whoever uses the rest."""
MEMORY_ARENAS: Final = 1
"""Into which the C library divides memory: what is free in one is of no use to the threads of another. A thread seldom
waits for it, since few allocate without the interpreter's lock, and each has small pieces of its own."""
RESOURCE_HYSTERESIS: Final = 0.01
"""How far below its limit usage must fall before feeding goes on."""
RESOURCE_SAMPLE_SECONDS: Final = 1.0
"""How often usage is measured."""
DEAD_ROWS_SHARE: Final = 0.5
"""Share of dead rows above which a start gives all documents new lids."""
DEAD_ROWS_LEAST: Final = 100_000
"""Dead rows below which that is never worth it."""
DEAD_ROWS_SERVED_LEAST: Final = 4096
"""Dead rows, or strings that no row has any more, below which a node that serves does not do the same behind its
writer. Some kilobytes each."""
DEAD_BYTES_LEAST: Final = 8 * 1024 * 1024
"""Bytes of replaced documents, as JSON, below which that is not done for their size. Memory may be ten times that."""
COMPACTION_DOCUMENTS: Final = 256
"""Given new rows at a time, between two pauses as long as they took."""
REINDEX_DOCUMENTS: Final = 512
"""Documents that are indexed again at a time: a client's operation waits behind no more."""
REINDEX_BYTES: Final = 8 * 1024 * 1024
REINDEX_SLOW_SECONDS: Final = 10.0
"""How long documents of a chunk are processed where scripts call components; it may take the time of one call more."""
REINDEX_SCANNED: Final = 20_000
"""Documents of any type looked at for those."""
