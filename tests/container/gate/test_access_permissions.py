"""The permission that each request needs: the table, and that no spelling of a path escapes it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.admin.access import KeyFolder, KnownKeys, Refusals
from paperwasp.application.client_rules import ClientRules
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.container.app import ContainerApp, error_response
from paperwasp.container.gate.filters import RequestFilters
from paperwasp.container.gate.gate import Gate
from paperwasp.container.gate.keys import AccessRules, Accounts
from paperwasp.container.gate.permissions import needed_permission
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import ClientCertificate, Request, Response
from paperwasp.http.request_batch import RequestBatch
from tests.http.batched import Client, KeptAnswers

OPEN = (
    "/", "/status.html", "/ApplicationStatus", "/state/v1", "/state/v1/", "/state/v1/health", "/state/v1/metrics",
    "/metrics/v2/values", "/prometheus/v1/values",
)  # fmt: skip


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_of_health_and_metrics_are_open(method: str, path: str) -> None:
    assert needed_permission(method, path) is None


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/search", "read"),
        ("GET", "/search/", "read"),
        ("POST", "/search/", "read"),
        ("HEAD", "/search/", "read"),
        ("OPTIONS", "/search/", "read"),
        ("PUT", "/search/", "write"),
        ("DELETE", "/search/x", "write"),
        ("get", "/search/", "write"),
        ("GET", "/document/v1/ns/t/docid/1", "read"),
        ("GET", "/document/v1/", "read"),
        ("POST", "/document/v1/ns/t/docid/1", "write"),
        ("PUT", "/document/v1/ns/t/docid/1", "write"),
        ("DELETE", "/document/v1/ns/t/docid/1", "write"),
        ("POST", "/document/v1/", "write"),
        ("PATCH", "/document/v1/", "write"),
        ("TRACE", "/document/v1/", "write"),
        ("GET", "/model-evaluation/v1", "read"),
        ("POST", "/model-evaluation/v1/m/eval", "read"),
        ("PUT", "/model-evaluation/v1/m/eval", "write"),
        ("POST", "/searching", "write"),
        ("GET", "/unknown", "read"),
        ("POST", "/unknown", "write"),
        ("GET", "//", "read"),
        ("GET", "/state/v1x", "read"),
        ("GET", "/State/v1/health", "read"),
        ("GET", "/state/v%31/health", "read"),
        ("GET", "/status.html/", "read"),
        ("GET", "", "read"),
    ],
)
def test_everything_else_reads_or_writes(method: str, path: str, permission: str) -> None:
    assert needed_permission(method, path) == permission


PARTS = """
/ // .. . search Search %73earch document v1 state health metrics status.html model-evaluation %2e%2e %2F ; ? # \\ %00
prometheus v2 values ApplicationStatus
"""


@given(
    st.lists(st.sampled_from(PARTS.split()), max_size=8).map("".join), st.sampled_from(["GET", "POST", "PUT", "DELETE"])
)
def test_what_needs_no_permission_is_answered_by_the_open_pages_alone(path: str, method: str) -> None:
    """Without an application the interfaces answer 503 or make themselves; the pages answer what they do always."""
    if needed_permission(method, path) is not None:
        return
    app = ContainerApp(EmbeddedMessenger())
    app._make_interfaces = lambda: pytest.fail(f"{method} {path} reaches an interface")  # type: ignore[method-assign]
    try:
        answer = asyncio.run(app.handle(Request(method, path)))
    except PaperwaspError:
        return
    assert isinstance(answer, Response)
    assert b"No application is active yet: deploy one" not in answer.body or path == "/"


def test_requests_that_came_together_are_taken_where_each_of_them_may_be_asked(tmp_path: Path) -> None:
    """By the certificate of its connection, or by a key that was sent before; filters look at each."""
    later = replace(SYSTEM, time_ns=lambda: SYSTEM.time_ns() + 10**12)
    keys = KnownKeys(tmp_path, later)
    key, token = KeyFolder(tmp_path).create("a", ("write",))
    certificates = {permission: frozenset(("known",)) for permission in ("read", "write")}
    rules = AccessRules(ClientRules(certificates, None, frozenset()), Accounts(keys, Refusals(), later))
    gate = Gate(rules, None, error_response)

    def batch(*digests: str, **headers: str) -> RequestBatch:
        request = Request("POST", "/document/v1/ns/t/docid/1", "", headers, b"{}")
        made = KeptAnswers(Client()).batch([request] * len(digests))
        peers = [Client(certificate=ClientCertificate("", (), digest) if digest else None) for digest in digests]
        made.lines = [KeptAnswers(peer) for peer in peers]  # type: ignore[misc]
        return made

    assert gate.admits(batch("known", "known"))
    assert not gate.admits(batch("known", "other"))
    assert not gate.admits(batch("", "known"))
    sent = {"authorization": f"Bearer {token}"}
    assert not gate.admits(batch("", **sent))
    assert rules.refusal(batch("", **sent).request(0)) is None  # from here on it is known
    assert keys.find(token) == key and gate.admits(batch("", "other", **sent))
    assert not Gate(rules, cast(RequestFilters, object()), error_response).admits(batch("known"))
    assert Gate(None, None, error_response).admits(batch(""))
