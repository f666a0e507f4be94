"""The trace of a request about one document (`tracelevel`): the request, the clusters asked, and the outcome.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#tracelevel
Differs: the levels from 1 to 9 show the same.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Any, Final

import orjson

from paperwasp.cluster.messages.documents import ApplyRequest, GetResponse
from paperwasp.container.document.operation import Call
from paperwasp.document.operations import Operation, Outcome, Put, Update
from paperwasp.errors import PaperwaspError

Found = Outcome | GetResponse | None
"""None: nobody was asked, since no content cluster's selection has the document."""
_IGNORED: Final = "no content cluster has such documents, as their selections say"


def trace_member(call: Call, answer: Found | PaperwaspError, since_ns: int) -> bytes:
    """The member `trace`, with a comma before it; empty where no trace was requested."""
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
