"""What one place of the code logs again and again is counted."""

from __future__ import annotations

import logging

import pytest

from paperwasp import limits
from paperwasp.http import log_limit
from paperwasp.http.log_limit import SameSeldom


def test_one_place_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("paperwasp.http.test")
    same_seldom = SameSeldom()
    log.addFilter(same_seldom)
    try:
        for client in range(1000):
            log.warning("mistake of %s", client)
            if client % 500 == 0:
                log.warning("another")
        assert [record.getMessage() for record in caplog.records].count("another") == 2
        assert len(caplog.records) == limits.HTTP_LOG_LINES + 2
    finally:
        log.removeFilter(same_seldom)


def test_what_was_left_out_is_said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(log_limit, "monotonic", lambda: now)
    log = logging.getLogger("paperwasp.http.test")
    same_seldom = SameSeldom()
    log.addFilter(same_seldom)
    try:
        for number in range(limits.HTTP_LOG_LINES + 8):
            if number == limits.HTTP_LOG_LINES + 7:
                now += limits.HTTP_LOG_SECONDS + 1
            log.warning("mistake of %s", number)
    finally:
        log.removeFilter(same_seldom)
    assert caplog.records[-1].getMessage() == f"mistake of {limits.HTTP_LOG_LINES + 7} (7 more like this were left out)"
