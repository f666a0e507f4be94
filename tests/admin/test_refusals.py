"""What the log says of refused requests."""

from __future__ import annotations

import logging

import pytest

from paperwasp.admin.access import Refusals, bearer_token
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.http.messages import ClientCertificate, Request
from paperwasp.limits.access import ACCESS_REFUSALS, ACCESS_REFUSALS_SECONDS

SECRET = "pw_aaaaaaaaaaaaaaaa_" + "s" * 43
REQUEST = Request(
    "GET", "/search/", f"token={SECRET}", {"authorization": f"Bearer {SECRET}"}, SECRET.encode(), address="10.0.0.1"
)


def test_a_line_says_who_asked_what_and_why_it_was_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Refusals().note(REQUEST, 403, "an unknown key")
        Refusals().note(replace(REQUEST, client=ClientCertificate("me", (), "ab12")), 403, "no permission")
    assert [record.message for record in caplog.records] == [
        "Refused GET '/search/' from 10.0.0.1 with 403: an unknown key",
        "Refused GET '/search/' from 10.0.0.1 with certificate 'me' ab12 with 403: no permission",
    ]


def test_lines_cannot_be_forged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Refusals().note(replace(REQUEST, raw_path="/a\nRefused nobody" + "x" * 1000), 401, "no key")
    (record,) = caplog.records
    assert "\n" not in record.message and len(record.message) < 400


def test_a_flood_of_refusals_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    now = [0]
    refusals = Refusals(replace(SYSTEM, monotonic_ns=lambda: now[0]))
    with caplog.at_level(logging.WARNING):
        for _ in range(ACCESS_REFUSALS + 1000):
            refusals.note(REQUEST, 403, "an unknown key")
        assert len(caplog.records) == ACCESS_REFUSALS
        now[0] = int(ACCESS_REFUSALS_SECONDS * 1e9)
        refusals.note(REQUEST, 403, "an unknown key")
    assert [record.message for record in caplog.records[ACCESS_REFUSALS:]] == [
        "1000 more requests were refused, without a line for each",
        "Refused GET '/search/' from 10.0.0.1 with 403: an unknown key",
    ]


def test_secrets_are_not_shown_where_a_request_is_printed() -> None:
    assert SECRET not in repr(replace(REQUEST, query=""))


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer   ", None),
        ("Basic abc", None),
        ("Bearerabc", None),
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER  abc ", "abc"),
        ("Bearer abc, Bearer def", "abc, Bearer def"),
    ],
)
def test_the_token_of_a_header(value: str | None, token: str | None) -> None:
    assert bearer_token({} if value is None else {"authorization": value}) == token
