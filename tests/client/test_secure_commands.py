"""Commands to services that ask who one is: TLS with certificates of clients, tokens and headers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import orjson
import pytest
from cryptography import x509

from paperwasp.admin.access import KeyFolder
from tests.client.commands import Ran, run_command
from tests.http.certificates import Authority
from tests.service.in_process import HOST, active, deployed_service
from tests.service.music import FILES

LINE = b'{"put": "id:shop:music::1", "fields": {"title": "Blue"}}\n'


def test_commands_speak_https(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    owner = authority.sign("server", x509.IPAddress(IPv4Address(HOST)))
    client = authority.sign("client")
    ssl = (
        f"<ssl><private-key-file>{owner.path}</private-key-file><certificate-file>{owner.path}</certificate-file>"
        f"<ca-certificates-file>{authority.path}</ca-certificates-file>"
        "<client-authentication>need</client-authentication></ssl>"
    )
    http = f'<http><server id="a" port="8080">{ssl}</server></http>'
    files = {**FILES, "services.xml": FILES["services.xml"].replace("<search/>", f"{http}<search/>")}
    trusted = ("--ca", authority.path)
    known = (*trusted, "--certificate", client.path, "--private-key", client.path)
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(files))
        url = service.url.replace("http:", "https:")

        def run(*arguments: object, content: bytes = b"") -> Ran:
            return run_command(*arguments, "--url", url, content=content)

        assert run("feed", "-", *known, content=LINE).code == 0
        assert orjson.loads(run("visit", *known).out)["put"] == "id:shop:music::1"
        assert orjson.loads(run("query", "blue", *known, "--format", "jsonl").out)["id"] == "id:shop:music::1"
        ran = run("status", *known, "--config-url", service.config_url)
        assert f"Container at {url}: up" in ran.out
        ran = run("query", "blue")
        assert (ran.code, "Say with --ca which certificates to trust." in ran.err) == (1, True), ran
        for command in (("query", "blue"), ("visit",), ("feed", "-")):
            ran = run(*command, *trusted, content=LINE)
            assert (ran.code, f"No answer from {url}" in ran.err) == (1, True), ran
        ran = run("query", "blue", "--ca", tmp_path / "none.pem")
        assert (ran.code, "none.pem) cannot be used: " in ran.err) == (1, True), ran


@pytest.fixture
def keeper() -> Iterator[tuple[str, list[tuple[str, str | None, str | None]]]]:
    """A server that refuses everybody, and what it was sent: path, Authorization and X-Who."""
    seen: list[tuple[str, str | None, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            seen.append((self.path.partition("?")[0], self.headers["Authorization"], self.headers["X-Who"]))
            body = b'{"message":"Who are you?"}'
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def test_tokens_and_headers_go_with_every_request(
    keeper: tuple[str, list[tuple[str, str | None, str | None]]], tmp_path: Path
) -> None:
    url, seen = keeper
    who = ("--header", "X-Who: me")
    environment = {"PAPERWASP_TOKEN": "secret"}
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    for command, address in (
        (("query", "blue"), "--url"),
        (("visit", "--cluster", "a"), "--url"),
        (("deploy", tmp_path), "--config-url"),
    ):
        ran = run_command(*command, *who, address, url, environment=environment)
        assert (ran.code, "Who are you?" in ran.err) == (1, True), ran
    assert {(token, header) for _, token, header in seen} == {("Bearer secret", "me")}
    assert {path for path, _, _ in seen} >= {"/search/", "/document/v1/"}
    seen.clear()
    run_command("query", "blue", "--token", "other", "--url", url, environment=environment)
    assert [(token, header) for _, token, header in seen] == [("Bearer other", None)]


def test_keys_open_what_they_are_for(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "data" / "keys")
    tokens = {scope: keys.create(scope, (scope,))[1] for scope in ("read", "write")}
    required = '<config name="paperwasp.access"><required>true</required></config>'
    files = {**FILES, "services.xml": FILES["services.xml"].replace("<search/>", f"<search/>{required}")}
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(files))

        def run(scope: str | None, *arguments: object) -> Ran:
            token = {"PAPERWASP_TOKEN": tokens[scope]} if scope else {}
            return run_command(*arguments, "--url", service.url, content=LINE, environment=token)

        commands = {"feed": ("feed", "-"), "visit": ("visit",), "query": ("query", "blue", "--format", "jsonl")}
        codes = {
            (scope, name): run(scope, *command).code
            for scope in ("write", "read", None)
            for name, command in commands.items()
        }
        assert {key for key, code in codes.items() if code == 0} == {
            ("write", "feed"),
            ("read", "visit"),
            ("read", "query"),
        }
        for name, message in (
            (
                "feed",
                f"{service.url} takes no documents: the server answered the handshake with status 401: Unauthorized",
            ),
            ("visit", f"{service.url} does not say which content clusters there are: Unauthorized"),
            ("query", "Client not authenticated. (14): Unauthorized"),
        ):
            assert message in run(None, *commands[name]).err
