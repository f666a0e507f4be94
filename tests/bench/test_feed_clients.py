"""Feeding by several clients: every document is sent once, and the server's cores are counted while they are."""

from __future__ import annotations

import json
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from bench import feed_clients
from bench.feed import Fed, cpu_row, document, ratio_row
from bench.feed_clients import Options
from bench.layers import NothingMeasured
from bench.load import Load
from bench.service import Running


def test_a_line_of_a_feed_is_a_request() -> None:
    line = document(12, 'a "title"', "naïve body")
    head, _, body = feed_clients.put(line.encode()).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /document/v1/bench/article/docid/12 HTTP/1.1\r\n")
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
    assert json.loads(body) == {"fields": json.loads(line)["fields"]}
    with pytest.raises(ValueError, match=r"no put|not enough values"):
        feed_clients.put(b'{"update": "id:bench:article::1"}')


def test_cores_are_the_servers_time_over_that_of_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process stands for the server: one thread that works all the time uses about a core, and no more."""
    process: Any = SimpleNamespace(pid=os.getpid())
    server, sent = Running(process, port=0, ready_seconds=0), []

    def busy(port: int, requests: list[bytes], connections_count: int, cores: list[int]) -> Load:
        sent.extend(requests)
        begun = time.process_time()
        while time.process_time() < begun + 0.02:
            pass
        return Load([1.0] * len(requests), 1)

    monkeypatch.setattr(feed_clients, "load", busy)
    requests = [b"%d" % number for number in range(7)]
    used, rate = feed_clients.measured(server, requests, [], Options())
    assert sorted(sent) == requests
    assert used > 0
    assert rate > 0
    with pytest.raises(NothingMeasured):
        feed_clients.measured(server, [], [], Options())
    monkeypatch.setattr(feed_clients, "load", lambda *_: Load([], 1))
    with pytest.raises(AssertionError, match="not every document"):
        feed_clients.measured(server, requests, [], Options())


def test_feeding_is_judged_by_its_rate_and_by_the_servers_time() -> None:
    ours, most = [Fed(6000, 100, 61), Fed(8000, 100, 59), Fed(7000, 100, 60)], [Fed(10_000, 90, 26)]
    assert (ratio_row("w", ours, most, 0.7).ratio, ratio_row("w", ours, most, 0.7).met) == ("0.70", True)
    assert (cpu_row("w", ours, most, 60).ours, cpu_row("w", ours, most, 60).met) == ("60 µs", True)
    assert cpu_row("w", ours, most, 59).met is False
