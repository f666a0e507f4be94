"""Puts and updates that are read in few steps, beside `operation.read_call`, which says what is right.

Whole feeds of both ways: `test_random_feeds.py`.
"""

from __future__ import annotations

import orjson
import pytest

from paperwasp import limits
from paperwasp.container.document.operation import Call, read_call
from paperwasp.container.document.plain_changes import PlainCall, PlainChanges
from paperwasp.container.document.request import read_options, read_path
from paperwasp.container.document.routes import DocumentRoutes
from paperwasp.coordination.messages.documents import ApplyRequest
from paperwasp.document.plain_fields import operation_of
from paperwasp.http.messages import Request
from tests.container.document.clusters import cluster, model

ROUTES = DocumentRoutes(model(cluster("one", "music", "book"), cluster("two", "book")), "content/{}".format)
MUSIC = orjson.dumps({"fields": {"title": "Kind of Blue", "year": 1959, "vector": [1, 2]}})
YEAR = orjson.dumps({"fields": {"year": {"assign": 1959}}})


def call_of(found: PlainCall | Call | None) -> tuple[object, ...]:
    """What is sent, where to, and with what time."""
    assert found is not None
    if isinstance(found, PlainCall):
        change = found.change
        operation = operation_of(change)
        assert (change.id, change.gid, change.document_type) == (
            operation.id.text,
            operation.id.gid,
            operation.id.document_type,
        )
        return operation, found.address, found.timeout_ms
    assert isinstance(found.message, ApplyRequest)
    (target,) = found.targets
    return found.message.operation, target.address, found.options.timeout_ms


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("POST", "music/docid/1", "", MUSIC),
        ("POST", "music/docid/1", "", orjson.dumps({"fields": {"title": "Kind of Blue", "year": 1959}})),
        ("POST", "music/docid/a:b/docid/c", "timeout=3&create=true", MUSIC),
        ("PUT", "music/docid/1", "create=true&cluster=one&x=y", YEAR),
        ("PUT", "book/docid/1", "route=two", orjson.dumps({"fields": {"pages": {"assign": 7}}})),
    ],
)
def test_what_is_plain_is_read_at_once(method: str, path: str, query: str, body: bytes) -> None:
    request = Request(method, f"/document/v1/n/{path}", query, {}, body)
    document_id = read_path(request.raw_path)
    assert document_id is not None
    wanted = call_of(read_call(request, document_id, read_options(query, method), ROUTES))
    changes = PlainChanges(ROUTES)
    for _ in range(2):
        assert call_of(changes.read(request)) == wanted


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("POST", "music/docid/", "", MUSIC),
        ("POST", "music/docid/a%20b", "", MUSIC),
        ("POST", "music/docid/a+b", "", MUSIC),
        ("POST", "music/docid/\x01", "", MUSIC),
        ("POST", "mu%73ic/docid/1", "", MUSIC),
        ("POST", "music/number/1/1", "", MUSIC),
        ("POST", "nothing/docid/1", "", MUSIC),
        ("POST", "book/docid/1", "", orjson.dumps({"fields": {"pages": 7}})),
        ("POST", "music/docid/1", "condition=true", MUSIC),
        ("POST", "music/docid/1", "tracelevel=1", MUSIC),
        ("POST", "music/docid/1", "dryRun=true", MUSIC),
        ("POST", "music/docid/1", "cluster=two", MUSIC),
        ("POST", "music/docid/1", "timeout=x", MUSIC),
        ("POST", "music/docid/1", "a=" + "b" * limits.ALIKE_CHANGE_CHARACTERS, MUSIC),
        ("POST", "music/docid/1", "", YEAR),
        ("POST", "music/docid/1", "", orjson.dumps({"fields": {"tags": ["a", 1]}})),
        ("DELETE", "music/docid/1", "", b""),
        ("GET", "music/docid/1", "", b""),
    ],
)
def test_all_else_goes_the_general_way(method: str, path: str, query: str, body: bytes) -> None:
    changes = PlainChanges(ROUTES)
    for _ in range(2):
        assert changes.read(Request(method, f"/document/v1/n/{path}", query, {}, body)) is None


def test_a_bounded_number_of_kinds_of_requests_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ALIKE_CHANGES", 3)
    changes = PlainChanges(ROUTES)
    for number in range(10):
        request = Request("POST", "/document/v1/n/music/docid/1", f"x={number}", {}, MUSIC)
        assert changes.read(request) is not None
        assert len(changes._known) <= 3
    for method, query in (("GET", ""), ("POST", "x=" + "y" * limits.ALIKE_CHANGE_CHARACTERS)):
        known = dict(changes._known)
        assert changes.read(Request(method, "/document/v1/n/music/docid/1", query, {}, MUSIC)) is None
        assert changes._known == known
