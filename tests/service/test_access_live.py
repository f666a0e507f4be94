"""Who may do what in a service that serves: keys, client certificates, deployments, and how they might be evaded."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import cbor2
import httpx
import pytest
from cryptography import x509
from typer.testing import CliRunner

from paperwasp.admin.access import KeyFolder
from paperwasp.cli import app
from paperwasp.http.tls_files import PemFile, TlsSettings
from tests import web
from tests.http.certificates import Authority, Owner
from tests.http.http_servers import BOTH
from tests.service.in_process import HOST, ZIP, Deployed, active, deployed_service
from tests.service.music import SCHEMA, package

SERVER = x509.IPAddress(IPv4Address(HOST))
SWITCH = '<config name="paperwasp.access"><required>true</required></config>'
YQL = "select * from music where true"
DOCUMENT = "/document/v1/ns/music/docid/1"
BODY = {"fields": {"title": "Kind of Blue"}}
NOT_KEPT = "must-revalidate,no-cache,no-store"


def services(inside: str) -> dict[str, str | bytes]:
    content = (
        '<content id="records" version="1.0"><redundancy>1</redundancy>'
        '<documents><document type="music" mode="index"/></documents></content>'
    )
    container = f'<container id="default" version="1.0"><search/><document-api/>{inside}</container>'
    return {"services.xml": f"<services>{container}{content}</services>", "schemas/music.sd": SCHEMA}


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "data" / "keys")


@contextmanager
def serving(
    tmp_path: Path, inside: str = SWITCH, more: Mapping[str, bytes] = {}, **settings: Any
) -> Iterator[Deployed]:
    with deployed_service(tmp_path / "data", **settings) as service:
        active(service.deploy({**services(inside), **more}))
        yield service


def client(
    service: Deployed, token: str = "", http2: bool = False, tls: ssl.SSLContext | None = None, url: str = ""
) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = url or service.url
    return httpx.Client(
        base_url=base,
        headers=headers,
        http1=not http2,
        http2=http2,
        verify=tls or True,
        timeout=30,
        event_hooks={"request": [web.give_time]},
    )


def statuses(http: httpx.Client) -> dict[str, int]:
    """What a client may do: the status of one request of each kind."""
    return {
        "put": http.post(DOCUMENT, json=BODY).status_code,
        "update": http.put(DOCUMENT, json={"fields": {"year": {"assign": 1959}}}).status_code,
        "get": http.get(DOCUMENT).status_code,
        "visit": http.get("/document/v1/ns/music/docid").status_code,
        "query": http.get("/search/", params={"yql": YQL}).status_code,
        "query by post": http.post("/search/", json={"yql": YQL}).status_code,
        "remove": http.delete(DOCUMENT).status_code,
        "health": http.get("/state/v1/health").status_code,
        "status": http.get("/status.html").status_code,
        "metrics": http.get("/prometheus/v1/values").status_code,
        "unknown": http.get("/unknown").status_code,
    }


READS = {"get", "visit", "query", "query by post", "unknown"}
WRITES = {"put", "update", "remove"}


def expected(allowed: set[str], refusal: int) -> dict[str, int]:
    names = {*READS, *WRITES}
    found = {name: 200 if name in allowed else refusal for name in names}
    found |= {"unknown": 404 if "unknown" in allowed else refusal}
    return found | {"health": 200, "status": 200, "metrics": 200}


@BOTH
def test_keys_by_their_scopes(http2: bool, keys: KeyFolder, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        for scopes, allowed in (
            (("read", "write"), READS | WRITES), (("read",), READS), (("write",), WRITES), (("deploy",), set[str]()),
        ):  # fmt: skip
            if scopes == ("read",):
                with client(service, keys.create("w", ("write",))[1]) as writer:
                    assert writer.post(DOCUMENT, json=BODY).status_code == 200
            with client(service, keys.create("a", scopes)[1], http2) as http:
                assert statuses(http) == expected(allowed, 403)
        with client(service, http2=http2) as http:
            assert statuses(http) == expected(set(), 401)


def test_refusals_are_said_as_each_interface_says_errors(keys: KeyFolder, tmp_path: Path) -> None:
    with serving(tmp_path) as service, client(service) as http:
        answer = http.get("/search/", params={"yql": YQL})
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="paperwasp"'
        assert answer.headers["Cache-Control"] == NOT_KEPT
        (error,) = answer.json()["root"]["errors"]
        assert error == {"code": 14, "summary": "Client not authenticated.", "message": "Unauthorized"}
        assert http.post(DOCUMENT, json=BODY).json() == {"pathId": DOCUMENT, "message": "Unauthorized"}
        assert http.get("/unknown").json() == {"message": "Unauthorized"}
        packed = http.get("/document/v1/", headers={"Accept": "application/cbor"})
        assert cbor2.loads(packed.content) == {"pathId": "/document/v1/", "message": "Unauthorized"}
        http.headers["Authorization"] = f"Bearer {keys.create('a', ('deploy',))[1]}"
        refused = http.get("/search/", params={"yql": YQL})
        assert (refused.status_code, refused.headers["Cache-Control"]) == (403, NOT_KEPT)
        assert "WWW-Authenticate" not in refused.headers
        (error,) = refused.json()["root"]["errors"]
        assert error == {"code": 15, "summary": "Forbidden.", "message": "Forbidden"}


@BOTH
def test_a_key_that_is_revoked_or_over_ends_on_open_connections(http2: bool, keys: KeyFolder, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        key, token = keys.create("a", ("read",))
        with client(service, token, http2) as http:
            assert http.get("/search/", params={"yql": YQL}).status_code == 200
            keys.revoke(key.id)
            assert http.get("/search/", params={"yql": YQL}).status_code == 403
            http.headers["Authorization"] = f"Bearer {keys.create('a', ('read',))[1]}"
            assert http.get("/search/", params={"yql": YQL}).status_code == 200
            http.headers["Authorization"] = f"Bearer {keys.create('a', ('read',), lifetime_seconds=0)[1]}"
            assert http.get("/search/", params={"yql": YQL}).status_code == 403


def test_the_command_makes_keys_that_serve_at_once(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        found = CliRunner().invoke(app, ["key", *arguments, "--data-dir", str(tmp_path / "data")])
        assert found.exit_code == 0, found.output
        return found.stdout

    with serving(tmp_path) as service:
        token = run("create", "feed", "--scopes", "read,write", "--expires-in", "1h").strip()
        with client(service, token) as http:
            assert statuses(http) == expected(READS | WRITES, 403)
            assert token not in run("list") and "feed" in run("list")
            assert "Revoked key" in run("revoke", "feed")
            assert statuses(http) == expected(set(), 403)


def test_the_switch_of_the_service_and_of_a_container(tmp_path: Path) -> None:
    inside = '<config name="paperwasp.access"><required>false</required></config>'
    with deployed_service(tmp_path / "data", authenticates=True) as service, client(service) as http:
        active(service.deploy(services("")))
        assert http.get("/search/", params={"yql": YQL}).status_code == 401
        active(service.deploy(services(inside)))
        assert http.get("/search/", params={"yql": YQL}).status_code == 200
    clients = "<clients><client id='c' permissions='read'><token id='t'/></client></clients>"
    with serving(tmp_path, clients) as service, client(service) as http:
        assert http.get("/search/", params={"yql": YQL}).status_code == 200


def test_a_restart_of_the_service_or_a_container_keeps_the_gate(keys: KeyFolder, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        zone = "environment/prod/region/default/instance/default"
        url = f"{service.config_url}/application/v2/tenant/default/application/default/{zone}/restart"
        assert httpx.post(url, timeout=30).status_code == 200
        with client(service) as http:
            assert http.get("/search/", params={"yql": YQL}).status_code == 401
    with deployed_service(tmp_path / "data") as service, client(service) as http:
        assert http.get("/search/", params={"yql": YQL}).status_code == 401
        http.headers["Authorization"] = f"Bearer {keys.create('a', ('read',))[1]}"
        assert http.get("/search/", params={"yql": YQL}).status_code == 200


def test_clients_in_services(keys: KeyFolder, tmp_path: Path) -> None:
    """A key has what both its scopes and the clients of its name allow."""
    clients = (
        "<clients><client id='q' permissions='read'><token id='query'/></client>"
        "<client id='f' permissions='read,write'><token id='feed'/><token id='other'/></client></clients>"
    )
    with serving(tmp_path, clients + SWITCH) as service:
        for name, scopes, allowed in (
            ("feed", ("read", "write"), READS | WRITES),
            ("feed", ("write",), WRITES),
            ("query", ("read", "write"), READS),
            ("stranger", ("read", "write"), set[str]()),
        ):
            with client(service, keys.create(name, scopes)[1]) as http:
                if allowed == READS:
                    with client(service, keys.create("other", ("write",))[1]) as writer:
                        assert writer.post(DOCUMENT, json=BODY).status_code == 200
                assert statuses(http) == expected(allowed, 403)


# Certificates of clients


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def secure(owner: Owner, more: str = "") -> str:
    files = f"<private-key-file>{owner.path}</private-key-file><certificate-file>{owner.path}</certificate-file>"
    return f'<http><server id="s" port="8080"><ssl>{files}{more}</ssl></server></http>'


def certificates(*permissions: str) -> str:
    return "".join(
        f'<client id="{name}" permissions="{name}"><certificate file="security/{name.replace(",", "-")}.pem"/></client>'
        for name in permissions
    )


@BOTH
def test_clients_by_their_certificates(http2: bool, authority: Authority, keys: KeyFolder, tmp_path: Path) -> None:
    """Each trusted for itself: no authority is named."""
    own = Authority(tmp_path, "own")
    names = ("read", "write", "read-write")
    owners = {name: own.sign(name) for name in names}
    more = {f"security/{name}.pem": owner.path.read_bytes() for name, owner in owners.items()}
    inside = secure(authority.sign("server", SERVER)) + SWITCH
    inside += f"<clients>{certificates('read', 'write', 'read,write')}</clients>"
    with serving(tmp_path, inside, more) as service:
        url = service.url.replace("http:", "https:")
        context = authority.client_context
        for name, allowed in (("read-write", READS | WRITES), ("write", WRITES)):
            with client(service, "", http2, context(owners[name]), url) as http:
                assert statuses(http) == expected(allowed, 403)
        with client(service, "", http2, context(owners["write"]), url) as http:
            assert http.post(DOCUMENT, json=BODY).status_code == 200
        with client(service, "", http2, context(owners["read"]), url) as http:
            assert statuses(http) == expected(READS, 403)
        with client(service, "", http2, context(), url) as http:
            assert statuses(http) == expected(set(), 401)
        stranger = context(own.sign("stranger"))
        with pytest.raises((httpx.TransportError, ssl.SSLError)), client(service, "", http2, stranger, url) as http:
            http.get("/state/v1/health")


def test_a_certificate_of_the_authority_alone_is_no_client(authority: Authority, tmp_path: Path) -> None:
    known, stranger = authority.sign("known"), authority.sign("stranger")
    ssl_more = f"<ca-certificates-file>{authority.path}</ca-certificates-file>"
    inside = secure(authority.sign("server", SERVER), ssl_more) + SWITCH + f"<clients>{certificates('read')}</clients>"
    with serving(tmp_path, inside, {"security/read.pem": known.path.read_bytes()}) as service:
        url = service.url.replace("http:", "https:")
        for owner, status in ((known, 200), (stranger, 403)):
            with client(service, "", tls=authority.client_context(owner), url=url) as http:
                assert http.get("/search/", params={"yql": YQL}).status_code == status


def test_clients_pem_where_there_are_no_clients(authority: Authority, keys: KeyFolder, tmp_path: Path) -> None:
    known = Authority(tmp_path, "own").sign("known")
    inside = secure(authority.sign("server", SERVER)) + SWITCH
    with serving(tmp_path, inside, {"security/clients.pem": known.path.read_bytes()}) as service:
        url = service.url.replace("http:", "https:")
        with client(service, "", tls=authority.client_context(known), url=url) as http:
            assert statuses(http) == expected(READS | WRITES, 403)
        with client(service, keys.create("a", ("read",))[1], tls=authority.client_context(), url=url) as http:
            assert http.get("/search/", params={"yql": YQL}).status_code == 200


def test_an_expired_certificate_is_refused_in_the_handshake(authority: Authority, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    over = authority.sign("over", until=now - timedelta(hours=1))
    inside = secure(authority.sign("server", SERVER)) + SWITCH + f"<clients>{certificates('read')}</clients>"
    with serving(tmp_path, inside, {"security/read.pem": over.path.read_bytes()}) as service:
        url = service.url.replace("http:", "https:")
        context = authority.client_context(over)
        with pytest.raises((httpx.TransportError, ssl.SSLError)), client(service, "", tls=context, url=url) as http:
            http.get("/state/v1/health")


def test_clients_that_are_wrong_fail_the_deployment(tmp_path: Path) -> None:
    cases = {
        '<client id="a" permissions="read"/>': "client 'a' has neither a 'certificate' nor a 'token'",
        '<client id="a" permissions="all"><token id="t"/></client>': "unknown permission 'all'",
        '<client id="a" permissions="read"><certificate file="security/a.pem"/></client>': "there is no file",
        '<client id="a" permissions="read"><certificate file="services.xml"/></client>': "'services.xml': there is no",
        '<client id="a" permissions="read"><token id="t"/></client>' * 2: "client id 'a' is used more than once",
    }
    with deployed_service(tmp_path / "data") as service:
        for clients, message in cases.items():
            answer = service.deploy(services(SWITCH + f"<clients>{clients}</clients>"))
            assert answer.status_code == 412 and message in answer.json()["message"], answer.text
            assert "services.xml, line 1, column " in answer.json()["message"]
        wrong = SWITCH.replace("true", "yes").replace("<required>", "<require>").replace("</required>", "</require>")
        answer = service.deploy(services(wrong))
        assert "paperwasp.access has no 'require'; did you mean 'required'?" in answer.json()["message"]


# The config server


def deploy_status(http: httpx.Client) -> tuple[int, dict[str, Any]]:
    answer = http.post("/application/v2/tenant/default/prepareandactivate", content=package(), headers=ZIP)
    return answer.status_code, {name: answer.json().get(name) for name in ("error-code", "message")}


def test_deployments_need_a_key_of_their_own(keys: KeyFolder, tmp_path: Path) -> None:
    with (
        deployed_service(tmp_path / "data", authenticates_deployments=True) as service,
        client(service, url=service.config_url) as http,
    ):
        assert deploy_status(http) == (401, {"error-code": "UNAUTHORIZED", "message": "Unauthorized"})
        assert http.get("/application/v2/tenant/").headers["WWW-Authenticate"].startswith("Bearer")
        for page in ("/state/v1/health", "/status.html", "/ApplicationStatus", "/"):
            assert http.get(page).status_code == 200
        for trick in ("//application/v2/tenant/", "/state/v1/../../application/v2/tenant/", "/application/v2/tenant"):
            assert raw(service.service.config_server.port, f"GET {trick} HTTP/1.1\r\nHost: a\r\n\r\n") in (401, 404)
        http.headers["Authorization"] = f"Bearer {keys.create('a', ('read', 'write'))[1]}"
        assert deploy_status(http) == (403, {"error-code": "FORBIDDEN", "message": "Forbidden"})
        key, token = keys.create("ci", ("deploy",))
        http.headers["Authorization"] = f"Bearer {token}"
        assert deploy_status(http)[0] == 200
        arguments = ["status", "--url", service.url, "--config-url", service.config_url, "--token", token]
        run = CliRunner().invoke(app, arguments)
        assert run.exit_code == 0, run.output
        keys.revoke(key.id)
        assert http.get("/application/v2/tenant/").status_code == 403


def test_deployments_over_tls(authority: Authority, tmp_path: Path) -> None:
    server, deployer = PemFile(str(authority.sign("server", SERVER).path)), authority.sign("deployer")
    settings = TlsSettings(server, server, PemFile(str(authority.path)), verify=ssl.CERT_OPTIONAL)
    with deployed_service(tmp_path / "data", authenticates_deployments=True, config_tls=settings) as service:
        url = service.config_url.replace("http:", "https:")
        for owner, status in ((deployer, 200), (None, 401)):
            with client(service, tls=authority.client_context(owner), url=url) as http:
                assert deploy_status(http)[0] == status


# How it might be evaded


def raw(port: int, request: str, tls: ssl.SSLContext | None = None) -> int:
    """The status of the answer to a request as it is written."""
    with socket.create_connection((HOST, port), 10) as plain:
        plain.sendall(request.encode("latin-1"))
        answer = b""
        while b"\r\n" not in answer and (piece := plain.recv(65536)):
            answer += piece
    return int(answer.split()[1]) if answer else 0


PATHS = """
/search/ /search /search/?yql=x /search/.. /search/../state/v1/health /search/%2e%2e/state/v1/health //search/
/./search/ /search// /%73earch/ /SEARCH/ /Search/ /search;x /search%2F /state/v1/../../search/ /state/v1x
/state/v1%2f..%2f..%2fsearch/ /status.html/../search/ /status.html/ /status.html%00/search/ /document/v1/
/document/v1/ns/music/docid/1 //document/v1/ /document%2Fv1/ns/music/docid/1 /DOCUMENT/v1/ns/music/docid/1
/document/v1/../../state/v1/health /unknown http://a/search/ http://a/document/v1/ns/music/docid/1
/model-evaluation/v1/
"""


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "get", "SEARCH", "OPTIONS", "HEAD", "TRACE"])
def test_no_spelling_of_a_path_gets_an_answer(method: str, tmp_path: Path, shared: Deployed) -> None:
    """But that of a page that is open to all, where a path begins as its own does."""
    port = shared.service.containers.front_port
    for path in PATHS.split():
        status = raw(port, f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        is_open = path.startswith("/state/v1/")
        assert status in ((400, 401, 404, 405) if is_open else (400, 401)), (method, path, status)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with serving(tmp_path_factory.mktemp("shared")) as service:
        yield service


@pytest.fixture(scope="module")
def token(shared: Deployed) -> str:
    folder = shared.service.containers._accounts
    assert folder is not None
    return KeyFolder(folder.keys._path).create("a", ("read",))[1]


def test_header_fields_that_smuggle(shared: Deployed, token: str) -> None:
    port = shared.service.containers.front_port
    good = f"Authorization: Bearer {token}"
    target = "/search/?yql=select+*+from+music+where+true"
    cases = {
        good: 200,
        good.replace("Bearer", "bearer"): 200,
        good.replace("Authorization", "AUTHORIZATION"): 200,
        good.replace("Bearer", "Basic"): 401,
        good.replace("Bearer ", "Bearer"): 401,
        "Authorization: Bearer": 401,
        "Authorization: Bearer ,": 403,
        f"{good}\r\n{good}": 403,
        f"{good}\r\nAuthorization: Bearer nothing": 403,
        f"Authorization: Bearer nothing\r\n{good}": 403,
        f"Authorization: Bearer nothing, Bearer {token}": 403,
        f"{good}\r\n folded": 400,
        f"Authorization : Bearer {token}": 400,
        f"X-Authorization: Bearer {token}": 401,
        f"Proxy-Authorization: Bearer {token}": 401,
        f"Cookie: Authorization=Bearer {token}": 401,
        f"{good}\x00": 400,
        f"Authorization: Bearer {token}\xff": 403,
        f"Authorization: Bearer {'a' * 20_000}": 403,
        "X-Forwarded-Client-Cert: Hash=00": 401,
        "X-HTTP-Method-Override: GET\r\nX-Original-URL: /state/v1/health": 401,
    }
    for head, status in cases.items():
        assert raw(port, f"GET {target} HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n") == status, head
    override = f"{good}\r\nX-HTTP-Method-Override: GET\r\nX-Method-Override: GET"
    request = f"POST {DOCUMENT}?method=GET HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n{override}\r\n\r\n{{}}"
    assert raw(port, request) == 403


def test_a_query_string_is_no_header(shared: Deployed, token: str) -> None:
    with client(shared) as http:
        for name in ("access_token", "authorization", "token"):
            assert http.get("/search/", params={"yql": YQL, name: token}).status_code == 401


def test_requests_in_cbor_and_compressed_are_no_way_round(shared: Deployed, token: str) -> None:
    body = cbor2.dumps({"yql": YQL})
    with client(shared) as http, client(shared, token) as reader:
        for each, status in ((http, 401), (reader, 200)):
            headers = {"Content-Type": "application/cbor", "Accept": "application/cbor"}
            answer = each.post("/search/", content=body, headers=headers)
            assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/cbor")
        packed = cbor2.dumps(BODY)
        for each, status in ((http, 401), (reader, 403)):
            headers = {"Content-Type": "application/cbor"}
            assert each.post(DOCUMENT, content=packed, headers=headers).status_code == status


def test_an_upgrade_is_no_way_round(shared: Deployed) -> None:
    """The request that upgrades to HTTP/2 is answered there: with the refusal."""
    port = shared.service.containers.front_port
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    with socket.create_connection((HOST, port), 10) as plain:
        plain.sendall(f"GET /search/?yql=x HTTP/1.1\r\nHost: a\r\n{upgrade}\r\n".encode())
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
        answer = b""
        while b"Unauthorized" not in answer and (piece := plain.recv(65536)):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 101 ") and b"Unauthorized" in answer
    assert raw(port, "GET /search/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n") == 401


def test_refusals_are_logged_without_secrets(keys: KeyFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), serving(tmp_path) as service:
        key, token = keys.create("feed", ("deploy",))
        secret = token.split("_", 2)[2]
        with client(service, token) as http:
            assert http.get("/search/", params={"yql": YQL, "secret": secret}).status_code == 403
            keys.revoke(key.id)
            assert http.get("/search/").status_code == 403
    ours = [record for record in caplog.records if record.name.startswith("paperwasp")]
    assert [record.getMessage() for record in ours if record.name == "paperwasp.access"] == [
        f"Refused GET '/search/' from {HOST} with 403: key 'feed' ({key.id}) has no scope 'read'",
        f"Refused GET '/search/' from {HOST} with 403: an unknown or revoked key {key.id}",
    ]
    assert not any(secret in record.getMessage() for record in ours)
    files = [path.read_text() for path in (tmp_path / "data" / "logs").rglob("*") if path.is_file()]
    logged = [line for text in files for line in text.splitlines()]
    assert logged and not any(secret in line for line in logged if "\tpaperwasp." in line)
