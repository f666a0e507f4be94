"""Reads a request about many documents: its path, and the parameters of its query string, checked one by one.

A visit reads documents; a bulk operation changes those that it visits. Both say in the same words which documents
they are about: `Visit`. Parameters are looked at in the order in which Vespa does, so that of several that are wrong
the same one is reported.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct, structs

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.container.document.continuations import Continuation, fingerprint
from paperwasp.container.document.request import ROOT, read_field_set, read_trace_level
from paperwasp.container.document.visited_clusters import VisitCluster, VisitClusters
from paperwasp.container.timeouts import timeout_ms
from paperwasp.coordination.messages.documents import VisitRequest
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection import Purpose, check_selection, parse_selection
from paperwasp.document.tensor.json_output import FORMS
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request, decode

_T = TypeVar("_T")
SPACES: Final = ("default", "global")
_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**64 - 1
_DIGITS: Final = compile_later(r"-?[0-9]{1,20}")
_MARGIN_MS: Final = 5000.0
_MARGIN_SHARE: Final = 0.9
_MARGIN_LEAST_MS: Final = 100.0


class Place(Struct, frozen=True):
    """The part of the documents that a path names. All None: everything."""

    namespace: str | None = None
    document_type: str | None = None
    number: int | None = None
    group: str | None = None

    @classmethod
    def of(cls, raw_path: str) -> Place:
        """The place that a path names, which is no single document. Errors: InvalidInput for broken escapes."""
        parts = raw_path[len(ROOT) :].rstrip("/").split("/")
        if len(parts) < 3:
            return cls()
        namespace, document_type, kind = (decode(part) for part in parts[:3])
        number = int(parts[3]) if kind == "number" else None
        return cls(namespace, document_type, number, decode(parts[3]) if kind == "group" else None)

    def prefix(self, document_type: str) -> str:
        """The beginning of the ids of its documents of the type."""
        modifier = "" if self.number is None else f"n={self.number}:"
        if self.group is not None:
            modifier = f"g={self.group}:"
        return f"id:{self.namespace}:{document_type}:{modifier}"

    @property
    def location(self) -> bytes:
        """The beginning of their global ids; empty: they have none in common."""
        if self.number is None and self.group is None:
            return b""
        return DocumentId("", "", "", self.number, self.group).gid[:4]


class Visit(Struct, frozen=True):
    """The documents that a request is about, and how it wants them."""

    cluster: VisitCluster
    documents: VisitRequest
    """The request to the content cluster, which is sent chunk by chunk."""
    start: Continuation
    timeout_ms: float
    """The timeout of the request."""
    visit_ms: float
    """For the visit: less than the request's, so that there is an answer in time."""
    trace_level: int = 0
    wanted: int | None = None
    """Documents in one answer; None: nothing was said."""
    stream: bool = False


class Parameters:
    """The query string of one request, whose parameters are taken one by one."""

    def __init__(self, request: Request) -> None:
        self._given = request.parameters()
        self._raw_path = request.raw_path

    def text(self, name: str) -> str | None:
        """Errors: InvalidInput where it is there without a value."""
        text = self._given.get(name)
        if text == "":
            raise InvalidInput(f"Expected non-empty value for request property '{name}'")
        return text

    def get(self, name: str, convert: Callable[[str], _T]) -> _T | None:
        """Errors: InvalidInput."""
        text = self.text(name)
        return None if text is None else convert(text)

    def required(self, name: str) -> str:
        """The text of a parameter. Errors: InvalidInput where it is missing."""
        text = self.text(name)
        if text is None:
            raise InvalidInput(f"Must specify '{name}' at '{self._raw_path}'")
        return text

    def refuse(self, *names: str) -> None:
        """Errors: InvalidInput where one of them is there."""
        for name in names:
            if name in self._given:
                raise InvalidInput(f"May not specify '{name}' at '{self._raw_path}'")


def read_visit(request: Request, clusters: VisitClusters, now_us: int) -> Visit:
    """Reads the visit of a GET. Errors: InvalidInput."""
    parameters, place = Parameters(request), Place.of(request.raw_path)
    timeout = _timeout_ms(parameters)
    parameters.refuse("dryRun")
    stream = bool(parameters.get("stream", _boolean))
    wanted = _positive(parameters, "wantedDocumentCount", _INT_MAX)
    _positive(parameters, "concurrency", limits.VISIT_CONCURRENCY)
    if place.document_type is None and parameters.text("cluster") is None:
        raise InvalidInput(
            "Must set 'cluster' parameter to a valid content cluster id when visiting at a root /document/v1/ level"
        )
    visit = _read_common(parameters, place, clusters, now_us, timeout)
    shown = structs.replace(
        visit.documents,
        fields=read_field_set(
            parameters.text("fieldSet"), visit.cluster.types, visit.cluster.derived, visit.documents.document_types
        ),
        removes=bool(parameters.get("includeRemoves", _boolean)),
        tensor_form=_tensor_form(parameters),
    )
    return replace(visit, documents=shown, wanted=wanted, stream=stream)


def read_bulk(request: Request, clusters: VisitClusters, now_us: int) -> Visit:
    """Which documents a bulk operation is about, and for how long it works on them. Errors: InvalidInput."""
    parameters, place = Parameters(request), Place.of(request.raw_path)
    timeout = _timeout_ms(parameters)
    parameters.refuse("concurrency", "fieldSet", "route", "wantedDocumentCount")
    parameters.required("selection")
    parameters.required("cluster")
    visit = _read_common(parameters, place, clusters, now_us, timeout)
    time_chunk = parameters.get("timeChunk", _milliseconds) or limits.BULK_TIME_CHUNK_MS
    return replace(visit, visit_ms=min(visit.visit_ms, time_chunk))


def _read_common(parameters: Parameters, place: Place, clusters: VisitClusters, now_us: int, timeout: float) -> Visit:
    selection = parameters.text("selection") or ""
    trace_level = parameters.get("tracelevel", read_trace_level) or 0
    start = parameters.get("continuation", Continuation.parse)
    from_us = parameters.get("fromTimestamp", _read_unsigned) or 0
    to_us = parameters.get("toTimestamp", _read_unsigned) or 0
    if 0 < to_us < from_us:
        raise InvalidInput("toTimestamp must be greater than, or equal to, fromTimestamp")
    cluster = clusters.cluster(parameters.text("cluster"), place.document_type)
    space = parameters.text("bucketSpace")
    types = cluster.types_of(place.document_type) if place.document_type else cluster.types_in(_space(space))
    slices, slice_id = _slices(parameters)
    parsed = parse_selection(selection, "selection")
    check_selection(parsed, cluster.types, cluster.imported, Purpose.VISIT)
    what = fingerprint(cluster.id, place, types, selection, from_us, to_us, slices, slice_id)
    if start is not None and start.fingerprint != what:
        raise InvalidInput(
            "The continuation is of another visit: one goes on with the path, cluster, selection, slices and "
            "timestamps that it began with"
        )
    start = start or Continuation(now_us, what)
    documents = VisitRequest(
        types,
        selection,
        tuple(place.prefix(name) for name in types) if place.document_type else (),
        place.location,
        slices=slices,
        slice=slice_id,
        from_us=from_us,
        to_us=to_us,
        now_us=start.now_us,
    )
    return Visit(cluster, documents, start, timeout, visit_ms(timeout), trace_level)


def visit_ms(timeout: float) -> float:
    """How long a visit takes at most, of the time that its request has."""
    return max(1.0, timeout - _MARGIN_MS, _MARGIN_SHARE * timeout - _MARGIN_LEAST_MS)


def _space(text: str | None) -> str:
    if text is not None and text not in SPACES:
        known = ", ".join(SPACES)
        raise InvalidInput(f"Bucket space '{text}' is not a known bucket space; expected one of {known}")
    return text or "default"


def _slices(parameters: Parameters) -> tuple[int, int]:
    """How many slices there are, and which of them is visited."""
    slices = parameters.get("slices", _integer)
    slice_id = parameters.get("sliceId", _integer)
    if (slices is None) != (slice_id is None):
        raise InvalidInput("None or both of 'slices' and 'sliceId' must be set")
    if slices is None or slice_id is None:
        return 1, 0
    if slices <= 0:
        raise InvalidInput(f"slices must be positive, got {slices}")
    if not 0 <= slice_id < slices:
        raise InvalidInput(f"sliceId must be from 0 to {slices - 1}, got {slice_id}")
    return slices, slice_id


def _positive(parameters: Parameters, name: str, most: int) -> int | None:
    value = parameters.get(name, _integer)
    if value is None:
        return None
    if value <= 0:
        raise InvalidInput(f"{name} must be positive")
    if value > most:
        raise InvalidInput(f"{name} must be at most {most}")
    return value


def _integer(text: str) -> int:
    if _DIGITS.fullmatch(text) and -_INT_MAX <= int(text) <= _INT_MAX:
        return int(text)
    raise InvalidInput(f"Failed parsing '{text}': expected a whole number of 32 bits")


def _read_unsigned(text: str) -> int:
    if _DIGITS.fullmatch(text) and 0 <= int(text) <= _LONG_MAX:
        return int(text)
    raise InvalidInput(f"Failed parsing '{text}': expected a whole number of 64 bits that is not negative")


def _boolean(text: str) -> bool:
    """As Boolean.parseBoolean of Java, which Vespa takes: whatever is not "true" is false."""
    return text.lower() == "true"


def _timeout_ms(parameters: Parameters) -> float:
    return parameters.get("timeout", _milliseconds) or float(limits.DOCUMENT_TIMEOUT_MS)


def _milliseconds(text: str) -> float:
    try:
        return timeout_ms(text)
    except ValueError as error:
        raise InvalidInput(f"Error parsing '{text}': {error}") from None


def _tensor_form(parameters: Parameters) -> str:
    """Vespa takes what it does not know for the short form."""
    form = parameters.text("format.tensors")
    return form if form in FORMS else "short"
