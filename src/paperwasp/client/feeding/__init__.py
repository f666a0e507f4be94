"""The feed client: many document operations at once over few connections, with retries, throttling and order by id.

    blocking.py, asynchronous.py  the two faces: threads with futures, and asyncio
    preparation.py               what a caller gives, as the engine takes it
    engine.py                    what is sent when: order by document id, throttling, retries, circuit breaker
    connections.py               endpoints, their connections, and the two protocols without input and output
    operations.py                what is asked and what comes of it
    settings.py                  all that a client can be given

The engine and all below it run on one event loop and have no locks. It follows the Java client of Vespa in what is
retried, what counts as a success, and how the number of requests in flight is chosen (docs/reference/feed-client.md).
"""
