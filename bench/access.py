"""What it costs to know who asks: queries over one connection kept open, at four containers of one service.

    plain   nobody needs to say who they are          key    a bearer key with each request
    tls     TLS, nobody needs to say who they are     mtls   TLS, the certificate of the connection is a client's

The kinds take turns in a random order, a few queries each time, always others, so that no answer is kept from before.
Authentication is `key` beside `plain`, and `mtls` beside `tls`: TLS itself has its own price. CPU time of the server,
the median of all turns.
"""

from __future__ import annotations

import itertools
import random
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bench.connection import Connection
from bench.corpus import SEED
from bench.feed import feed, feed_file
from bench.http_query import requests, total_count
from bench.layers import NothingMeasured
from bench.report import Report, Row
from bench.service import APPLICATION, Running, data_directory, paperwasp

MOST_SHARE = 0.05
BATCH = 20
"""Queries of one kind in a row."""
WARMING = 20
"""Batches that do not count."""
KINDS = ("plain", "key", "tls", "mtls")
_REQUIRED = '<config name="paperwasp.access"><required>true</required></config>'


@dataclass(frozen=True)
class Options:
    documents_count: int = 20_000
    batches_count: int = 300


def run(report: Report, options: Options) -> None:
    with data_directory() as data:
        ports = _ports()
        server_pem, client_pem = _certificate(data / "server.pem"), _certificate(data / "client.pem")
        application = _application(data / "application", ports, server_pem, client_pem)
        key = _key(data / "data")
        with paperwasp(data / "data", application) as server:
            feed(server, feed_file(options.documents_count))
            connections = {
                "plain": Connection(ports["plain"]),
                "key": _WithKey(ports["key"], key),
                "tls": _Secure(ports["tls"], server_pem, None),
                "mtls": _Secure(ports["mtls"], server_pem, client_pem),
            }
            times = _measure(server, connections, options)
            for connection in connections.values():
                connection.close()
    work = f"query over HTTP, {options.documents_count:,} documents, server CPU"
    for kind, without in (("plain", ""), ("key", "plain"), ("tls", ""), ("mtls", "tls")):
        share = times[kind] / times[without] - 1 if without else 0.0
        row = Row(f"{work}: {kind}", f"{times[kind]:.0f} µs")
        if without:
            target = f"≤ {MOST_SHARE:.0%} more than {without}"
            row = Row(row.work, row.ours, ratio=f"{share:+.1%}", target=target, met=share <= MOST_SHARE)
        report.add(row)


def _measure(server: Running, connections: Mapping[str, Connection], options: Options) -> dict[str, float]:
    """Kind → microseconds of CPU of a query."""
    queries = requests("body", "body")
    if not all(total_count(each.answer(next(queries))) for each in connections.values()):
        raise NothingMeasured("the query finds nothing")
    choice = random.Random(SEED)
    times: dict[str, list[float]] = {kind: [] for kind in connections}
    with server.pinned():
        for number in range(options.batches_count + WARMING):
            for kind in choice.sample(KINDS, len(KINDS)):
                asked = list(itertools.islice(queries, BATCH))
                before = server.cpu_seconds()
                for query in asked:
                    connections[kind].answer(query)
                if number >= WARMING:
                    times[kind].append((server.cpu_seconds() - before) / BATCH * 1e6)
    return {kind: statistics.median(found) for kind, found in times.items()}


class _WithKey(Connection):
    """Sends a key with each request."""

    def __init__(self, port: int, key: str) -> None:
        super().__init__(port)
        self._head = f"Authorization: Bearer {key}\r\n\r\n".encode()

    def send(self, request: bytes) -> None:
        super().send(request.removesuffix(b"\r\n") + self._head)


class _Secure(Connection):
    """Speaks TLS, as a client with a certificate or without."""

    def __init__(self, port: int, authority: Path, client: Path | None) -> None:
        super().__init__(port)
        context = ssl.create_default_context(cafile=authority)
        context.check_hostname = False
        if client is not None:
            context.load_cert_chain(client)
        self.socket = context.wrap_socket(self.socket)


def _ports() -> dict[str, int]:
    with _free_sockets(len(KINDS)) as found:
        return dict(zip(KINDS, found, strict=True))


@contextmanager
def _free_sockets(count: int) -> Iterator[list[int]]:
    """Ports that are free once this is over."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        yield [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _application(folder: Path, ports: Mapping[str, int], server: Path, client: Path) -> Path:
    """The application of the other benchmarks, with a container of each kind."""
    shutil.copytree(APPLICATION, folder)
    (folder / "security").mkdir()
    shutil.copy(client, folder / "security" / "clients.pem")
    files = f"<private-key-file>{server}</private-key-file><certificate-file>{server}</certificate-file>"
    containers = ""
    for kind in KINDS:
        tls = f"<ssl>{files}</ssl>" if "tls" in kind else ""
        required = _REQUIRED if kind in ("key", "mtls") else ""
        port = f'<http><server id="{kind}" port="{ports[kind]}">{tls}</server></http>'
        containers += f'<container id="{kind}" version="1.0"><search/>{port}{required}</container>'
    services = (folder / "services.xml").read_text()
    (folder / "services.xml").write_text(services.replace("<content ", f"{containers}<content ", 1))
    return folder


def _key(data: Path) -> str:
    command = [sys.executable, "-m", "paperwasp", "key", "create", "bench", "--data-dir", str(data)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _certificate(path: Path) -> Path:
    """One that has signed itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.stem)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    path.write_bytes(certificate.public_bytes(pem) + secret)
    return path
