"""Which metrics a consumer of `/metrics/v1`, `/metrics/v2` and `/prometheus/v1` is shown.

Vespa: DefaultMetrics.java (metrics); ValuesFetcher.java (metrics-proxy), where an unknown consumer has the default's.
Differs: without `consumer`, and for all but `default`, everything is shown: in Vespa that is `vespa`.
"""

from __future__ import annotations

from typing import Final

_DEFAULT_SET: Final = """
http.status.1xx rate
http.status.2xx rate
http.status.3xx rate
http.status.4xx rate
http.status.5xx rate
jdisc.gc.ms max average
mem.heap.free average
feed.latency sum count
jdisc.thread_pool.size max
jdisc.thread_pool.active_threads sum count min max
jdisc.thread_pool.work_queue.capacity max
jdisc.thread_pool.work_queue.size sum count min max
queries rate
query_latency sum count max 95percentile 99percentile average
hits_per_query sum count max average
totalhits_per_query sum count max average
degraded_queries rate
failed_queries rate
content.proton.resource_usage.disk average
content.proton.resource_usage.memory average
content.proton.resource_usage.feeding_blocked max last
content.proton.documentdb.documents.total max last
content.proton.documentdb.documents.ready max last
content.proton.documentdb.documents.active max last
content.proton.documentdb.disk_usage last
content.proton.documentdb.memory_usage.allocated_bytes last
content.proton.documentdb.matching.docs_matched rate
content.proton.transactionlog.disk_usage last
cluster-controller.down.count max last
cluster-controller.up.count max last
cluster-controller.resource_usage.nodes_above_limit max last
"""
"""Of Vespa's default set what is measured here."""
_DEFAULT: Final = frozenset(
    f"{name}.{kind}" for name, *kinds in map(str.split, _DEFAULT_SET.strip().splitlines()) for kind in kinds
)


def names_of(consumer: str) -> frozenset[str] | None:
    """The names, with what each value is at the end, that the consumer is shown; None: all."""
    return _DEFAULT if consumer == "default" else None
