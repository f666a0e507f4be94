"""The limits of requests whatever they ask for, of their bodies, and of the process that answers them."""

from __future__ import annotations

from typing import Final

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
MEMORY_FREED_BYTES: Final = 4 * 1024 * 1024
"""How much more memory may be free than there was least, or used by the process, before what is free is given back to
the system, whatever has freed it: that is looked at once a second."""
MEMORY_RESTING_BYTES: Final = 1024 * 1024
"""The same where work rests: where the process is as large as a second before, by a quarter of this."""
MEMORY_FREED_SHARE: Final = 1 / 32
"""Of the memory of the process, where that is more."""
GARBAGE_OBJECTS: Final = 10_000
"""How many more objects that may be parts of cycles are made than freed before those that came last are looked through
for garbage: about half a millisecond's work."""
GARBAGE_ROUNDS: Final = 5
"""After how many looks at the objects that came last those before them are looked through, and after how many of these
looks all: garbage of 250,000 objects at most waits for that, which may be 25 MB. With Python's own 10 it was a
million."""
OPEN_FILES: Final = 16_384
"""Descriptors that a process should be allowed: connections, files of the index and the store."""
HTTP_INLINE_CBOR_BYTES: Final = 64 * 1024
"""Larger bodies become JSON or CBOR outside the event loop."""
CBOR_BODY_BYTES: Final = 1024 * 1024
"""The size of a request body of CBOR, inflated. It is decoded at once, and no other thread runs meanwhile: each byte
may be a value."""
CBOR_DEPTH: Final = 200
"""Nesting of arrays, maps and tags."""
HTTP_COMPRESSED_LEAST_BYTES: Final = 128
"""Answers smaller than this are not compressed: those to writes, which compressing hardly makes smaller. Vespa does
so from 32 bytes."""
HTTP_INLINE_GZIP_BYTES: Final = 256 * 1024
"""Larger answers, and chunks of them, are compressed outside the event loop."""
HTTP_STREAM_STOP_SECONDS: Final = 5.0
"""How long a stop lets streamed answers, bodies and unread answers go on; less than it waits for requests at all."""
STOP_SECONDS: Final = 10
"""How long a stop waits for requests in flight."""
CONTAINER_PORTS_TRIED: Final = 1000
"""Ports after the command line's that a container without one of its own may get."""
RESTART_WAITING_MESSAGES: Final = 4096
"""Messages that wait while a content cluster is restarted; one more is answered with 429, and so are operations of more
than `OPERATION_QUEUE_BYTES` together."""
REINDEXING_CALL_SECONDS: Final = 150
"""How long a chunk of reindexing may take before it is requested again."""
HTTP_SMALL_GUNZIP_BYTES: Final = 64 * 1024
"""Bodies that say they inflate to no more than this are inflated on the event loop, without letting other threads run
meanwhile; all others outside it, one at a time."""
