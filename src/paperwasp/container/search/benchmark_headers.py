"""The cost of a query in the headers of its answer, for clients that ask with `X-Yahoo-Vespa-Benchmarkdata`.

Vespa: BenchmarkingHeaders.java and VespaHeaders.java (container-core, container-search)
"""

from __future__ import annotations

from typing import Final

from paperwasp.container.search.plan import SearchPlan
from paperwasp.container.search.rendering import SearchResult
from paperwasp.http.messages import Request

_REQUEST: Final = "x-yahoo-vespa-benchmarkdata"
_COVERAGE: Final = "x-yahoo-vespa-benchmarkdata-coverage"


def is_benchmark(request: Request) -> bool:
    """Whether the client asks for the headers. Their value does not matter."""
    return bool(request.header(_REQUEST))


def benchmark_headers(request: Request, plan: SearchPlan, result: SearchResult, elapsed_ns: int) -> dict[str, str]:
    """Counts of the result, and times in milliseconds; with the coverage where that is asked for, too."""
    fill_ms = result.summary_ns // 1_000_000
    values = {
        "NumHits": result.hit_count,
        "NumFastHits": result.hit_count,
        "TotalHitCount": result.total_count,
        "QueryHits": plan.hits,
        "QueryOffset": plan.offset,
        "NumErrors": len(result.errors),
        "SearchTime": max(0, elapsed_ns // 1_000_000 - fill_ms),
        "AttributeFetchTime": 0,
        "FillTime": fill_ms,
    }
    if request.header(_COVERAGE) and (coverage := result.coverage) is not None:
        full = int(not coverage.degraded)
        values |= {"DocsSearched": coverage.documents, "NodesSearched": coverage.clusters, "FullCoverage": full}
    return {f"X-Yahoo-Vespa-{name}": str(value) for name, value in values.items()}
