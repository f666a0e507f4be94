"""Request filters in a service that serves: what they may do, what they cannot, and what gets past them: nothing."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from paperwasp.container.gate import filters
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.test_access_live import YQL, client, raw, services

FILTERS = """
import threading
from paperwasp.components import ChangedHead, FilterAnswer, RequestHead, Setup

HELD = threading.Event()

class Secret:
    def __init__(self, setup: Setup) -> None:
        self.secret = setup.settings["secret"]

    def filter(self, request: RequestHead):
        if request.headers.get("x-secret") == self.secret:
            return None
        return FilterAnswer(401, '{"message": "who are you?"}', headers={"WWW-Authenticate": "Custom"})

class Moved:
    def __init__(self, setup): ...
    def filter(self, request):
        return FilterAnswer(307, b"", "text/plain", {"Location": "/search/?" + request.query})

class Accepts:
    def __init__(self, setup): ...
    def filter(self, request):
        assert (request.method, request.scheme, request.address) == ("GET", "http", "127.0.0.1"), request
        return ChangedHead({"Accept": "application/cbor", "X-Secret": None})

class Broken:
    def __init__(self, setup): ...
    def filter(self, request):
        if "raise" in request.query:
            raise RuntimeError("the secret is 42")
        if "exit" in request.query:
            raise SystemExit(3)
        if "status" in request.query:
            return FilterAnswer(99)
        if "split" in request.query:
            return FilterAnswer(403, b"", headers={"X-A": "a\\r\\nSet-Cookie: b"})
        if "header" in request.query:
            return ChangedHead({"a": 3})
        return "yes"

class Slow:
    def __init__(self, setup): ...
    def filter(self, request):
        HELD.wait(60)

def release():
    HELD.set()
"""


def filtering(chains: str, attributes: str = "", server: str = "") -> str:
    classes = ("Secret", "Moved", "Accepts", "Broken", "Slow")
    declared = "".join(
        f'<filter id="{name.lower()}" class="filters.{name}" bundle="python">'
        + ('<config name="a"><secret>abc</secret></config>' if name == "Secret" else "")
        + "</filter>"
        for name in classes
    )
    return f"<http>{server}<filtering {attributes}>{declared}{chains}</filtering></http>"


def chain(name: str, filter_: str, *bindings: str, inside: str = "") -> str:
    bound = "".join(f"<binding>http://{binding}</binding>" for binding in bindings)
    return f'<request-chain id="{name}">{bound}{inside}<filter id="{filter_}"/></request-chain>'


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("filters") / "data", allow_python_components=True) as service:
        yield service


def deploy(service: Deployed, inside: str) -> None:
    active(service.deploy({**services(inside), "components/filters.py": FILTERS}))


def get(service: Deployed, path: str, **headers: str) -> httpx.Response:
    with client(service) as http:
        return http.get(path, params={"yql": YQL} if path.startswith("/search") else None, headers=headers)


def test_the_chain_of_the_strictest_binding_answers(data: Deployed) -> None:
    deploy(
        data,
        filtering(chain("a", "secret", "*/*") + chain("b", "moved", "*/old") + chain("c", "accepts", "*/search/c*")),
    )
    refused = get(data, "/search/")
    assert (refused.status_code, refused.json()) == (401, {"message": "who are you?"})
    assert refused.headers["WWW-Authenticate"] == "Custom"
    assert get(data, "/search/", **{"X-Secret": "abc"}).status_code == 200
    assert get(data, "/state/v1/health").status_code == 401
    moved = get(data, "/old")
    assert (moved.status_code, moved.headers["Location"]) == (307, "/search/?")
    packed = get(data, "/search/c")
    assert (packed.status_code, packed.headers["Content-Type"]) == (200, "application/cbor")


def test_what_no_chain_is_for_is_refused_unless_filtering_is_lax(data: Deployed) -> None:
    chains = chain("a", "secret", "*/document/v1/*")
    deploy(data, filtering(chains))
    refused = get(data, "/search/")
    assert (refused.status_code, refused.text) == (403, "Request did not match any request filter chain")
    deploy(data, filtering(chains, 'strict-mode="false"'))
    assert get(data, "/search/").status_code == 200
    assert get(data, "/document/v1/").status_code == 401
    deploy(data, filtering(chains, server='<server id="s" port="8080" default-request-chain="a"/>'))
    assert get(data, "/search/").status_code == 401


def test_ports_are_those_of_services(data: Deployed) -> None:
    """Whatever a client says in `Host`."""
    server = '<server id="s" port="8080"/>'
    deploy(data, filtering(chain("a", "secret", "*:8080/*") + chain("b", "accepts", "*:9999/*"), server=server))
    port = data.service.containers.front_port
    for host in ("a", "a:9999", "a:8080"):
        assert raw(port, f"GET /search/ HTTP/1.1\r\nHost: {host}\r\n\r\n") == 401


def test_filters_that_are_inherited(data: Deployed) -> None:
    inherits = "<inherits><chain>base</chain><exclude>broken</exclude></inherits>"
    base = '<request-chain id="base"><filter id="secret"/><filter id="broken"/></request-chain>'
    deploy(data, filtering(base + chain("a", "moved", "*/*", inside=inherits)))
    assert get(data, "/search/").status_code == 401
    assert get(data, "/search/", **{"X-Secret": "abc"}).status_code == 307


@pytest.mark.parametrize("what", ["raise", "exit", "status", "split", "header", "other"])
def test_a_filter_that_fails_is_500_and_says_nothing(
    what: str, data: Deployed, caplog: pytest.LogCaptureFixture
) -> None:
    deploy(data, filtering(chain("a", "broken", "*/*"), 'strict-mode="false"'))
    with caplog.at_level(logging.ERROR):
        answer = get(data, f"/unknown?{what}")
    assert answer.status_code == 500
    assert "42" not in answer.text and "Traceback" not in answer.text and "filters.py" not in answer.text
    if what == "raise":
        assert "components/filters.py, line 3" in caplog.text and "the secret is 42" in caplog.text


@pytest.mark.parametrize(
    "path", ["/%73ecret/a", "/secret%2Fa", "/%2e%2e/secret/a", "/secret/a%00", "/secret/../search/", "//secret/a"]
)
def test_no_spelling_of_a_path_gets_past_a_filter(path: str, data: Deployed) -> None:
    """Lax filtering; what such a path is not a binding's is nobody's, and answered with 404."""
    deploy(data, filtering(chain("a", "secret", "*/secret/*", "*/state/v1/*"), 'strict-mode="false"'))
    port = data.service.containers.front_port
    assert raw(port, f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n") in (401, 404)
    assert raw(port, "GET /state/v%31/health HTTP/1.1\r\nHost: a\r\n\r\n") == 401


def test_slow_filters_hold_up_nobody_else(data: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "ACCESS_FILTER_SECONDS", 0.2)
    monkeypatch.setattr(filters, "ACCESS_FILTERS_WAITING", 4)
    deploy(data, filtering(chain("a", "slow", "*/slow"), 'strict-mode="false"'))
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(get(data, "/slow").status_code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert get(data, "/search/").status_code == 200
    for thread in threads:
        thread.join()
    assert set(statuses) == {429, 504}
    release_slow_filters()


def test_requests_whose_time_is_over_keep_their_room_while_filters_are_held_up(
    data: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else ever more of them wait for the thread."""
    monkeypatch.setattr(filters, "ACCESS_FILTER_SECONDS", 0.01)
    monkeypatch.setattr(filters, "ACCESS_FILTER_THREADS", 1)
    monkeypatch.setattr(filters, "ACCESS_FILTERS_WAITING", 3)
    deploy(data, filtering(chain("a", "slow", "*/slow"), 'strict-mode="false"'))
    for module in filter_modules():
        module.HELD.clear()
    assert [get(data, "/slow").status_code for _ in range(5)] == [504, 504, 504, 429, 429]
    release_slow_filters()


def release_slow_filters() -> None:
    for module in filter_modules():
        module.release()


def filter_modules() -> list[Any]:
    """Return the modules of filters that the service has loaded."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("_paperwasp_components_") and name.endswith(".filters")
    ]


CORS = "com.yahoo.jdisc.http.filter.security.cors."
CORS_FIELDS = {
    "access-control-allow-credentials": "true",
    "access-control-allow-headers": "Origin,Content-Type,Accept,Yahoo-Principal-Auth,Okta-Identity-Token,"
    "Okta-Access-Token,Okta-Refresh-Token,Vespa-Csrf-Token",
    "access-control-allow-methods": "OPTIONS,GET,PUT,DELETE,POST,PATCH",
    "access-control-max-age": "604800",
}


def cors(*urls: str, required: bool = False) -> str:
    """Chains with Vespa's filters for pages of other origins, as its documentation has them."""
    items = "".join(f"<item>{url}</item>" for url in urls)
    config = f'<config name="{CORS[10:-1]}.cors-filter"><allowedUrls>{items}</allowedUrls></config>'
    binding = "<binding>http://*/*</binding>"
    chains = "".join(
        f'<{tag} id="{name}">{binding}'
        f'<filter id="{CORS}{class_}" bundle="jdisc-security-filters">{config}</filter></{tag}>'
        for tag, name, class_ in (
            ("request-chain", "asked", "CorsPreflightRequestFilter"),
            ("response-chain", "answered", "CorsResponseFilter"),
        )
    )
    access = '<config name="paperwasp.access"><required>true</required></config>' if required else ""
    return f"<http><filtering>{chains}</filtering></http>{access}"


def cors_fields(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://a.example", True),
        ("https://x.b.example", True),
        ("https://xbbexample", False),
        ("https://a.example.evil", False),
        ("null", False),
    ],
)
def test_pages_of_other_origins_may_ask_where_services_xml_says_so(data: Deployed, origin: str, allowed: bool) -> None:
    """Vespa: CorsLogic.java. The filters' fields come with the origin or without it."""
    deploy(data, cors("https://a.example", "https://*.b.example"))
    wanted = {"access-control-allow-origin": origin, **CORS_FIELDS} if allowed else CORS_FIELDS
    with client(data) as http:
        asked = http.options("/search/", headers={"Origin": origin, "Access-Control-Request-Method": "GET"})
    assert (asked.status_code, asked.content, cors_fields(asked)) == (200, b"", wanted)
    for path in ("/search/", "/document/v1/a/b/docid/1", "/state/v1/health"):
        answer = get(data, path, Origin=origin)
        assert (cors_fields(answer), answer.headers["vary"][0]) == (wanted, "*"), path
    assert cors_fields(get(data, "/search/")) == {}


def test_a_browser_asks_without_a_key_and_any_origin_may_be_allowed(data: Deployed) -> None:
    deploy(data, cors("*", required=True))
    with client(data) as http:
        asked = http.options("/search/", headers={"Origin": "https://c.example"})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, "https://c.example")
        assert http.get("/search/", headers={"Origin": "https://c.example"}).status_code == 401
    with client(data) as http:
        assert http.options("/search/").headers.get("access-control-allow-origin") is None
