"""Document v1: one document, visits, and changes of many documents.

The options of requests for one document are those of `container.document.request.OPTIONS`; of many, what
`container.document.visit_parameters` reads.
"""

from __future__ import annotations

from typing import Any, Final

from paperwasp import limits
from paperwasp.container.document.operation import METHODS
from paperwasp.container.document.request import NOT_OF, OPTIONS
from paperwasp.container.document.visit_parameters import SPACES
from paperwasp.document.tensor.json_output import FORMS
from tools.openapi.parts import (
    BOOLEAN,
    CBOR,
    DURATION,
    INT_MAX,
    JSON,
    STRING,
    Json,
    answer,
    enum,
    errors,
    in_path,
    json_answer,
    json_body,
    operation,
    query,
    ref,
    with_default,
)

_TAG: Final = "documents"
_LINES: Final = "application/jsonl"
_LONG: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
_TIMEOUT: Final = with_default(DURATION, f"{limits.DOCUMENT_TIMEOUT_MS // 1000}s")
_PARAMETERS: Final[dict[str, tuple[Json, str]]] = {
    "timeout": (_TIMEOUT, "How long the answer may take."),
    "tracelevel": (with_default({"type": "integer", "minimum": 0, "maximum": 9}, 0), "From 1 on, a trace."),
    "create": (
        with_default(BOOLEAN, False),
        "Of an update: makes the document where there is none. Of a put: only"
        " where there is none; beside a condition, also where there is none.",
    ),
    "dryRun": (with_default(BOOLEAN, False), "Checks the request, and changes nothing."),
    "condition": (STRING, "A document selection: the document is changed only where it holds."),
    "cluster": (STRING, "The content cluster."),
    "fieldSet": (STRING, "The fields to show: `[document]`, `[id]`, `[all]`, or `type:field,field`."),
    "route": (STRING, "A route, of which the content cluster counts."),
    "format.tensors": (with_default(enum(*FORMS), FORMS[0]), "How tensors are written."),
    "selection": (STRING, "A document selection: which documents."),
    "continuation": (STRING, "The token of the answer before: goes on where that ended."),
    "wantedDocumentCount": ({"type": "integer", "minimum": 1, "maximum": INT_MAX}, "As many documents in an answer."),
    "concurrency": (
        with_default({"type": "integer", "minimum": 1, "maximum": limits.VISIT_CONCURRENCY}, 1),
        "Checked, and without effect.",
    ),
    "bucketSpace": (with_default(enum(*SPACES), SPACES[0]), "Where documents of types that are global are, or others."),
    "stream": (with_default(BOOLEAN, False), "Sends documents as they are read, to the end."),
    "slices": ({"type": "integer", "minimum": 1, "maximum": INT_MAX}, "The number of parts; beside sliceId."),
    "sliceId": ({"type": "integer", "minimum": 0, "maximum": INT_MAX - 1}, "The part to visit, counted from 0."),
    "fromTimestamp": (with_default(_LONG, 0), "Only documents changed since, in microseconds since 1970."),
    "toTimestamp": (with_default(_LONG, 0), "Only documents changed before; 0: no bound."),
    "includeRemoves": (with_default(BOOLEAN, False), "Also documents that were removed."),
    "destinationCluster": (STRING, "The content cluster that documents are put into."),
    "timeChunk": (
        with_default(DURATION, f"{limits.BULK_TIME_CHUNK_MS // 1000}s"),
        "How long one request works before it is answered with a continuation.",
    ),
}
_OF_MANY: Final = (
    *("cluster", "selection", "bucketSpace", "continuation", "slices", "sliceId", "fromTimestamp", "toTimestamp"),
    *("timeout", "tracelevel"),
)
OF_VISITS: Final = (
    *_OF_MANY,
    *("fieldSet", "wantedDocumentCount", "concurrency", "stream", "includeRemoves", "format.tensors"),
)
OF_BULK: Final = (*_OF_MANY, "timeChunk")
_REQUIRED: Final = {
    "PUT": ("cluster", "selection"),
    "DELETE": ("cluster", "selection"),
    "POST": ("cluster", "selection", "destinationCluster"),
}
_PLACES: Final = {"docid": "docid", "number": "number/{number}", "group": "group/{group}"}
_NAMES: Final = {"docid": "", "number": "OfNumber", "group": "OfGroup"}
_CHANGED_HEADERS: Final = {
    "X-Vespa-Ignored-Fields": "true where fields were left out that the type does not have.",
    "X-Vespa-Ignored-Operation": "true where no content cluster takes the document.",
}
_DONE: Final = json_answer("Done, and durable.", ref("DocumentAnswer"), _CHANGED_HEADERS)
_PUTS: Final = {"song": {"fields": {"title": "Kind of Blue", "year": 1959, "tags": ["jazz", "modal"]}}}
_UPDATES: Final = {
    "assign": {"fields": {"title": {"assign": "Blue Train"}}},
    "count": {"fields": {"plays": {"increment": 1}}, "condition": "song.year > 1950"},
    "path": {"fields": {"scores{jazz}": {"assign": 3}}, "create": True},
}


def _parameter(name: str, required: bool = False) -> Json:
    schema, text = _PARAMETERS[name]
    return query(name, schema, text, required=required)


def of_one(method: str) -> list[str]:
    """The names of the options of a request for one document."""
    return [name for name in OPTIONS if method not in NOT_OF.get(name, ()) and (name, method) != ("dryRun", "GET")]


def _place(kind: str) -> list[Json]:
    found = [in_path("namespace", STRING, "The namespace."), in_path("documentType", STRING, "The document type.")]
    if kind == "number":
        found.append(in_path("number", _LONG, "The number by which documents lie together."))
    if kind == "group":
        found.append(in_path("group", STRING, "The group of documents that lie together."))
    return found


def _one(kind: str) -> dict[str, Any]:
    of = _NAMES[kind]
    get = {
        "200": json_answer("The document.", ref("Document")),
        **errors(ref("DocumentError"), 404, 504, 507),
        "404": json_answer(
            "There is no such document; or no such path.", {"anyOf": [ref("DocumentAnswer"), ref("DocumentError")]}
        ),
    }
    changed = {"200": _DONE, **errors(ref("DocumentError"), 404, 412, 502, 504, 507)}
    put = json_body(ref("Put"), "The whole document.", _PUTS)
    update = json_body(ref("Update"), "What changes in the document.", _UPDATES)
    details: dict[str, tuple[str, str, dict[str, Json], Json | None]] = {
        "GET": (f"getDocument{of}", "Reads a document.", get, None),
        "POST": (f"putDocument{of}", "Puts a document: creates it, or replaces it.", changed, put),
        "PUT": (f"updateDocument{of}", "Updates fields of a document.", changed, update),
        "DELETE": (f"removeDocument{of}", "Removes a document.", changed, None),
    }
    rest = in_path("docid", STRING, "The rest of the document's id; slashes in it need not be escaped.")
    found: dict[str, Any] = {"parameters": [*_place(kind), rest]}
    for method in METHODS:
        name, summary, responses, body = details[method]
        listed = [_parameter(option) for option in of_one(method)]
        found[method.lower()] = operation(name, summary, _TAG, responses, parameters=listed, body=body)
    return found


def _many(kind: str | None) -> dict[str, Any]:
    """Of the documents in a place; None: at the root."""
    of = "OfAll" if kind is None else _NAMES[kind]
    content = {JSON: ref("Visit"), CBOR: ref("Visit"), _LINES: ref("VisitLine")}
    visited = {
        "200": answer(
            "Documents; as lines of JSON, where `stream` is true and the client wants or takes them.", content
        ),
        **errors({"anyOf": [ref("DocumentError"), ref("Visit")]}, 404, 504, 507),
    }
    changed = {
        "200": json_answer("How many documents were visited; all changes are durable.", ref("Bulk"), _CHANGED_HEADERS),
        **errors({"anyOf": [ref("DocumentError"), ref("Bulk")]}, 404, 504, 507),
    }
    update = json_body(
        ref("Update"), "What changes in each document; a condition is refused.", {"assign": _UPDATES["assign"]}
    )
    details: dict[str, tuple[str, str, dict[str, Json], tuple[str, ...], Json | None]] = {
        "GET": (f"visit{of}", "Visits documents.", visited, OF_VISITS, None),
        "POST": (
            f"copyDocuments{of}",
            "Copies documents into another content cluster.",
            changed,
            (*OF_BULK, "destinationCluster"),
            None,
        ),
        "PUT": (f"updateDocuments{of}", "Updates all documents that are selected.", changed, OF_BULK, update),
        "DELETE": (f"removeDocuments{of}", "Removes all documents that are selected.", changed, OF_BULK, None),
    }
    found: dict[str, Any] = {} if kind is None else {"parameters": _place(kind)}
    for method in METHODS:
        if kind is None and method == "PUT":
            continue
        name, summary, responses, options, body = details[method]
        required = _REQUIRED.get(method, ("cluster",) if kind is None else ())
        listed = [_parameter(option, option in required) for option in options]
        found[method.lower()] = operation(name, summary, _TAG, responses, parameters=listed, body=body)
    return found


def paths() -> dict[str, dict[str, Any]]:
    """The root, and for each kind of place the documents there and one of them."""
    found = {"/document/v1/": _many(None)}
    for kind, place in _PLACES.items():
        root = f"/document/v1/{{namespace}}/{{documentType}}/{place}/"
        found[root] = _many(kind)
        found[f"{root}{{docid}}"] = _one(kind)
    return found
