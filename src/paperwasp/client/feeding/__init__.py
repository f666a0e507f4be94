"""The feed client: many document operations at once over few connections, with retries, throttling and order by id.

    blocking.py, asynchronous.py  the two faces: threads with futures, and asyncio
    preparation.py               what a caller gives, as the engine takes it
    engine.py                    what is sent when: order by document id and retries
    throttling.py                how many operations are in flight
    circuit_breaker.py           stops sending to a service that fails
    endpoints.py                 the endpoints, and which connection a request goes to
    connections.py               one connection; http2_codec.py, http1_codec.py: its protocol without input and output
    operations.py                what is asked and what comes of it
    statistics.py                counts of it
    settings.py                  all that a client can be given

The engine and all below it run on one event loop and have no locks. It follows the Java client of Vespa in what is
retried, what counts as a success, and how the number of requests in flight is chosen (docs/reference/feed-client.md).
"""
