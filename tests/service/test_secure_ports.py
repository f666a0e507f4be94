"""TLS of containers as services.xml says it: several ports, who may connect, refusals, and changes while serving."""

from __future__ import annotations

import ssl
from ipaddress import IPv4Address
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from tests.http.certificates import Authority, Owner
from tests.service.in_process import HOST, Deployed, active, deployed_service
from tests.service.test_applications import application, container, content, free_port, is_closed

SERVER = x509.IPAddress(IPv4Address(HOST))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def ssl_element(owner: Owner, more: str = "") -> str:
    path = owner.path
    return f"<ssl><private-key-file>{path}</private-key-file><certificate-file>{path}</certificate-file>{more}</ssl>"


def server(name: str, port: int, inside: str = "") -> str:
    return f'<server id="{name}" port="{port}">{inside}</server>'


def with_servers(*servers: str, more: str = "") -> dict[str, str]:
    handlers = f"<search/><document-api/><http>{''.join(servers)}</http>{more}"
    return application(container(inside=handlers), content())


def health(address: str, context: ssl.SSLContext | None = None, http2: bool = False) -> httpx.Response:
    with httpx.Client(verify=context or True, http1=not http2, http2=http2, timeout=30) as client:
        return client.get(f"{address}/state/v1/health")


def test_a_container_has_a_port_with_tls_and_one_without(authority: Authority, tmp_path: Path) -> None:
    owner, (plain, secure) = authority.sign("server", SERVER), (free_port(), free_port())
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(with_servers(server("a", plain), server("b", secure, ssl_element(owner)))))
        assert health(f"http://{HOST}:{plain}").status_code == 200
        assert service.ports() == {"default": plain}
        for http2 in (False, True):
            answer = health(f"https://{HOST}:{secure}", authority.client_context(), http2)
            assert (answer.status_code, answer.http_version) == (200, "HTTP/2" if http2 else "HTTP/1.1")
        with pytest.raises(httpx.TransportError):
            health(f"http://{HOST}:{secure}")
        active(service.deploy(with_servers(server("a", plain))))
        assert health(f"http://{HOST}:{plain}").status_code == 200
        assert is_closed(secure)


def test_clients_show_certificates_where_they_must(authority: Authority, tmp_path: Path) -> None:
    owner, port = authority.sign("server", SERVER), free_port()
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").sign("stranger")
    known = authority.sign("known")
    more = f"<ca-certificates-file>{authority.path}</ca-certificates-file>"
    more += "<client-authentication>need</client-authentication>"
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(with_servers(server("a", port, ssl_element(owner, more)))))
        assert health(f"https://{HOST}:{port}", authority.client_context(known)).status_code == 200
        for nobody in (None, stranger):
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                health(f"https://{HOST}:{port}", authority.client_context(nobody))


def test_a_port_becomes_secure_and_plain_again(authority: Authority, tmp_path: Path) -> None:
    """Connections by the former settings are ended, so that none goes on without what is now asked for."""
    owner, port = authority.sign("server", SERVER), free_port()
    with deployed_service(tmp_path / "data") as service, httpx.Client(timeout=30) as kept:
        active(service.deploy(with_servers(server("a", port))))
        assert kept.get(f"http://{HOST}:{port}/state/v1/health").status_code == 200
        active(service.deploy(with_servers(server("a", port, ssl_element(owner)))))
        with pytest.raises(httpx.TransportError):
            kept.get(f"http://{HOST}:{port}/state/v1/health")
        assert health(f"https://{HOST}:{port}", authority.client_context()).status_code == 200
        active(service.deploy(with_servers(server("a", port))))
        assert health(f"http://{HOST}:{port}").status_code == 200


def test_the_front_gives_up_its_tls_with_its_application(authority: Authority, tmp_path: Path) -> None:
    owner = authority.sign("server", SERVER)
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(with_servers(server("a", 8080, ssl_element(owner)))))
        secure = service.url.replace("http:", "https:")
        assert health(secure, authority.client_context()).status_code == 200
        active(service.deploy(with_servers(server("a", free_port()))))
        assert health(service.url).json()["status"]["code"] == "initializing"


def refused(service: Deployed, inside: str) -> str:
    answer = service.deploy(with_servers(server("a", free_port(), inside)))
    assert answer.status_code == 412, answer.text
    message: str = answer.json()["message"]
    return message


def test_files_that_cannot_be_used_are_refused_with_their_place(authority: Authority, tmp_path: Path) -> None:
    owner = authority.sign("server", SERVER)
    element = ssl_element(owner)
    with deployed_service(tmp_path / "data") as service:
        message = refused(service, element.replace(f"{owner.path}</c", f"{tmp_path / 'no.pem'}</c"))
        assert message.startswith("Invalid application package: services.xml, line 1, column ")
        assert "certificate-file: cannot read" in message
        assert "there is no file 'tls/c.pem' in the application package" in refused(
            service, element.replace(f"{owner.path}</c", "tls/c.pem</c")
        )
        other = authority.sign("other")
        assert "is not that of the certificate" in refused(
            service, element.replace(f"{owner.path}</p", f"{other.path}</p")
        )


def test_files_of_the_package(authority: Authority, tmp_path: Path) -> None:
    owner, port = authority.sign("server", SERVER), free_port()
    files: dict[str, str | bytes] = dict(with_servers(server("a", port, ssl_element(owner))))
    files["services.xml"] = str(files["services.xml"]).replace(str(owner.path), "security/server.pem")
    files["security/server.pem"] = owner.path.read_bytes()
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(files))
        assert health(f"https://{HOST}:{port}", authority.client_context()).status_code == 200
