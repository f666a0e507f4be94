"""The lines of the access log.

Authority: Vespa's page on access logging and its JSONFormatter.java: names, types and which are always there.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from paperwasp import limits
from paperwasp.admin.monitoring import access_log
from paperwasp.admin.monitoring.access_log import AccessLog
from paperwasp.admin.monitoring.log_files import LogFiles
from paperwasp.container.search.rendering import Coverage
from paperwasp.http.exchange import Exchange
from paperwasp.http.messages import ClientCertificate, Request, Response
from tests.admin.monitoring.test_log_files import files_in, read

NAME = "JsonAccessLog.default"


def exchange(certificate: ClientCertificate | None = None) -> Exchange:
    peer = SimpleNamespace(address="10.1.2.3", port=5555, number=7, certificate=certificate)
    line = SimpleNamespace(protocol="http2", version="HTTP/2.0")
    return cast(Exchange, SimpleNamespace(peer=peer, line=line, sent_bytes=321, received_bytes=12))


def logged(tmp_path: Path, *answered: tuple[Exchange, Request, Response]) -> list[dict[str, Any]]:
    log = AccessLog(LogFiles(tmp_path, NAME))
    for each, request, response in answered:
        log.note(8080, each, request, response, 1_500_000_000)
    log.close()
    return [orjson.loads(line) for path in files_in(tmp_path) for line in read(path).splitlines()]


def test_the_fields_of_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.admin.monitoring.access_log.time.time", lambda: 1_477_828_938.623)
    headers = {"user-agent": 'Mozilla "4"', "authorization": "Bearer very-secret"}
    request = Request("GET", "/status.html", "a=b", headers, host="example.com:8080", scheme="https")
    (line,) = logged(tmp_path, (exchange(), request, Response(404)))
    assert line == {
        "ip": "10.1.2.3",
        "time": 1477828937.123,
        "duration": 1.5,
        "responsesize": 321,
        "requestsize": 12,
        "code": 404,
        "method": "GET",
        "uri": "/status.html?a=b",
        "version": "HTTP/2.0",
        "agent": 'Mozilla "4"',
        "host": "example.com:8080",
        "scheme": "https",
        "localport": 8080,
        "connection": "8080-7",
        "peeraddr": "10.1.2.3",
        "peerport": 5555,
    }


def test_who_has_asked_by_way_of_a_proxy_and_a_certificate(tmp_path: Path) -> None:
    headers = {"y-ra": "2.2.2.2", "x-forwarded-for": "1.1.1.1", "y-rp": "99"}
    certificate = ClientCertificate("client", (), "00")
    proxied, own = logged(
        tmp_path,
        (exchange(certificate), Request("GET", "/", headers=headers), Response(200)),
        (exchange(), Request("GET", "/", headers={"client-ip": "10.1.2.3", "y-rp": "9"}), Response(200)),
    )
    assert (proxied["remoteaddr"], proxied["remoteport"], proxied["ssl-principal"]) == ("1.1.1.1", 99, "CN=client")
    assert not {"remoteaddr", "remoteport", "ssl-principal"} & own.keys()


@pytest.mark.parametrize(
    ("coverage", "shown"),
    [
        (None, {}),
        (Coverage(90, 100, 1, 1), {"coverage": {"coverage": 100, "documents": 90}}),
        (
            Coverage(9, 10, 1, 1, frozenset(("timeout", "match-phase"))),
            {"coverage": {"coverage": 10, "documents": 9, "degraded": {"match-phase": True, "timeout": True}}},
        ),
    ],
)
def test_what_a_query_found(tmp_path: Path, coverage: Coverage | None, shown: dict[str, Any]) -> None:
    response = Response(200, about=(1234, 10, coverage, -1, 0))
    (line,) = logged(tmp_path, (exchange(), Request("GET", "/search/"), response))
    assert line["search"] == {"totalhits": 1234, "hits": 10, **shown}


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("query=token+ring&hits=3", "query=token+ring&hits=3"),
        ("access_token=abc&hits=3", "access_token=***&hits=3"),
        ("a=1&API-Key=k%26k", "a=1&API-Key=***"),
        ("p%61ssword=x&ranking.properties.secret=y", "p%61ssword=***&ranking.properties.secret=***"),
        ("token", "token"),
        ("token&x=%zz", "token&x=%zz"),
    ],
)
def test_secrets_in_a_query_string_are_left_out(tmp_path: Path, query: str, shown: str) -> None:
    (line,) = logged(tmp_path, (exchange(), Request("GET", "/search/", query), Response(200)))
    assert line["uri"] == f"/search/?{shown}"


def test_any_text_is_a_line_of_json(tmp_path: Path) -> None:
    odd = 'a"\\\n\x00\x1f\u2028\ud800é'
    request = Request(odd, "/" + odd, odd, {"user-agent": odd, "x-forwarded-for": odd, "y-rp": "²"}, host=odd)
    (line,) = logged(tmp_path, (exchange(), request, Response(200)))
    shown = odd.replace("\ud800", "?")
    assert (line["method"], line["uri"], line["agent"]) == (shown, f"/{shown}?{shown}", shown)


def test_long_texts_are_cut(tmp_path: Path) -> None:
    long = "x" * 100_000
    request = Request("GET", "/" + long, long, {"user-agent": long})
    (line,) = logged(tmp_path, (exchange(), request, Response(200)))
    assert max(map(len, (line["uri"], line["agent"]))) <= 2 * limits.monitoring.ACCESS_LOG_CHARACTERS + 1


def test_what_finds_no_room_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "ACCESS_LOG_QUEUE_LENGTH", 5)
    may_write = threading.Event()
    files = LogFiles(tmp_path, NAME)
    write = files.write

    def wait(lines: Sequence[bytes]) -> None:
        may_write.wait(30)
        write(lines)

    monkeypatch.setattr(files, "write", wait)
    log = AccessLog(files)
    for _ in range(20):
        log.note(1, exchange(), Request("GET", "/"), Response(200), 1)
    assert log.lost >= 20 - 2 * 5
    may_write.set()
    log.close()
    lines = [line for path in files_in(tmp_path) for line in read(path).splitlines()]
    assert len(lines) + log.lost == 20
