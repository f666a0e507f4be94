"""Tells the cost of a query in the headers of its answer, to clients that ask with `X-Yahoo-Vespa-Benchmarkdata`.

Such a client measures: queries have no soft timeout unless they ask for it, and every error is one of HTTP.
Vespa: SearchHandler.java, BenchmarkingHeaders.java and VespaHeaders.java (container-core, container-search)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paperwasp.base.records import replace
from paperwasp.container.search.binding import ReadyQuery
from paperwasp.container.search.rendering import SearchResult, status_of
from paperwasp.http.messages import Request, Response

_REQUEST: Final = "x-yahoo-vespa-benchmarkdata"
_COVERAGE: Final = "x-yahoo-vespa-benchmarkdata-coverage"
_SOFT_TIMEOUT: Final = "ranking.softtimeout.enable"


def is_benchmark(request: Request) -> bool:
    """Whether the client asks for the headers. Their value does not matter."""
    return _REQUEST in request.headers


def measured_pairs(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parameters of a request whose cost is to be reported."""
    given = any(name.lower() == _SOFT_TIMEOUT for name, _ in pairs)
    return [*pairs] if given else [*pairs, (_SOFT_TIMEOUT, "false")]


def measured_response(
    response: Response, request: Request, ready: ReadyQuery, result: SearchResult, elapsed_ns: int
) -> Response:
    """The answer with its cost."""
    headers = _headers(request, ready, result, elapsed_ns)
    return replace(response, status=status_of(result, is_eager=True), headers=headers)


def _headers(request: Request, ready: ReadyQuery, result: SearchResult, elapsed_ns: int) -> dict[str, str]:
    """Counts of the result, and times in milliseconds; with the coverage where that is requested, too."""
    fill_ms = result.summary_ns // 1_000_000
    values = {
        "NumHits": result.hit_count + len(result.groups),
        "NumFastHits": result.hit_count,
        "TotalHitCount": result.total_count,
        "QueryHits": ready.hits,
        "QueryOffset": ready.offset,
        "NumErrors": int(bool(result.errors)),
        "SearchTime": max(0, elapsed_ns // 1_000_000 - fill_ms),
        "AttributeFetchTime": 0,
        "FillTime": fill_ms,
    }
    if _COVERAGE in request.headers and (coverage := result.coverage) is not None:
        full = int(not coverage.degraded)
        values |= {"DocsSearched": coverage.documents, "NodesSearched": coverage.clusters, "FullCoverage": full}
    return {f"X-Yahoo-Vespa-{name}": str(value) for name, value in values.items()}
