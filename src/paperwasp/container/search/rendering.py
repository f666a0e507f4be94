"""The result of a search as JSON or CBOR, with its keys in Vespa's order, written in one pass.

A hit's fields come as JSON from the content node and are spliced in without being read.
Vespa: https://docs.vespa.ai/en/reference/querying/default-result-format.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any, Final

import orjson
from msgspec import Struct, field

from paperwasp.admin.monitoring.requests import SearchFacts
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.groups_json import hits_in, root_json
from paperwasp.document.tensor.json_output import result_json
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import PaperwaspError
from paperwasp.http.cbor import CBOR, prefers_cbor, to_cbor
from paperwasp.http.messages import Request, Response
from paperwasp.search.grouping.shown_groups import ShownRoot
from paperwasp.search.query import Hit, HitExplanation

JSON_TYPE: Final = "application/json;charset=utf-8"

_ERRORS: Final[Mapping[int, tuple[str, int]]] = {
    0: ("No backends in service. Try later", 503),
    1: ("Null query", 500),
    2: ("Request too large", 500),
    3: ("Illegal query", 400),
    4: ("Invalid query parameter", 400),
    5: ("Unspecified error", 500),
    6: ("Error in plugin Searcher", 500),
    7: ("Invalid query transformation", 500),
    8: ("Error in search reply.", 500),
    9: ("Service is misconfigured", 500),
    10: ("Backend communication error", 503),
    11: ("No answer when pinging node", 500),
    12: ("Timed out", 504),
    13: ("Empty document summaries", 500),
    14: ("Client not authenticated.", 401),
    15: ("Forbidden.", 403),
    16: ("Resource not found.", 404),
    17: ("Bad request.", 400),
    18: ("Internal server error.", 500),
    19: ("Insufficient storage.", 507),
    429: ("Too many requests", 429),
}
"""Code → (summary, HTTP status when there are no hits)."""

_FATAL_CODES: Final = frozenset((14, 15, 16, 17, 18, 19))
"""Codes that decide the HTTP status even where there are hits; so does every code that is an HTTP status itself."""
_DECISIVE_CODES: Final = _FATAL_CODES | {0, 3, 4, 10, 12, 429}
"""Codes that stand for an HTTP status of their own."""


class SearchError(Struct, frozen=True):
    """One entry of `root.errors`."""

    code: int
    message: str
    source: str | None = None

    @classmethod
    def of(cls, error: PaperwaspError, source: str | None = None) -> SearchError:
        return cls(error.search_code, error.message, source)


class Coverage(Struct, frozen=True):
    """How much of the documents was searched, summed over the clusters."""

    documents: int
    """Documents that were searched."""
    percent: int
    clusters: int
    full_clusters: int
    degraded: frozenset[str] = frozenset()
    """Why not all was searched: of `_DEGRADATIONS`."""


_DEGRADATIONS: Final = ("match-phase", "timeout", "adaptive-timeout", "anntimeout", "non-ideal-state")


class SearchResult(Struct):
    """The result that is shown: hits beside the cluster each came from, best first."""

    hits: Sequence[tuple[str, Hit]] = ()
    page: Sequence[bytes | None] | None = None
    """The JSON of each hit, None for those that are in `hits`; None: all are in `hits`."""
    total_count: int = 0
    coverage: Coverage | None = None
    errors: list[SearchError] = field(default_factory=list)
    summary_fields: tuple[str, ...] = ()
    bare_types: frozenset[tuple[str, str]] = frozenset()
    """(content cluster, document type) whose hits show no fields."""
    timing: Mapping[str, float] | None = None
    summary_ns: int = 0
    """The time that the clusters, in parallel, took to write the hits, in nanoseconds."""
    trace: Sequence[Mapping[str, Any]] | None = None
    continuation: str | None = None
    """The value of `searchAfter` for the page that follows; None: not requested, or there is no such page."""
    tensor_form: str = "short"
    """The form of tensors among the features: one of `tensor.json_output.FORMS`."""
    encoding: str = ""
    """The encoding that the request names, which XML is written in."""
    groups: Sequence[tuple[str, ShownRoot]] = ()
    """The root group of each grouping statement beside the cluster that it came from."""
    is_sorted: bool = False
    """Whether hits are in an order of their own, rather than that of their relevance: then groups come last."""

    @property
    def hit_count(self) -> int:
        return len(self.hits if self.page is None else self.page)


def accepted_format(request: Request) -> str:
    """`cbor` where the Accept header names it and ranks it at least as high as JSON."""
    return "cbor" if prefers_cbor(request.header("accept"), at_a_tie=True) else "json"


def respond(result: SearchResult, format_: str = "json", callback: str = "") -> Response:
    """The whole answer in `json` or `cbor`; with `callback` as a call of that JavaScript function, which is JSON."""
    body = render_json(result, exact_tensors=format_ == "cbor")
    about: SearchFacts = (
        result.total_count,
        len(result.hits if result.page is None else result.page),
        result.coverage,
        result.errors[0].code if result.errors else -1,
        result.summary_ns,
    )
    if callback:
        return Response(status_of(result), b"%b(%b);" % (callback.encode(), body), JSON_TYPE, about=about)
    if format_ == "cbor":
        return Response(status_of(result), to_cbor(body), CBOR, about=about)
    return Response(status_of(result), body, JSON_TYPE, about=about)


def status_of(result: SearchResult, *, is_eager: bool = False) -> int:
    """200 where there are hits or no errors; otherwise what the first error says that stands for a status. `is_eager`:
    hits make no difference. Vespa: getStatus and getEagerErrorStatus of VespaHeaders.java"""
    if not result.errors:
        return 200
    codes = [error.code for error in result.errors]
    if result.hit_count and not is_eager:
        return next((_ERRORS[code][1] for code in codes if code in _FATAL_CODES or code >= 400), 200)
    return next((_ERRORS[code][1] for code in codes if code in _DECISIVE_CODES), 500)


def render_json(result: SearchResult, *, exact_tensors: bool = False) -> bytes:
    """The answer as compact JSON. `exact_tensors`: floats in tensors have the digits of a double."""
    parts = [b"{"]
    if result.trace:
        parts += (b'"trace":', orjson.dumps({"children": result.trace}), b",")
    if result.timing is not None:
        parts += (b'"timing":', orjson.dumps(result.timing), b",")
    parts.append(b'"root":{"id":"toplevel","relevance":1.0,"fields":{"totalCount":%d}' % result.total_count)
    if result.coverage is not None:
        parts += (b',"coverage":', _coverage(result.coverage))
    if result.continuation is not None:
        parts += (b',"continuation":', orjson.dumps({"next": result.continuation}))
    if result.errors:
        parts += (b',"errors":', orjson.dumps([_error(error) for error in result.errors]))
    if result.hit_count or result.groups:
        children = _with_groups(result, exact_tensors) if result.groups else _page_of(result, exact_tensors)
        parts += (b',"children":[', b",".join(children), b"]")
    parts.append(b"}}")
    return b"".join(parts)


_FULL_COVERAGE: Final = b'{"coverage":%d,"documents":%d,"full":true,"nodes":1,"results":1,"resultsFull":1}'


def _coverage(coverage: Coverage) -> bytes:
    if coverage.clusters == coverage.full_clusters == 1 and not coverage.degraded:
        return _FULL_COVERAGE % (coverage.percent, coverage.documents)
    shown: dict[str, Any] = {
        "coverage": coverage.percent,
        "documents": coverage.documents,
        "full": not coverage.degraded,
        "nodes": coverage.clusters,
        "results": coverage.clusters,
        "resultsFull": coverage.full_clusters,
    }
    if coverage.degraded:
        shown["degraded"] = {reason: reason in coverage.degraded for reason in _DEGRADATIONS}
    return orjson.dumps(shown)


def summary_of(error: SearchError) -> str:
    """The name of the kind of error."""
    return _ERRORS.get(error.code, ("Unspecified error", 500))[0]


def _error(error: SearchError) -> dict[str, Any]:
    shown: dict[str, Any] = {"code": error.code, "summary": summary_of(error)}
    if error.source is not None:
        shown["source"] = error.source
    return shown | {"message": error.message}


def _with_groups(result: SearchResult, exact_tensors: bool) -> Iterable[bytes]:
    """The hits as JSON objects, and the root groups where they stand among them."""
    before, shown = hits_before_groups(result), list(_page_of(result, exact_tensors))
    return [*shown[:before], *_groups(result, exact_tensors), *shown[before:]]


def _page_of(result: SearchResult, exact_tensors: bool) -> Iterable[bytes]:
    """Each hit as a JSON object, as far as clusters have not rendered it already."""
    if result.page is None:
        return _hits(result.hits, result, exact_tensors)
    if not result.hits:
        return result.page  # type: ignore[return-value]
    rest = iter(_hits(result.hits, result, exact_tensors))
    return [next(rest) if rendered is None else rendered for rendered in result.page]


def _groups(result: SearchResult, exact_tensors: bool) -> list[bytes]:
    """Each root group as a JSON object."""
    entries = [(cluster, hit) for cluster, root in result.groups for hit in hits_in(root.groups)]
    hits = iter(_hits(entries, result, exact_tensors))
    return [root_json(root, hits) for _, root in result.groups]


_PAGE_RELEVANCE: Final = compile_later(rb',"relevance":([^,}]+)')
"""In a hit that a cluster has rendered: nothing before it has a quote that is not escaped."""


def hits_before_groups(result: SearchResult) -> int:
    """How many hits stand before the root groups, whose relevance is 1.

    Vespa: Hit.java, HitGroupsLastComparator.java
    """
    if result.is_sorted:
        return result.hit_count
    rest = iter(result.hits)
    page = [None] * len(result.hits) if result.page is None else result.page
    for place, rendered in enumerate(page):
        if rendered is None:
            relevance = float(next(rest)[1].relevance)
        else:
            found = _PAGE_RELEVANCE.search(rendered)
            relevance = float(found[1].strip(b'"')) if found else 0.0
        if not relevance >= 1.0:
            return place
    return result.hit_count


_SOURCE: Final = b',"source":%b'


def _hits(hits: Sequence[tuple[str, Hit]], result: SearchResult, exact_tensors: bool) -> Sequence[bytes]:
    """Each hit as a JSON object. With `summary_fields`, only those are shown."""
    if not hits:
        return ()
    summary_fields = result.summary_fields
    show = partial(result_json, form=result.tensor_form, exact=exact_tensors)
    all_fields = not summary_fields
    type_shown = all_fields or "sddocname" in summary_fields
    id_wanted = all_fields or "documentid" in summary_fields
    dumps = orjson.dumps
    heads = {cluster: _SOURCE % dumps(cluster) for cluster, _ in hits}
    types = {hit.document_type: b'"sddocname":' + dumps(hit.document_type) for _, hit in hits} if type_shown else {}
    shown = [id_wanted and (hit.show_document_id or not all_fields) for _, hit in hits]
    ids = _each_json(
        [
            hit.document_id if id_shown else f"index:{cluster}/0/{hit.gid.hex()}"
            for (cluster, hit), id_shown in zip(hits, shown, strict=True)
        ]
    )
    rendered: list[bytes] = []
    for (cluster, hit), id_shown, id_json, relevance in zip(hits, shown, ids, _relevances(hits), strict=True):
        members = [types[hit.document_type]] if type_shown else []
        if id_shown:
            members.append(b'"documentid":' + id_json)
        if len(hit.fields) > 2:
            members.append(hit.fields[1:-1])
        if hit.match_features is not None:
            members.append(b'"matchfeatures":' + _features(hit.match_features, show))
        if hit.summary_features is not None:
            members.append(b'"summaryfeatures":' + _features(hit.summary_features, show))
        if hit.rank_features is not None:
            members.append(b'"rankfeatures":' + _features(hit.rank_features, show))
        if (cluster, hit.document_type) in result.bare_types:
            members = []
        fields = b',"fields":{%b}' % b",".join(members) if members else b""
        why = b"" if hit.explanation is None else b',"explanation":' + dumps(_explained(hit.explanation))
        rendered.append(b'{"id":%b,"relevance":%b%b%b%b}' % (id_json, relevance, heads[cluster], fields, why))
    return rendered


def hits_json(cluster: str, hits: Sequence[Hit], summary_fields: tuple[str, ...]) -> Sequence[bytes]:
    """Hits of one cluster without features, each as a JSON object."""
    return _hits([(cluster, hit) for hit in hits], SearchResult(summary_fields=summary_fields), exact_tensors=False)


def _explained(explanation: HitExplanation) -> dict[str, object]:
    return {"note": explanation.note} if explanation.note else {"phases": explanation.phases}


def _each_json(texts: Sequence[str]) -> Iterable[bytes]:
    """The JSON of each text, written in one go: nowhere within a text, two quotes stand around a comma."""
    return [b'"%b"' % text for text in orjson.dumps(texts)[2:-2].split(b'","')]


def _relevances(hits: Sequence[tuple[str, Hit]]) -> Iterable[bytes]:
    values = [float(hit.relevance) for _, hit in hits]
    written = orjson.dumps(values)
    if b"null" in written:
        return [_number(value) for value in values]
    return written[1:-1].split(b",")


def _number(value: float) -> bytes:
    """The JSON of a relevance; what JSON has no number for is written as Vespa does."""
    if isfinite(value):
        return orjson.dumps(value)
    return b'"NaN"' if value != value else b'"Infinity"' if value > 0 else b'"-Infinity"'


_TENSORS: Final = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS


def features_json(features: Mapping[str, Any], tensor_form: str) -> bytes:
    """The features of a hit as JSON."""
    return _features(features, partial(result_json, form=tensor_form))


def _features(features: Mapping[str, Any], show: Callable[[Tensor], Any]) -> bytes:
    """Features as JSON. Numbers that are not finite are null, as in Vespa's NonFiniteToNullDataSink.java."""
    return orjson.dumps(features, show, _TENSORS)
