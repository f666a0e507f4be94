"""HTTP/1.1 and HTTP/2 servers, and the requests and responses that they and the handlers exchange as values.

- messages, routing: requests and responses as values; which handler answers
- bodies, multipart, cbor, compression, pretty_json, streaming: bodies and their formats
- server, listening, tls_files: ports, their sockets, and certificates that are read again when they change
- connection, exchange: the connection of a client; one request on it, and its response
- http1_line, http2_line: the two protocols on a connection
- request_batch, routed_requests, feed_reader: requests that are answered together, or by threads of the core
"""
