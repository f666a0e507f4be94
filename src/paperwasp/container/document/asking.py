"""The answers to requests about one document that content clusters have been asked for.

    Asking            whatever is asked
    Changing          a plain change
    AskingTogether    requests that came together, each as one of these two
    ChangingTogether  plain changes that came together: those that are done are answered by one call

Runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic_ns
from typing import Any, Final

import orjson

from paperwasp.container.document.answer import (
    IGNORED_FIELDS,
    IGNORED_OPERATION,
    JSON,
    NO_HEADERS,
    document_json,
    document_response,
    error_of,
    error_response,
)
from paperwasp.container.document.operation import Call
from paperwasp.container.document.plain_changes import ChangesTogether, PlainCall
from paperwasp.coordination.messages.documents import ApplyRequest, GetResponse
from paperwasp.core._core import PlainChange, document_answers
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Outcome, Put, Update
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import PendingAnswer
from paperwasp.http.request_batch import RequestBatch

Found = Outcome | GetResponse | None
"""None: nobody was asked, since no content cluster's selection has the document."""
_IGNORED: Final = "no content cluster has such documents, as their selections say"


class Asking(PendingAnswer):
    """The answer to a request that content clusters have been asked for."""

    __slots__ = ("_call", "_request", "_since_ns")

    def __init__(self, request: Request, call: Call) -> None:
        super().__init__()
        self._request = request
        self._call = call
        self._since_ns = monotonic_ns() if call.options.trace_level > 0 else 0

    def take(self, found: Any) -> None:
        """Gives the answer by what the one content cluster has answered, or by an error."""
        try:
            if isinstance(found, Exception) and not isinstance(found, PaperwaspError):
                raise found
            answer: Response | Exception = self.response_to(found)
        except Exception as error:  # a defect
            answer = error
        self.give(answer)

    def response_to(self, found: Found | PaperwaspError) -> Response:
        """The response to what was found, or to an error."""
        request, call = self._request, self._call
        if isinstance(found, Outcome) and found.refusal is not None:
            found = error_of(found.refusal)
        trace = trace_member(call, found, self._since_ns) if call.options.trace_level else b""
        if isinstance(found, PaperwaspError):
            return error_response(request, found, call.id, trace)
        return _response_to(request, call, found, trace)


class Changing(PendingAnswer):
    """The answer to a request for a plain change, which one content cluster has been asked for."""

    __slots__ = ("_change", "_request")

    def __init__(self, request: Request, change: PlainChange) -> None:
        super().__init__()
        self._request = request
        self._change = change

    def take(self, found: Any) -> None:
        """Gives the answer by what the content cluster has answered, or by an error."""
        request, change = self._request, self._change
        if isinstance(found, Outcome):
            found = None if found.refusal is None else error_of(found.refusal)
        if found is None:
            self.give(Response(200, document_json(request.raw_path, change.id), JSON, NO_HEADERS))
        elif isinstance(found, PaperwaspError):
            self.give(error_response(request, found, DocumentId.parse(change.id)))
        else:  # a defect
            self.give(found)


class AskingTogether:
    """The answers to the first requests of a batch, which one content cluster has been asked for."""

    __slots__ = ("_batch", "_calls")

    def __init__(self, batch: RequestBatch, calls: Sequence[PlainCall | Call]) -> None:
        self._batch = batch
        self._calls = calls

    def take(self, number: int, found: Any) -> None:
        """Gives the answer to the request of that number by what the content cluster has answered, or by an error."""
        batch, call = self._batch, self._calls[number]
        if isinstance(found, Outcome) and found.refusal is None:
            id_text = call.id.text if isinstance(call, Call) else call.change.id
            batch.succeed(number, document_json(batch.head.raw_path + batch.names[number], id_text))
            return
        request = batch.request(number)
        asking = Asking(request, call) if isinstance(call, Call) else Changing(request, call.change)
        asking.hand_to(partial(batch.answer, number))
        asking.take(found)


class ChangingTogether:
    """The answers to the first requests of a batch, all of them for plain changes."""

    __slots__ = ("_batch", "_together")

    def __init__(self, batch: RequestBatch, together: ChangesTogether) -> None:
        self._batch = batch
        self._together = together

    def take(self, first: int, found: Sequence[Any]) -> None:
        """Gives the answers to some of the requests, from that number on."""
        batch = self._batch
        if all(isinstance(each, Outcome) and each.refusal is None for each in found):
            names = batch.names[first : first + len(found)]
            batch.succeed_all(first, document_answers(batch.head.raw_path, self._together.id_start, names))
            return
        for number, each in enumerate(found, first):
            changing = Changing(batch.request(number), self._together.changes[number])
            changing.hand_to(partial(batch.answer, number))
            changing.take(each)


def _response_to(request: Request, call: Call, answer: Found, trace: bytes) -> Response:
    if isinstance(answer, GetResponse):
        if answer.fields is None:
            return document_response(404, request, call.id, trace)
        return document_response(200, request, call.id, trace + b',"fields":' + answer.fields)
    return document_response(200, request, call.id, trace, _headers(call))


def _headers(call: Call) -> Mapping[str, str]:
    """Headers of a success that mark ignored operations and fields."""
    if call.targets and not call.ignored_fields:
        return NO_HEADERS
    headers = {IGNORED_OPERATION: not call.targets, IGNORED_FIELDS: call.ignored_fields}
    return {name: "true" for name, is_so in headers.items() if is_so}


def trace_member(call: Call, answer: Found | PaperwaspError, since_ns: int) -> bytes:
    """The member `trace` (`tracelevel`), with a comma before it; empty where no trace was requested.

    It shows the request, the clusters asked, and the outcome.

    Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#tracelevel
    Differs: the levels from 1 to 9 show the same.
    """
    if call.options.trace_level == 0:
        return b""
    took_ms = (monotonic_ns() - since_ns) / 1e6
    asked: list[dict[str, Any]] = [
        {"message": f"Content cluster '{target.cluster}' was asked at '{target.address}'"} for target in call.targets
    ]
    parts = [
        {"message": f"{_asked_for(call)}, within {call.options.timeout_ms:g} ms"},
        *(asked if len(asked) == 1 else [{"fork": asked}] if asked else []),
        {"message": f"After {took_ms:.3f} ms: {_describe_outcome(answer)}"},
    ]
    return b',"trace":' + orjson.dumps(parts)


def _asked_for(call: Call) -> str:
    message = call.message
    if not isinstance(message, ApplyRequest):
        fields = "all fields" if message.fields is None else f"{len(message.fields)} fields"
        return f"Get {call.id} with {fields}"
    condition = message.operation.condition
    return _change(message.operation, message.size_bytes) + (f" if {condition}" if condition is not None else "")


def _change(operation: Operation, size_bytes: int) -> str:
    if isinstance(operation, Put):
        does = f"Put {operation.id}: {len(operation.fields)} fields in {size_bytes} bytes"
        return does + (", to be created" if operation.create else "")
    if isinstance(operation, Update):
        does = f"Update {operation.id}: {len(operation.updates)} changes in {size_bytes} bytes"
        return does + (", to be created where it is not" if operation.create else "")
    return f"Remove {operation.id}"


def _describe_outcome(answer: Found | PaperwaspError) -> str:
    if isinstance(answer, PaperwaspError):
        return answer.message
    if answer is None:
        return _IGNORED
    if isinstance(answer, GetResponse):
        return "no such document" if answer.fields is None else f"a document of {len(answer.fields)} bytes"
    return "applied; there was a document" if answer.existed else "applied; there was no document"
