"""The search handler: one request in, one answer out, whatever goes wrong.

    request → parameters → plan (a Query for each content cluster) → messenger → merge → JSON, CBOR or XML
    request without its text, known from before → TextQuery → messenger → JSON      (the fast way: compiled plans)

Runs on the event loop and never blocks it. The configuration is one reference, read once for each request.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar

from paperwasp import limits
from paperwasp.cluster.messenger import Answered
from paperwasp.container.embedding_threads import EmbeddingThreads
from paperwasp.container.search.benchmark_headers import is_benchmark, measured_pairs, measured_response
from paperwasp.container.search.cache import CachedAnswer, Key, SearchCache, key_of, sets_aside
from paperwasp.container.search.collapse import Entry, batches, collapsed
from paperwasp.container.search.config import ClusterConfig, SearchConfig
from paperwasp.container.search.kept_queries import Kept, KeptQueries
from paperwasp.container.search.known_texts import CutRequest, KnownText, KnownTexts, cut_request, known_text
from paperwasp.container.search.large_answers import has_many_groups, is_large, yielding
from paperwasp.container.search.merge import GRACE_SECONDS, TIMED_OUT, Answer, merged
from paperwasp.container.search.parameters import check_window, read_parameters
from paperwasp.container.search.plan import SearchPlan
from paperwasp.container.search.prepare import plan_search, prepare_query
from paperwasp.container.search.rendering import SearchError, SearchResult, accepted_format, respond
from paperwasp.container.search.request import parameter_pairs, plain_format
from paperwasp.container.search.rules import rule_base_of
from paperwasp.container.search.settings import SearchParameters
from paperwasp.container.search.shapes import Form, Forms, Pairs, Shape, shape_of
from paperwasp.container.search.text_requests import TextReply
from paperwasp.container.search.trace import rule_steps, trace_of
from paperwasp.container.search.values import XML_FORMATS
from paperwasp.container.search.xml import ShownTypes, respond_xml
from paperwasp.content.messages import StampRequest
from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import PaperwaspError, Timeout, without_frames
from paperwasp.grouping.result.shown import ShownRoot
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun, settled
from paperwasp.patterns import compile_later
from paperwasp.records import dataclass
from paperwasp.schema.teaser_settings import HI_TAGS
from paperwasp.search.query import Query, SearchResponse
from paperwasp.search.text_query import TextAnswer
from paperwasp.yielding import yielding_to_requests

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
    """The part of `cluster.messenger.Messenger` that a search needs."""

    def ask(self, address: str, message: object) -> Awaitable[object]: ...

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None: ...


@dataclass(slots=True)
class _Shown:
    """How the answer is written, as far as it is known: nothing is before the parameters are read."""

    accepted: str
    """The format that the request accepts, unless its parameters say another."""
    format: str = ""
    callback: str = ""


class _Outline(NamedTuple):
    """What is known of a request before its parameters are read."""

    pairs: Pairs
    form: Form
    key: Key
    cached: CachedAnswer | None
    """The answer that is kept, and may be given if it still holds."""
    shape: Shape
    kept: Kept | None
    """The query that is prepared for the shape."""
    measured: bool
    """Whether the answer is to say what it took."""


class SearchHandler:
    """Answers `/search/`. `configure` may be called at any time; requests under way keep what they started with."""

    def __init__(
        self,
        messenger: Messenger,
        config: SearchConfig | None = None,
        environment: Environment = SYSTEM,
        address_of: Callable[[str], str] = "content/{}".format,
        prepared: KeptQueries | None = None,
    ) -> None:
        """`address_of` says where a content cluster of the application is served. `prepared`: what keeps the prepared
        queries."""
        self._messenger = messenger
        self._address_of = address_of
        self._config = config or SearchConfig()
        self._environment = environment
        self.cache = SearchCache()
        self._forms = Forms()
        self._texts = KnownTexts()
        self.prepared: Final = prepared if prepared is not None else KeptQueries()
        self._one_large = asyncio.Lock()
        self.embedding: Final = EmbeddingThreads("query-embedding", limits.embedding.QUERY_THREADS)

    def configure(self, config: SearchConfig) -> None:
        self._config = config

    async def handle(self, request: Request) -> Response:
        """The answer to a GET or POST. Never raises but for cancellation."""
        answer = await settled(self.begin(request))
        assert isinstance(answer, Response)
        return answer

    def begin(self, request: Request) -> Begun:
        """Begins to answer a GET or POST. Never raises."""
        started_ns, config = self._environment.monotonic_ns(), self._config
        cut = cut_request(request)
        known = None if cut is None else self._texts.get(cut.key, config)
        if cut is not None and known is not None:
            return self._begin_text(request, config, started_ns, cut.text, known)
        return self._begin_outlined(request, config, started_ns, cut)

    def _begin_outlined(self, request: Request, config: SearchConfig, started_ns: int, cut: CutRequest | None) -> Begun:
        """Begins to answer a request of which nothing is known. `cut`: without its text, by which it is known then."""
        accepted = accepted_format(request)
        try:
            read = self._read_outline(request, config, accepted)
        except PaperwaspError:  # it is read again to say what is wrong
            read = None
        texts = None if read is None or read.kept is None or read.measured else read.kept.texts
        if read is None or texts is None or self._environment.monotonic_ns is not time.monotonic_ns:
            return self._answer_all(request, config, started_ns, accepted, read)  # the core knows no other clock
        known = known_text(texts, read.pairs, read.shape, accepted, self._address_of(texts.cluster))
        text = read.pairs[texts.place][1]
        if known is not None and cut is not None and cut.text == text and not texts.template.words:
            self._texts.put(cut, known)
        if known is None or read.cached is not None:
            return self._answer_all(request, config, started_ns, accepted, read)
        return self._begin_text(request, config, started_ns, text, known, read)

    def _begin_text(
        self,
        request: Request,
        config: SearchConfig,
        started_ns: int,
        text: str,
        known: KnownText,
        read: _Outline | None = None,
    ) -> Begun:
        """Begins to answer a request of which all but its text is known, by a compiled plan if there is one."""
        texts = known.texts
        if read is None and known.reads_cache and self.cache.may_have(known.key(text), config):
            return self._answer_all(request, config, started_ns, known.accepted, None)

        def answer_of(found: object) -> Response | Coroutine[Any, Any, Response]:
            if not isinstance(found, TextAnswer):  # what is wrong, or not a text alone, is found the general way
                return self._answer_all(request, config, started_ns, known.accepted, read)
            response = texts.response_of(found)
            self.cache.lookups += known.reads_cache and read is None  # the general way counts its own
            if texts.may_be_kept:
                self.cache.put(known.key(text), response, config, {texts.cluster: found.stamp})
            return response

        query = known.query(text, started_ns)
        reply = TextReply(answer_of, query.deadline_ns)
        self._messenger.hand(known.address, query, reply)
        return reply.begun

    def _read_outline(self, request: Request, config: SearchConfig, accepted: str) -> _Outline | None:
        """What is known of a request before its parameters are read; None: it is large. Errors: IllegalQuery."""
        if len(request.body) + len(request.query) > limits.QUERY_INLINE_BYTES:
            return None
        return self._outline_of(request, parameter_pairs(request), config, accepted)

    def _outline_of(
        self, request: Request, pairs: Pairs, config: SearchConfig, accepted: str, *, large: bool = False
    ) -> _Outline:
        measured = is_benchmark(request)
        if measured:
            pairs = measured_pairs(pairs)
        form = self._forms.of(pairs)
        key = key_of(pairs, form, accepted)
        cached = self.cache.get(key, config)
        if cached is not None and (measured or sets_aside(pairs, form)):
            cached = None
        shape = self._shape(pairs, form, config, accepted)
        kept = None if large else self.prepared.get(shape, config)
        return _Outline(pairs, form, key, cached, shape, kept, measured)

    async def _answer_all(
        self, request: Request, config: SearchConfig, started_ns: int, accepted: str, read: _Outline | None
    ) -> Response:
        """The answer to any request. Never raises but for cancellation."""
        shown = _Shown(accepted)
        try:
            return await self._answer(request, config, started_ns, shown, read)
        except PaperwaspError as error:
            failed = SearchResult(errors=[SearchError.of(error)])
        except Exception as error:
            _LOG.exception("a search request failed")
            failed = SearchResult(errors=[SearchError(_UNSPECIFIED, f"Failed: {type(error).__name__}")])
        format_ = shown.format or plain_format(request) or shown.accepted
        return _response(failed, format_, shown.callback)

    async def _answer(
        self, request: Request, config: SearchConfig, started_ns: int, shown: _Shown, read: _Outline | None
    ) -> Response:
        large = False
        if read is None:
            large = len(request.body) + len(request.query) > limits.QUERY_INLINE_BYTES
            pairs = await self._run_in_thread(parameter_pairs, request) if large else parameter_pairs(request)
            read = self._outline_of(request, pairs, config, shown.accepted, large=large)
        if read.cached is not None and await self._holds(read.key, read.cached):
            return read.cached.response
        bound = None if read.kept is None else self._bind(read.kept, read.shape, started_ns, shown)
        plan, parameters = bound or await self._read(read.pairs, read.form, config, started_ns, shown, large=large)
        if plan.embeddings:
            plan = await self._embed(plan, started_ns)
        result, answers = await self._search(plan, parameters, started_ns)
        is_json = shown.format in _JSON_FORMATS
        if (result.hits or result.groups or not is_json) and is_large(result, is_json=is_json):
            response = await asyncio.to_thread(yielding(_response), result, shown.format, shown.callback, config)
        else:
            response = _response(result, shown.format, shown.callback, config)
        if _may_be_kept(plan, parameters, result):
            self._keep(read.key, response, config, answers)
        if read.measured:
            elapsed_ns = self._environment.monotonic_ns() - started_ns
            return measured_response(response, request, plan, result, elapsed_ns)
        return response

    async def _embed(self, plan: SearchPlan, started_ns: int) -> SearchPlan:
        """The plan with the tensors that embedders make for it, on other threads. Errors: IllegalQuery, Timeout."""
        end_ns = started_ns + int(plan.timeout_ms * 1e6)

        def seconds_left() -> float:
            return (end_ns - self._environment.monotonic_ns()) / 1e9

        work = [self.embedding.run(each.make, seconds_left) for each in plan.embeddings]
        try:
            async with asyncio.timeout(seconds_left()):
                made = await asyncio.gather(*work)
        except TimeoutError:
            raise Timeout(f"the time was over before the query's text was embedded ({plan.timeout_ms:g} ms)") from None
        return plan.with_inputs({each.name: tensor for each, tensor in zip(plan.embeddings, made, strict=True)})

    def _bind(
        self, kept: Kept, shape: Shape, started_ns: int, shown: _Shown
    ) -> tuple[SearchPlan, SearchParameters] | None:
        """The plan of a request whose shape is prepared; None where something is wrong with the values: then reading
        all of the request says what, and at which place of its text."""
        prepared, values, _ = kept
        parameters, statement = prepared.parameters, prepared.statement
        try:
            if values is None:
                values = shape.values(statement.names if statement else (), prepared.defaults)
            check_window(parameters, values)
            plan = prepared.bind(values, started_ns, self._environment.now_seconds())
        except (PaperwaspError, ValueError):
            return None
        shown.format, shown.callback = parameters.presentation.format or "", parameters.presentation.callback
        return plan, parameters

    def _shape(self, pairs: Pairs, form: Form, config: SearchConfig, accepted: str) -> Shape:
        return shape_of(pairs, form, accepted, config.query_profiles)

    async def _read(
        self, pairs: Pairs, form: Form, config: SearchConfig, started_ns: int, shown: _Shown, *, large: bool
    ) -> tuple[SearchPlan, SearchParameters]:
        """The plan of a request that is read from its parameters on. What is prepared for it is kept.

        Errors: IllegalQuery, InvalidQuery, Timeout.
        """
        if large:
            parameters = await self._run_in_thread(read_parameters, pairs, config.query_profiles)
        else:
            parameters = read_parameters(pairs, config.query_profiles)
        parameters.presentation.format = shown.format = parameters.presentation.format or shown.accepted
        shown.callback = parameters.presentation.callback
        now_seconds = self._environment.now_seconds()
        end_ns = started_ns + int(_longest_ms(parameters) * 1e6)
        asked = (config, parameters, started_ns, now_seconds)
        if large:
            await self._until_turn(end_ns)
            return await self._run_in_thread(self._in_time(plan_search, end_ns), *asked), parameters
        if rule_base_of(config, parameters) is not None:  # a few words may keep rules busy for a second
            return await asyncio.to_thread(self._in_time(plan_search, end_ns), *asked), parameters
        if parameters.expressions:  # what is not compiled yet may take long
            await self._until_turn(end_ns)
            prepared = await self._run_in_thread(self._in_time(prepare_query, end_ns), config, parameters)
        else:
            prepared = prepare_query(config, parameters)
        plan = prepared.bind(parameters.values, started_ns, now_seconds)
        self.prepared.put(self._shape(pairs, form, config, shown.accepted), prepared, parameters.values, config)
        return plan, parameters

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

    def _keep(self, key: Key, response: Response, config: SearchConfig, answers: Sequence[Answer]) -> None:
        seen = {(cluster, answer.stamp) for cluster, answer in answers if isinstance(answer, SearchResponse)}
        stamps = dict(seen)
        if stamps and 0 not in stamps.values() and len(stamps) == len(seen):
            self.cache.put(key, response, config, stamps)

    async def _search(
        self, plan: SearchPlan, parameters: SearchParameters, started_ns: int
    ) -> tuple[SearchResult, Sequence[Answer]]:
        if plan.timeout_ms <= 0:
            return SearchResult(errors=[SearchError(TIMED_OUT, "No time left for searching")]), ()
        if parameters.collapse.fields:
            result, answers = await self._collapse(plan, parameters)
        else:
            answers = await self._ask_all(plan)
            if plan.layouts:
                result = await self._merged(plan, answers, parameters)
            else:  # most queries, without a coroutine for what is quick
                result = merged(plan, answers, soft_timeout=parameters.soft_timeout)
        result.tensor_form = parameters.presentation.tensor_form
        result.encoding = parameters.text.encoding
        if plan.answering.rules is not None and plan.answering.rules.trace:
            result.trace = rule_steps(plan, parameters)
        if parameters.presentation.timing or parameters.trace.level:
            elapsed_ns = self._environment.monotonic_ns() - started_ns
            if parameters.presentation.timing:
                result.timing = _timing(elapsed_ns, result.summary_ns)
            if parameters.trace.level:
                result.trace = trace_of(plan, parameters, answers, result, elapsed_ns // 1_000_000)
        return result, answers

    async def _merged(self, plan: SearchPlan, answers: Sequence[Answer], parameters: SearchParameters) -> SearchResult:
        if has_many_groups(answers):
            merge = yielding(merged)
            return await asyncio.to_thread(merge, plan, answers, soft_timeout=parameters.soft_timeout)
        return merged(plan, answers, soft_timeout=parameters.soft_timeout)

    async def _collapse(self, plan: SearchPlan, parameters: SearchParameters) -> tuple[SearchResult, Sequence[Answer]]:
        """The page that is left when hits are collapsed. Totals are of all hits."""
        collapse, shown = parameters.collapse, parameters.presentation
        hidden = any(query.query and set(collapse.fields) - set(query.query.show.prefetch) for query in plan.queries)
        by_other = hidden and bool(plan.answering.summary_fields or collapse.summary not in ("", shown.summary))
        entries: list[Entry] = []
        end = plan.offset + plan.hits
        summary_ns = 0
        groups: Sequence[tuple[str, ShownRoot]] = ()
        for start, count in batches(plan.offset, plan.hits):
            batch = plan.window(start, count)
            asked = batch.showing(collapse.summary or shown.summary) if by_other else batch
            answers = await self._ask_all(asked)
            result = await self._merged(asked, answers, parameters)
            entries.extend(result.hits)
            if plan.layouts:  # groups are of all hits, whatever is shown
                groups, plan = result.groups, plan.without_groups()
            summary_ns += result.summary_ns
            left = collapsed(entries, collapse)
            if result.errors or len(left) >= end or result.total_count < start + count or not count:
                break
        left = left[plan.offset : end]
        if by_other:
            again = merged(plan, await self._ask_all(plan.window(0, start + count)))
            summary_ns += again.summary_ns
            by_gid = {hit.gid: (cluster, hit) for cluster, hit in again.hits}
            left = [by_gid[hit.gid] for _, hit in left if hit.gid in by_gid]
        result.hits = left
        result.groups = groups
        result.summary_ns = summary_ns
        result.summary_fields = plan.answering.summary_fields
        return result, answers

    async def _ask_all(self, plan: SearchPlan) -> list[Answer]:
        asked = [
            (query.cluster, query.query, query.timeout_ms(plan)) for query in plan.queries if query.query is not None
        ]
        if len(asked) == 1:
            return [await self._ask(*asked[0])]
        return await asyncio.gather(*(self._ask(*query) for query in asked))

    async def _ask(self, cluster: str, query: Query, timeout_ms: float) -> Answer:
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


def _may_be_kept(plan: SearchPlan, parameters: SearchParameters, result: SearchResult) -> bool:
    """Whether the same request has the same answer for as long as nothing is written."""
    return (
        plan.answering.is_repeatable
        and not (parameters.no_cache or parameters.no_cache_write)
        and not (parameters.trace.level or parameters.presentation.timing or parameters.list_features)
        and not any(query.query is not None and query.query.match.streaming for query in plan.queries)
        and not result.errors
        and (result.coverage is None or not result.coverage.degraded)
    )
