"""The handler of `/search/`, called by `container.app.ContainerApp`: one request in, one answer out, come what may.

    request without its text → KnownRequest, from before → TextAnswers: plans; or its route  (the fast way)
    request → shape → prepared query → ReadyQuery → messenger → merge → JSON, CBOR or XML   (the general way)

Runs on the event loop and never blocks it. The configuration is one reference, read once for each request.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, ParamSpec, Protocol, TypeVar

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.patterns import compile_later
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.container.search.answer_cache import AnswerCache, CachedAnswer, Key, key_of, sets_aside
from paperwasp.container.search.benchmark import is_benchmark, measured_pairs, measured_response
from paperwasp.container.search.binding import ReadyQuery
from paperwasp.container.search.collapse import Entry, batches, collapsed
from paperwasp.container.search.config import ClusterConfig, SearchConfig
from paperwasp.container.search.known_requests import CutRequest, KnownRequests, cut_request, known_request
from paperwasp.container.search.merge import (
    GRACE_SECONDS,
    TIMED_OUT,
    ClusterReply,
    has_many_groups,
    is_large,
    merged,
    yielding,
)
from paperwasp.container.search.parameters import check_window, read_parameters
from paperwasp.container.search.prepare import prepare_and_bind, prepare_query
from paperwasp.container.search.prepared_cache import CachedQuery, PreparedCache
from paperwasp.container.search.rendering import SearchError, SearchResult, accepted_format, respond
from paperwasp.container.search.request import parameter_pairs, plain_format
from paperwasp.container.search.rules import rule_base_of
from paperwasp.container.search.settings import SearchParameters
from paperwasp.container.search.shapes import Form, Forms, Pairs, Shape, shape_of
from paperwasp.container.search.text_answers import GeneralWay, TextAnswers
from paperwasp.container.search.text_routes import RouteAnswers, find_route
from paperwasp.container.search.trace import rule_steps, trace_of
from paperwasp.container.search.values import XML_FORMATS
from paperwasp.container.search.xml import ShownTypes, respond_xml
from paperwasp.container.threads import EmbeddingThreads
from paperwasp.coordination.messages.documents import StampRequest
from paperwasp.coordination.messenger import Answered
from paperwasp.core import _core
from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.errors import PaperwaspError, Timeout, without_frames
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun, settled
from paperwasp.schema.teaser_settings import HI_TAGS
from paperwasp.search.grouping.shown_groups import ShownRoot
from paperwasp.search.query import Query, SearchResponse

__all__ = ["ClusterConfig", "SearchConfig", "SearchHandler", "merged"]

_LOG: Final = logging.getLogger("paperwasp.search")
_UNSPECIFIED: Final = 5
_YQL_TIMEOUT: Final = compile_later(r"\btimeout\s+([0-9]{1,10})\b", re.IGNORECASE)
_YQL_END: Final = 1000
"""Characters: its last clauses, without a grouping."""
_STAMP: Final = StampRequest()


_JSON_FORMATS: Final = ("", "json")
"""In which hits that a cluster has rendered are only joined."""
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class Messenger(Protocol):
    """The part of `coordination.messenger.Messenger` that a search needs."""

    def ask(self, address: str, message: object) -> Awaitable[object]: ...

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None: ...


class _Shown(Struct):
    """How the answer is written, as far as it is known: nothing is before the parameters are read."""

    accepted: str
    """The format that the request accepts, unless its parameters say another."""
    format: str = ""
    callback: str = ""


class _Shaped(NamedTuple):
    """A request whose shape is known: what is kept for it, before its parameters are read."""

    pairs: Pairs
    form: Form
    key: Key
    cached: CachedAnswer | None
    """The answer that is kept, and may be given if it still holds."""
    shape: Shape
    kept: CachedQuery | None
    """The query that is prepared for the shape."""
    measured: bool
    """Whether the answer is to say what it took."""


class SearchHandler:
    """Answers `/search/`: `begin` is called with each request that is read. `configure` may be called at any time;
    requests under way keep what they started with."""

    def __init__(
        self,
        messenger: Messenger,
        config: SearchConfig | None = None,
        environment: Environment = SYSTEM,
        address_of: Callable[[str], str] = "content/{}".format,
        prepared: PreparedCache | None = None,
    ) -> None:
        """`address_of` says where a content cluster of the application is served. `prepared`: what keeps the prepared
        queries."""
        self._messenger = messenger
        self._address_of = address_of
        self._config = config or SearchConfig()
        self._environment = environment
        self._has_clock_of_core = environment.monotonic_ns is time.monotonic_ns
        """Whether plans may run: the core knows no other clock."""
        self.cache = AnswerCache()
        self._forms = Forms()
        self._known = KnownRequests()
        self._texts = TextAnswers(messenger, self.cache)
        self.prepared: Final = prepared if prepared is not None else PreparedCache()
        self._one_large = asyncio.Lock()
        self.embedding: Final = EmbeddingThreads("query-embedding", limits.embedding.QUERY_THREADS)

    def configure(self, config: SearchConfig) -> None:
        self._config = config
        _core.forget_routes()

    async def handle(self, request: Request) -> Response:
        """The answer to a GET or POST. Never raises but for cancellation."""
        answer = await settled(self.begin(request))
        assert isinstance(answer, Response)
        return answer

    def begin(self, request: Request) -> Begun:
        """Begins to answer a GET or POST. Never raises."""
        started_ns, config = self._environment.monotonic_ns(), self._config
        cut = cut_request(request)
        known = None if cut is None else self._known.get(cut.key, config)
        if cut is None or known is None:
            return self._begin_new(request, config, started_ns, cut)
        generally = partial(self._answer, request, config, started_ns, known.accepted)
        if known.reads_cache and self.cache.may_have(known.key(cut.values), config):
            return generally()
        return self._texts.begin(known, cut.values, started_ns, config, generally, counts=True)

    def route_of(self, request: Request) -> _core.TextRoute | None:
        """The route of requests that differ from this one in text and vector alone; None: there is none, or not yet."""
        cut, config = cut_request(request), self._config
        known = None if cut is None else self._known.get(cut.key, config)
        if known is None or not self._has_clock_of_core:
            return None

        def generally(asked: Request, started_ns: int) -> GeneralWay:
            return partial(self._answer, asked, config, started_ns, known.accepted)

        answers = RouteAnswers(known, request, self._texts, self.cache, config, generally)
        return find_route(self._messenger, answers)

    def _begin_new(self, request: Request, config: SearchConfig, started_ns: int, cut: CutRequest | None) -> Begun:
        """Begins to answer a request that is not known yet. `cut`: without its text, by which it is known from now on
        if nothing else of it depends on the text."""
        accepted = accepted_format(request)
        vector_bytes = 0 if cut is None else len(cut.values.vector)
        large = len(request.body) + len(request.query) - vector_bytes > limits.QUERY_INLINE_BYTES
        try:
            shaped = None if large else self._shape(request, parameter_pairs(request), config, accepted)
        except PaperwaspError:  # it is read again to say what is wrong
            shaped = None
        generally = partial(self._answer, request, config, started_ns, accepted, shaped)
        texts = None if shaped is None or shaped.kept is None or shaped.measured else shaped.kept.texts
        if shaped is None or texts is None or not self._has_clock_of_core:
            return generally()
        known = known_request(texts, shaped.pairs, shaped.shape, accepted, self._address_of(texts.cluster))
        values = None if known is None else known.values_of(shaped.pairs, cut)
        if known is not None and cut is not None and cut.values == values and not texts.template.words:
            self._known.put(cut, known)
        if known is None or values is None or shaped.cached is not None:
            return generally()
        return self._texts.begin(known, values, started_ns, config, generally, counts=False)

    def _shape(
        self, request: Request, pairs: Pairs, config: SearchConfig, accepted: str, *, large: bool = False
    ) -> _Shaped:
        """The request of these parameters with its shape, and what is kept for both."""
        measured = is_benchmark(request)
        if measured:
            pairs = measured_pairs(pairs)
        form = self._forms.of(pairs)
        key = key_of(pairs, form, accepted)
        cached = self.cache.get(key, config)
        if cached is not None and (measured or sets_aside(pairs, form)):
            cached = None
        shape = shape_of(pairs, form, accepted, config.query_profiles)
        kept = None if large else self.prepared.get(shape, config)
        return _Shaped(pairs, form, key, cached, shape, kept, measured)

    async def _answer(
        self,
        request: Request,
        config: SearchConfig,
        started_ns: int,
        accepted: str,
        shaped: _Shaped | None = None,
    ) -> Response:
        """The answer to any request, the general way. Never raises but for cancellation."""
        shown = _Shown(accepted)
        try:
            return await self._find_answer(request, config, started_ns, shown, shaped)
        except PaperwaspError as error:
            failed = SearchResult(errors=[SearchError.of(error)])
        except Exception as error:
            _LOG.exception("a search request failed")
            failed = SearchResult(errors=[SearchError(_UNSPECIFIED, f"Failed: {type(error).__name__}")])
        format_ = shown.format or plain_format(request) or shown.accepted
        return _response(failed, format_, shown.callback)

    async def _find_answer(
        self, request: Request, config: SearchConfig, started_ns: int, shown: _Shown, shaped: _Shaped | None
    ) -> Response:
        large = False
        if shaped is None:
            large = len(request.body) + len(request.query) > limits.QUERY_INLINE_BYTES
            pairs = await self._run_in_thread(parameter_pairs, request) if large else parameter_pairs(request)
            shaped = self._shape(request, pairs, config, shown.accepted, large=large)
        if shaped.cached is not None and await self._holds(shaped.key, shaped.cached):
            return shaped.cached.response
        bound = None if shaped.kept is None else self._bind(shaped.kept, shaped.shape, started_ns, shown)
        ready, parameters = bound or await self._prepare(shaped, config, started_ns, shown, large=large)
        if ready.embeddings:
            ready = await self._embed(ready, started_ns)
        result, answers = await self._search(ready, parameters, started_ns)
        is_json = shown.format in _JSON_FORMATS
        if (result.hits or result.groups or not is_json) and is_large(result, is_json=is_json):
            response = await asyncio.to_thread(yielding(_response), result, shown.format, shown.callback, config)
        else:
            response = _response(result, shown.format, shown.callback, config)
        if _may_be_kept(ready, parameters, result):
            self._keep(shaped.key, response, config, answers)
        if shaped.measured:
            elapsed_ns = self._environment.monotonic_ns() - started_ns
            return measured_response(response, request, ready, result, elapsed_ns)
        return response

    async def _embed(self, ready: ReadyQuery, started_ns: int) -> ReadyQuery:
        """The query with the tensors that embedders make for it, on other threads. Errors: IllegalQuery, Timeout."""
        end_ns = started_ns + int(ready.timeout_ms * 1e6)

        def seconds_left() -> float:
            return (end_ns - self._environment.monotonic_ns()) / 1e9

        work = [self.embedding.run(each.make, seconds_left) for each in ready.embeddings]
        try:
            async with asyncio.timeout(seconds_left()):
                made = await asyncio.gather(*work)
        except TimeoutError:
            raise Timeout(f"the time was over before the query's text was embedded ({ready.timeout_ms:g} ms)") from None
        return ready.with_inputs({each.name: tensor for each, tensor in zip(ready.embeddings, made, strict=True)})

    def _bind(
        self, kept: CachedQuery, shape: Shape, started_ns: int, shown: _Shown
    ) -> tuple[ReadyQuery, SearchParameters] | None:
        """The query of a request whose shape is prepared; None where something is wrong with the values: then reading
        all of the request says what, and at which place of its text."""
        prepared, values, _ = kept
        parameters = prepared.parameters
        try:
            if values is None:
                values = shape.values(prepared.names, prepared.defaults)
            check_window(parameters, values)
            ready = prepared.bind(values, started_ns, self._environment.now_seconds())
        except (PaperwaspError, ValueError):
            return None
        shown.format, shown.callback = parameters.presentation.format or "", parameters.presentation.callback
        return ready, parameters

    async def _prepare(
        self, shaped: _Shaped, config: SearchConfig, started_ns: int, shown: _Shown, *, large: bool
    ) -> tuple[ReadyQuery, SearchParameters]:
        """The query of a request that is read from its parameters on. What is prepared for it is kept.

        Errors: IllegalQuery, InvalidQuery, Timeout.
        """
        if large:
            parameters = await self._run_in_thread(read_parameters, shaped.pairs, config.query_profiles)
        else:
            parameters = read_parameters(shaped.pairs, config.query_profiles)
        parameters.presentation.format = shown.format = parameters.presentation.format or shown.accepted
        shown.callback = parameters.presentation.callback
        now_seconds = self._environment.now_seconds()
        end_ns = started_ns + int(_longest_ms(parameters) * 1e6)
        asked = (config, parameters, started_ns, now_seconds)
        if large:
            await self._until_turn(end_ns)
            return await self._run_in_thread(self._in_time(prepare_and_bind, end_ns), *asked), parameters
        if rule_base_of(config, parameters) is not None:  # a few words may keep rules busy for a second
            return await asyncio.to_thread(self._in_time(prepare_and_bind, end_ns), *asked), parameters
        if parameters.expressions:  # what is not compiled yet may take long
            await self._until_turn(end_ns)
            prepared = await self._run_in_thread(self._in_time(prepare_query, end_ns), config, parameters)
        else:
            prepared = prepare_query(config, parameters)
        ready = prepared.bind(parameters.values, started_ns, now_seconds)
        self.prepared.put(shaped.shape, prepared, parameters.values, config)
        return ready, parameters

    async def _run_in_thread(self, work: Callable[_Given, _Made], *given: _Given.args, **named: _Given.kwargs) -> _Made:
        """Runs `work` for a large request on a thread, one at a time, while the event loop serves others."""
        async with self._one_large:
            return await asyncio.to_thread(work, *given, **named)

    async def _until_turn(self, end_ns: int) -> None:
        """Waits until no other large request is being read. Errors: Timeout, at the end."""
        try:
            async with asyncio.timeout((end_ns - self._environment.monotonic_ns()) / 1e9), self._one_large:
                pass
        except TimeoutError:
            raise _not_read_in_time() from None

    def _in_time(self, work: Callable[_Given, _Made], end_ns: int) -> Callable[_Given, _Made]:
        """The work; Timeout where it is not done by the end, or its turn comes later: large requests wait for each
        other."""

        def begin(*given: _Given.args, **named: _Given.kwargs) -> _Made:
            if self._environment.monotonic_ns() > end_ns:
                raise _not_read_in_time()
            if self._environment.monotonic_ns is time.monotonic_ns:  # kernels read no other clock
                end_work_at(end_ns)
            budget.begin(limits.QUERY_MEMORY_BYTES)
            try:
                with yielding_to_requests():
                    return work(*given, **named)
            except OutOfTime:
                raise Timeout("the time was over before the query was read to its end") from None
            finally:
                end_work_at(0)
                budget.begin(0)

        return begin

    async def _holds(self, key: Key, kept: CachedAnswer) -> bool:
        """Whether an answer that is kept is still the answer."""
        try:
            for cluster, stamp in kept.stamps.items():
                found = self._messenger.ask(self._address_of(cluster), _STAMP)
                if (found.answer() if type(found) is Answered else await found) != stamp:
                    self.cache.drop(key)
                    return False
        except Exception:
            return False  # the query itself will tell what is wrong
        return True

    def _keep(self, key: Key, response: Response, config: SearchConfig, answers: Sequence[ClusterReply]) -> None:
        seen = {(cluster, answer.stamp) for cluster, answer in answers if isinstance(answer, SearchResponse)}
        stamps = dict(seen)
        if stamps and 0 not in stamps.values() and len(stamps) == len(seen):
            self.cache.put(key, response, config, stamps)

    async def _search(
        self, ready: ReadyQuery, parameters: SearchParameters, started_ns: int
    ) -> tuple[SearchResult, Sequence[ClusterReply]]:
        if ready.timeout_ms <= 0:
            return SearchResult(errors=[SearchError(TIMED_OUT, "No time left for searching")]), ()
        if parameters.collapse.fields:
            result, answers = await self._collapse(ready, parameters)
        else:
            answers = await self._ask_all(ready)
            if ready.layouts:
                result = await self._merged(ready, answers, parameters)
            else:  # most queries, without a coroutine for what is quick
                result = merged(ready, answers, soft_timeout=parameters.soft_timeout)
        result.tensor_form = parameters.presentation.tensor_form
        result.encoding = parameters.text.encoding
        if ready.answering.rules is not None and ready.answering.rules.trace:
            result.trace = rule_steps(ready, parameters)
        if parameters.presentation.timing or parameters.trace.level:
            elapsed_ns = self._environment.monotonic_ns() - started_ns
            if parameters.presentation.timing:
                result.timing = _timing(elapsed_ns, result.summary_ns)
            if parameters.trace.level:
                result.trace = trace_of(ready, parameters, answers, result, elapsed_ns // 1_000_000)
        return result, answers

    async def _merged(
        self, ready: ReadyQuery, answers: Sequence[ClusterReply], parameters: SearchParameters
    ) -> SearchResult:
        if has_many_groups(answers):
            merge = yielding(merged)
            return await asyncio.to_thread(merge, ready, answers, soft_timeout=parameters.soft_timeout)
        return merged(ready, answers, soft_timeout=parameters.soft_timeout)

    async def _collapse(
        self, ready: ReadyQuery, parameters: SearchParameters
    ) -> tuple[SearchResult, Sequence[ClusterReply]]:
        """The page that is left when hits are collapsed. Totals are of all hits."""
        collapse, shown = parameters.collapse, parameters.presentation
        hidden = any(query.query and set(collapse.fields) - set(query.query.show.prefetch) for query in ready.queries)
        by_other = hidden and bool(ready.answering.summary_fields or collapse.summary not in ("", shown.summary))
        entries: list[Entry] = []
        end = ready.offset + ready.hits
        summary_ns = 0
        groups: Sequence[tuple[str, ShownRoot]] = ()
        for start, count in batches(ready.offset, ready.hits):
            batch = ready.window(start, count)
            asked = batch.showing(collapse.summary or shown.summary) if by_other else batch
            answers = await self._ask_all(asked)
            result = await self._merged(asked, answers, parameters)
            entries.extend(result.hits)
            if ready.layouts:  # groups are of all hits, whatever is shown
                groups, ready = result.groups, ready.without_groups()
            summary_ns += result.summary_ns
            left = collapsed(entries, collapse)
            if result.errors or len(left) >= end or result.total_count < start + count or not count:
                break
        left = left[ready.offset : end]
        if by_other:
            again = merged(ready, await self._ask_all(ready.window(0, start + count)))
            summary_ns += again.summary_ns
            by_gid = {hit.gid: (cluster, hit) for cluster, hit in again.hits}
            left = [by_gid[hit.gid] for _, hit in left if hit.gid in by_gid]
        result.hits = left
        result.groups = groups
        result.summary_ns = summary_ns
        result.summary_fields = ready.answering.summary_fields
        return result, answers

    async def _ask_all(self, ready: ReadyQuery) -> list[ClusterReply]:
        asked = [
            (query.cluster, query.query, query.timeout_ms(ready)) for query in ready.queries if query.query is not None
        ]
        if len(asked) == 1:
            return [await self._ask(*asked[0])]
        return await asyncio.gather(*(self._ask(*query) for query in asked))

    async def _ask(self, cluster: str, query: Query, timeout_ms: float) -> ClusterReply:
        try:
            found = self._messenger.ask(self._address_of(cluster), query)
            if type(found) is Answered:
                answer = found.answer()
            else:
                async with asyncio.timeout(timeout_ms / 1000 + GRACE_SECONDS):
                    answer = await found
        except TimeoutError:
            return cluster, SearchError(TIMED_OUT, f"Timed out after {timeout_ms:g} ms", cluster)
        except PaperwaspError as error:
            without_frames(error)  # which have the answer, and so itself
            return cluster, SearchError.of(error, cluster)
        except Exception as error:
            _LOG.exception("cluster %s failed", cluster)
            return cluster, SearchError(_UNSPECIFIED, f"Failed: {type(error).__name__}", cluster)
        assert isinstance(answer, SearchResponse)
        return cluster, answer


def _not_read_in_time() -> Timeout:
    return Timeout("the time was over before the query was read: large ones are read one at a time")


def _longest_ms(parameters: SearchParameters) -> float:
    """The time that a query has, as far as it is known before it is read: YQL may say another at its end."""
    said = _YQL_TIMEOUT.search((parameters.yql or "")[-_YQL_END:])
    return max(parameters.values.timeout_ms, int(said[1]) if said else 0)


def _timing(elapsed_ns: int, summary_ns: int) -> dict[str, float]:
    """`timing` of an answer in seconds: all of it, the part in which clusters wrote hits, and the rest."""
    found = {"querytime": elapsed_ns - summary_ns, "summaryfetchtime": summary_ns, "searchtime": elapsed_ns}
    return {name: round(time_ns / 1e9, 6) for name, time_ns in found.items()}


def _response(result: SearchResult, format_: str, callback: str, config: SearchConfig | None = None) -> Response:
    """The answer in its format. `config`: what says of which types the fields of hits are; None: there are no hits."""
    if format_ not in XML_FORMATS:
        return respond(result, format_, callback)
    schemas = (schema for cluster in config.clusters for schema in cluster.schemas.values()) if config else ()
    return respond_xml(result, format_, ShownTypes(schemas), config.tags if config else HI_TAGS)


def _may_be_kept(ready: ReadyQuery, parameters: SearchParameters, result: SearchResult) -> bool:
    """Whether the same request has the same answer for as long as nothing is written."""
    return (
        ready.answering.is_repeatable
        and not (parameters.no_cache or parameters.no_cache_write)
        and not (parameters.trace.level or parameters.presentation.timing or parameters.list_features)
        and not any(query.query is not None and query.query.match.streaming for query in ready.queries)
        and not result.errors
        and (result.coverage is None or not result.coverage.degraded)
    )
