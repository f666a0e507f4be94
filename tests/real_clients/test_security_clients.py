"""Real clients that say who they are: the Vespa CLI, pyvespa and curl, by certificates and by keys."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from paperwasp.admin.access import KeyFolder
from paperwasp.http.tls_files import PemFile, TlsSettings
from tests.http.certificates import Authority, Owner
from tests.real_clients.test_vespa_cli import binary
from tests.service.in_process import HOST, deployed_service
from tests.service.test_access_live import SERVER, SWITCH, YQL, certificates, secure, services

pytestmark = pytest.mark.clients
PUT = json.dumps({"put": "id:ns:music::1", "fields": {"title": "Giant Steps", "year": 1960}})
PYVESPA = """
import json, os, sys
from vespa.application import Vespa
url, port, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
with Vespa(url=url, port=port, **options).syncio() as app:
    fed = app.feed_data_point("music", "1", {"title": "Giant Steps"}, namespace="ns")
    print(fed.status_code, app.query({"yql": "select * from music where true"}).json["root"]["fields"]["totalCount"])
"""


@dataclass
class Secured:
    """A service that asks everybody who they are, over TLS, and one client that has both."""

    folder: Path
    port: int
    config_port: int
    authority: Path
    certificate: Path
    private_key: Path
    keys: KeyFolder

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def mtls(self) -> dict[str, str]:
        files = {"CA_CERT": self.authority, "CERT": self.certificate, "KEY": self.private_key}
        return {f"VESPA_CLI_DATA_PLANE_{name}_FILE": str(path) for name, path in files.items()}

    def token(self, *scopes: str) -> dict[str, str]:
        """The CLI trusts authorities of the system alone where it has a token: one by this variable, too."""
        key = self.keys.create("cli", scopes)[1]
        return {"VESPA_CLI_DATA_PLANE_TOKEN": key, "SSL_CERT_FILE": str(self.authority)}

    def vespa(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        home = {"VESPA_CLI_HOME": str(self.folder / "home"), "NO_COLOR": "1"}
        return subprocess.run(
            [str(binary()), *arguments],
            capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **home, **variables},
        )  # fmt: skip


def pem_files(owner: Owner, folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(owner.certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(owner.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return certificate, key


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    server = authority.sign("server", SERVER)
    certificate, key = pem_files(Authority(folder, "own").sign("read-write"), folder)
    clients = (
        f"<clients>{certificates('read,write')}<client id='cli' permissions='read,write'><token id='cli'/></client>"
    )
    files = services(secure(server) + SWITCH + clients + "</clients>")
    application = folder / "application"
    for name, content in {**files, "security/read-write.pem": certificate.read_bytes()}.items():
        (application / name).parent.mkdir(parents=True, exist_ok=True)
        (application / name).write_bytes(content.encode() if isinstance(content, str) else content)
    pem = PemFile(str(server.path))
    tls = TlsSettings(pem, pem, PemFile(str(certificate)), verify=ssl.CERT_OPTIONAL)
    with deployed_service(folder / "data", authenticates_deployments=True, config_tls=tls) as running:
        ports = running.service.containers.front_port, running.service.config_server.port
        found = Secured(folder, *ports, authority.path, certificate, key, KeyFolder(folder / "data" / "keys"))
        target = f"https://{HOST}:{found.config_port}"
        assert found.vespa("deploy", "-t", target, str(application)).returncode != 0
        done = found.vespa("deploy", "-t", target, str(application), **found.mtls)
        assert done.returncode == 0 and "Success" in done.stdout + done.stderr, done
        yield found


@pytest.mark.parametrize("way", ["mtls", "token"])
def test_the_cli_feeds_gets_visits_and_queries(way: str, secured: Secured, tmp_path: Path) -> None:
    variables = secured.mtls if way == "mtls" else secured.token("read", "write")
    file = tmp_path / "feed.jsonl"
    file.write_text(PUT + "\n")
    fed = secured.vespa("feed", "-t", secured.url, str(file), **variables)
    assert json.loads(fed.stdout)["feeder.ok.count"] == 1, fed
    visits = [["visit"]] if way == "mtls" else []  # where the CLI visits, it sends no token
    for arguments in (["query", YQL], ["document", "get", "id:ns:music::1"], ["status"], *visits):
        done = secured.vespa(*arguments, "-t", secured.url, **variables)
        assert done.returncode == 0, done
        assert "Giant Steps" in done.stdout or arguments == ["status"], done


def test_the_cli_is_refused_without_a_permission(secured: Secured) -> None:
    reader = secured.token("read")
    assert secured.vespa("query", YQL, "-t", secured.url, **reader).returncode == 0
    refused = secured.vespa("document", "remove", "id:ns:music::2", "-t", secured.url, **reader)
    assert refused.returncode == 1 and "Forbidden" in refused.stdout + refused.stderr, refused
    nobody = secured.vespa("query", YQL, "-t", secured.url, SSL_CERT_FILE=str(secured.authority))
    assert nobody.returncode == 1 and "401" in nobody.stdout + nobody.stderr, nobody


@pytest.mark.parametrize("way", ["mtls", "token"])
def test_pyvespa_feeds_and_queries(way: str, secured: Secured) -> None:
    if way == "mtls":
        options = {"cert": str(secured.certificate), "key": str(secured.private_key)}
    else:
        options = {"vespa_cloud_secret_token": secured.keys.create("cli", ("read", "write"))[1]}
    done = subprocess.run(
        [sys.executable, "-c", PYVESPA, f"https://{HOST}", str(secured.port), json.dumps(options)],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "HTTPR_CA_BUNDLE": str(secured.authority)},
    )  # fmt: skip
    assert done.stdout.split() == ["200", "1"], done


@pytest.mark.parametrize("http", ["--http1.1", "--http2"])
def test_curl_by_certificate_and_key(http: str, secured: Secured) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    key = secured.keys.create("cli", ("read",))[1]
    known = ["--cert", str(secured.certificate), "--key", str(secured.private_key)]
    for options, status in ((known, "200"), (["-H", f"Authorization: Bearer {key}"], "200"), ([], "401")):
        command = ["curl", "-sS", http, "--cacert", str(secured.authority), *options, "-o", os.devnull]
        url = f"{secured.url}/search/?yql=select+*+from+music+where+true"
        done = subprocess.run(
            [*command, "-w", "%{http_code}", url], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.stdout == status, done
