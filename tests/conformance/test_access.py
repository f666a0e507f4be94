"""Authentication over HTTP, as the specification has it: certificates and keys, for those who ask for them."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509

from paperwasp.admin.access import KeyFolder
from paperwasp.client import FeedClient
from paperwasp.errors import FeedError
from tests import web
from tests.conformance.application import FILES
from tests.conformance.conftest import Served
from tests.conformance.deploying import SMALL
from tests.http.certificates import Authority
from tests.service.in_process import HOST, ZIP, active, deployed_service
from tests.service.music import package
from tests.service.test_applications import free_port

FIELDS = {"fields": {"text": "secret", "stars": 1}}


def test_nobody_is_asked_who_they_are_where_nothing_says_so(served: Served) -> None:
    for header in ({}, {"Authorization": "Bearer anything"}):
        for url in (f"{served.url}/search/?yql=select+*+from+music+where+true", f"{served.config_url}/state/v1/health"):
            assert web.get(url, headers=header).status_code == 200


def test_each_interface_asks_for_a_key(tmp_path: Path) -> None:
    """Without one: 401; with one of another scope: 403; with the right one it is served. Health is for everybody."""
    keys = KeyFolder(tmp_path / "data" / "keys")
    tokens = {scope: keys.create(scope, (scope,))[1] for scope in ("read", "write", "deploy")}
    interfaces = {
        "/search/?yql=select+*+from+note+where+true": "read",
        "/document/v1/ns/note/docid": "read",
        "/model-evaluation/v1/": "read",
        "/application/v2/tenant/": "deploy",
    }
    services = str(SMALL["services.xml"]).replace("<search/>", "<search/><model-evaluation/>")
    files = {**SMALL, "services.xml": services, "models/layer.onnx": FILES["models/layer.onnx"]}
    settings = {"authenticates": True, "authenticates_deployments": True}
    with deployed_service(tmp_path / "data", **settings) as service:
        deployed = web.post(
            f"{service.config_url}/application/v2/tenant/default/prepareandactivate",
            content=package(files),
            headers={**ZIP, "Authorization": f"Bearer {tokens['deploy']}"},
        )
        assert deployed.status_code == 200, deployed.text
        for path, needed in interfaces.items():
            base = service.config_url if needed == "deploy" else service.url
            assert web.get(base + path).status_code == 401
            for scope, token in tokens.items():
                answer = web.get(base + path, headers={"Authorization": f"Bearer {token}"})
                assert answer.status_code == (200 if scope == needed else 403), (path, scope)
            assert web.get(f"{base}/state/v1/health").status_code == 200
        document = f"{service.url}/document/v1/ns/note/docid/1"
        for scope, token in tokens.items():
            answer = web.post(document, json=FIELDS, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == (200 if scope == "write" else 403)


def test_the_feed_client_shows_its_certificate(tmp_path: Path) -> None:
    authority, port = Authority(tmp_path), free_port()
    server, known = authority.sign("server", x509.IPAddress(IPv4Address(HOST))), authority.sign("known")
    files = f"<private-key-file>{server.path}</private-key-file><certificate-file>{server.path}</certificate-file>"
    clients = f"<ca-certificates-file>{authority.path}</ca-certificates-file>"
    tls = f"<ssl>{files}{clients}<client-authentication>need</client-authentication></ssl>"
    http = f'<http><server id="secure" port="{port}">{tls}</server></http>'
    services = str(SMALL["services.xml"]).replace("<document-api/>", f"<document-api/>{http}")
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy({**SMALL, "services.xml": services}))
        address = f"https://{HOST}:{port}"
        with FeedClient(
            address, certificate=known.path, private_key=known.path, ca_certificates=authority.path
        ) as client:
            assert client.put("id:ns:note::1", FIELDS).result().document_id.text == "id:ns:note::1"
        with pytest.raises(FeedError):
            FeedClient(address, ca_certificates=authority.path)
