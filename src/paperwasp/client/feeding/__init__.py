"""The feed client: many document operations at once over few connections, with retries, throttling and order by id.

    blocking.py, asynchronous.py  the two faces: threads with futures, and asyncio
    engine.py                    what is sent when: order by document id, throttling, retries, circuit breaker
    cluster.py, line.py          endpoints, their connections, and what is in flight on each
    http2.py, http1.py           the two protocols, without input and output
    operations.py, results.py    what is asked and what comes of it
    settings.py, retries.py, throttling.py, circuit.py, statistics.py

The engine and all below it run on one event loop and have no locks. It follows the Java client of Vespa in what is
retried, what counts as a success, and how the number of requests in flight is chosen (docs/reference/feed-client.md).
"""
