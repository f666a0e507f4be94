"""The search handler: one request in, one answer out, whatever goes wrong.

    request → parameters → plan (a SearchRequest for each content cluster) → messenger → merge → JSON or CBOR

Runs on the event loop and never blocks it. The configuration is one reference, read once for each request.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from heapq import merge
from itertools import islice
from typing import Any, Final, Protocol

from paperwasp.container.search_parameters import SearchParameters, read_parameters
from paperwasp.container.search_plan import ClusterConfig, SearchConfig, SearchPlan, plan_search
from paperwasp.container.search_rendering import Coverage, SearchError, SearchResult, accepted_format, respond
from paperwasp.container.search_request import parameter_pairs
from paperwasp.content.messages import Hit, SearchRequest, SearchResponse
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.yql import to_yql

__all__ = ["ClusterConfig", "SearchConfig", "SearchHandler"]

_LOG: Final = logging.getLogger("paperwasp.search")
_UNSPECIFIED: Final = 5
_TIMED_OUT: Final = 12
GRACE_SECONDS: Final = 0.25
"""How long a content node may overrun the deadline, which it keeps itself, before its answer is no longer awaited."""


class Messenger(Protocol):
    """What of `cluster.messenger.Messenger` a search needs."""

    def request(self, address: str, message: object) -> Awaitable[object]: ...


class SearchHandler:
    """Answers `/search/`. `configure` may be called at any time; requests under way keep what they started with."""

    def __init__(
        self,
        messenger: Messenger,
        config: SearchConfig | None = None,
        environment: Environment = SYSTEM,
        address_of: Callable[[str], str] = "content/{}".format,
    ) -> None:
        """`address_of` says where a content cluster of the application is served."""
        self._messenger = messenger
        self._address_of = address_of
        self._config = config or SearchConfig()
        self._environment = environment

    def configure(self, config: SearchConfig) -> None:
        self._config = config

    async def handle(self, request: Request) -> Response:
        """The answer to a GET or POST. Never raises but for cancellation."""
        started_ns = self._environment.monotonic_ns()
        format_ = accepted_format(request)
        try:
            config = self._config
            parameters = read_parameters(parameter_pairs(request), config.query_profiles)
            format_ = parameters.format or format_
            plan = plan_search(config, parameters, started_ns)
            result = await self._search(plan, parameters, started_ns)
        except PaperwaspError as error:
            result = SearchResult(errors=[SearchError.of(error)])
        except Exception as error:
            _LOG.exception("a search request failed")
            result = SearchResult(errors=[SearchError(_UNSPECIFIED, f"Failed: {type(error).__name__}")])
        return respond(result, format_)

    async def _search(self, plan: SearchPlan, parameters: SearchParameters, started_ns: int) -> SearchResult:
        if plan.timeout_ms <= 0:
            return SearchResult(errors=[SearchError(_TIMED_OUT, "No time left for searching")])
        asked = [(query.cluster, query.request) for query in plan.queries if query.request is not None]
        if len(asked) == 1:
            answers = [await self._ask(*asked[0], plan.timeout_ms)]
        else:
            answers = await asyncio.gather(*(self._ask(*query, plan.timeout_ms) for query in asked))
        result = merged(plan, answers, soft_timeout=parameters.soft_timeout)
        if parameters.timing or parameters.trace_level:
            elapsed_ms = (self._environment.monotonic_ns() - started_ns) // 1_000_000
            if parameters.timing:
                seconds = elapsed_ms / 1000
                result.timing = {"querytime": seconds, "summaryfetchtime": 0.0, "searchtime": seconds}
            result.trace = _trace(plan, parameters, result, elapsed_ms)
        return result

    async def _ask(self, cluster: str, request: SearchRequest, timeout_ms: float) -> Answer:
        try:
            async with asyncio.timeout(timeout_ms / 1000 + GRACE_SECONDS):
                answer = await self._messenger.request(self._address_of(cluster), request)
        except TimeoutError:
            return cluster, SearchError(_TIMED_OUT, f"Timed out after {timeout_ms:g} ms", cluster)
        except PaperwaspError as error:
            return cluster, SearchError.of(error, cluster)
        except Exception as error:
            _LOG.exception("cluster %s failed", cluster)
            return cluster, SearchError(_UNSPECIFIED, f"Failed: {type(error).__name__}", cluster)
        assert isinstance(answer, SearchResponse)
        return cluster, answer


Answer = tuple[str, SearchResponse | SearchError]
"""A cluster, and what it said or the error to show for it."""


def merged(plan: SearchPlan, answers: list[Answer], *, soft_timeout: bool = True) -> SearchResult:
    """The answers of the clusters as one result; without `soft_timeout`, a cluster out of time gives no hits."""
    errors = [SearchError.of(error, query.cluster) for query in plan.queries for error in query.errors]
    found: list[tuple[str, SearchResponse]] = []
    for cluster, answer in answers:
        if isinstance(answer, SearchError):
            errors.append(answer)
        elif answer.timed_out and not soft_timeout:
            errors.append(SearchError(_TIMED_OUT, f"Timed out after {plan.timeout_ms:g} ms", cluster))
        else:
            found.append((cluster, answer))
    return SearchResult(
        hits=_merged_hits(plan, found),
        total_count=sum(answer.total_count for _, answer in found),
        coverage=_coverage(found) if found else None,
        errors=errors,
        summary_fields=plan.summary_fields,
    )


def _merged_hits(plan: SearchPlan, found: list[tuple[str, SearchResponse]]) -> list[tuple[str, Hit]]:
    lists = [[(cluster, hit) for hit in answer.hits] for cluster, answer in found]
    if len(plan.queries) == 1:
        return lists[0] if lists else []
    by_relevance = merge(*lists, key=lambda entry: -entry[1].relevance)
    return list(islice(by_relevance, plan.offset, plan.offset + plan.hits))


def _coverage(found: list[tuple[str, SearchResponse]]) -> Coverage:
    full = sum(not answer.timed_out for _, answer in found)
    documents = sum(answer.documents for _, answer in found)
    searched = sum(int(answer.documents * answer.coverage) for _, answer in found)
    percent = 100 * searched // documents if documents else 100
    return Coverage(searched, percent, len(found), full)


def _trace(
    plan: SearchPlan, parameters: SearchParameters, result: SearchResult, elapsed_ms: int
) -> list[dict[str, Any]] | None:
    """The steps of the query, as a tree of messages; more of them at higher levels."""
    if not parameters.trace_level:
        return None
    level = parameters.trace_level
    used = f"Using {parameters.profile}" if parameters.profile else "No query profile is used"
    steps = [_step(parameters, 0, used)]
    if parameters.yql and level >= 2:
        steps.append(_step(parameters, 0, f"YQL query parsed: [{to_yql(plan.tree)}]"))
    asked = [
        _step(parameters, 0, _asked(query.cluster, query.request, plan)) for query in plan.queries if query.request
    ]
    if level >= 2:
        shown = f"{len(result.hits)} hits of {result.total_count} merged, {len(result.errors)} errors"
        asked.append(_step(parameters, elapsed_ms, shown))
    return [*steps, {"children": asked}]


def _step(parameters: SearchParameters, timestamp_ms: int, message: str) -> dict[str, Any]:
    return {"timestamp": timestamp_ms, "message": message} if parameters.trace_timestamps else {"message": message}


def _asked(cluster: str, request: SearchRequest, plan: SearchPlan) -> str:
    types = f" restrict=[{','.join(request.document_types)}]" if request.document_types else ""
    return (
        f"{cluster}: query=[{to_yql(plan.tree)}] timeout={plan.timeout_ms:g}ms "
        f"offset={request.offset} hits={request.hits} rankprofile[{request.rank_profile}]{types}"
    )
