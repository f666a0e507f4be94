"""The limits of connections of HTTP: their number, their time in each state, their memory. See `paperwasp.limits`."""

from __future__ import annotations

from typing import Final

HTTP_CONNECTIONS: Final = 4096
"""Connections to one port. More wait until others have gone."""
HTTP_CONNECTIONS_CROWDED: Final = 3584
"""More than these, and idle ones are closed until there are no more than HTTP_CONNECTIONS_CALM."""
HTTP_CONNECTIONS_CALM: Final = 3072
HTTP_ADDRESS_CONNECTIONS: Final = 2048
"""Connections of one address to one port. Idle ones beyond are closed."""
HTTP_ADDRESS_CONNECTIONS_MOST: Final = 2304
"""Connections of one address to one port where none of them is idle; further ones are refused."""
HTTP_BACKLOG: Final = 1024
HTTP_ACCEPTED: Final = 64
"""Connections that are accepted in one wake-up of the event loop."""
HTTP_ACCEPT_SECONDS: Final = 1.0
"""How long a port accepts nothing after the system had no descriptor or memory for a connection."""
HTTP_TLS_HANDSHAKE_SECONDS: Final = 10.0
HTTP_TLS_SHUTDOWN_SECONDS: Final = 1.0
"""How long the end of TLS may take, which a client need not answer."""
HTTP_FIRST_REQUEST_SECONDS: Final = 30.0
"""How long a connection may be silent, or send the head of its first request."""
HTTP_HEAD_SECONDS: Final = 30.0
"""How long the head of a later request may take, from its first byte on."""
HTTP_IDLE_MS: Final = 180_000
"""How long a connection may be idle after an answer."""
HTTP_LOOK_SECONDS: Final = 1.0
"""How often connections are looked at."""
HTTP_RECEIVE_BYTES: Final = 64 * 1024
"""Read from a connection at a time; and when a client has sent so much ahead of an answer, no more is read from it."""
HTTP_TURN_REQUESTS: Final = 32
"""Requests sent ahead over HTTP/1.1 that are answered before other connections have their turn."""
HTTP_TURN_SECONDS: Final = 0.002
"""How long the requests of one connection may take before others have their turn; one that takes longer by itself is
all that is taken."""
HTTP_ROUND_SECONDS: Final = 0.005
"""How long the requests that came in one wake-up of the event loop may take: those beyond wait in line, of which each
wake-up serves as much again."""
HTTP_BATCH_REQUESTS: Final = 64
"""Requests of a feed that are gathered before they are begun together, but for those of one read of HTTP/2."""
HTTP_BATCH_SECONDS: Final = 0.001
"""How long they are gathered, where answers to others before them are waited for."""
HTTP_FEED_FORMS: Final = 256
"""Different heads of puts and updates over HTTP/1.1 that are known; the document's name and the length are no part."""
HTTP_TURN_CHUNKS: Final = 256
"""Chunks of a body that are read before other connections have their turn."""
HTTP_HEADERS_BYTES: Final = 64 * 1024
"""Of the head of a request."""
HTTP_HEADER_FIELDS: Final = 100
HTTP_KNOWN_HEADERS: Final = 512
"""Blocks of header fields of which a process remembers what they say."""
HTTP_KNOWN_HEADERS_BYTES: Final = 2048
"""Longer blocks are not remembered."""
HTTP_CHUNK_LINE_BYTES: Final = 8 * 1024
"""Of a line between the chunks of a body."""
HTTP_BODY_SECONDS: Final = 30.0
"""How long a body may take to come, beside the time that its size allows it:"""
HTTP_BODY_BYTES_A_SECOND: Final = 16 * 1024
HTTP_BODIES_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the bodies of all requests under way, as sent and as inflated; one that is alone may be larger."""
HTTP_STREAMED_ANSWERS: Final = 64
"""Streamed answers of one port that are being made at a time; one more gets 429. Those that wait for their clients to
read do not count."""
HTTP_STREAMED_ANSWERS_MOST: Final = 1024
"""Of one port with those that wait for their clients: for one more the longest unread is broken off."""
HTTP_WRITE_BUFFER_BYTES: Final = 64 * 1024
"""When a connection has more than this to send, no request is taken from it and no chunk of a stream is asked for."""
HTTP_JOINED_BYTES: Final = 1024 * 1024
"""Of bodies that are put together with their heads, to be sent in one piece."""
HTTP_SOCKET_UNSENT_BYTES: Final = 128 * 1024
"""Of answers that the system keeps for a client beyond what is on its way (Linux: TCP_NOTSENT_LOWAT). Without it these
are megabytes, and a client that does not read has many requests answered before anybody notices."""
HTTP_UNSENT_BYTES: Final = 1024 * 1024
"""Of answers on one HTTP/2 connection for which its client gives no window: with more, its requests wait."""
HTTP_UNREAD_SECONDS: Final = 60.0
"""How long a client may read nothing of an answer."""
HTTP_UNREAD_ANSWERS_BYTES: Final = 512 * 1024 * 1024
"""Of answers of one port that wait to be read. Where it is more, the longest unread lose their connections."""
HTTP_LOG_LINES: Final = 20
"""Lines that one place of the code logs about connections in HTTP_LOG_SECONDS; further ones are counted."""
HTTP_LOG_SECONDS: Final = 60.0
HTTP_STREAMS: Final = 512
"""Requests in flight on one HTTP/2 connection."""
HTTP_STREAM_WINDOW_BYTES: Final = 1024 * 1024
"""What an HTTP/2 client may send of one body before it is taken."""
HTTP_CONNECTION_WINDOW_BYTES: Final = 4 * 1024 * 1024
HTTP_BUDGET_SECONDS: Final = 10.0
"""How often an HTTP/2 connection gets new budgets for resets, and for frames that ask nothing."""
