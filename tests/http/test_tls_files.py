"""TLS made of files: what a context becomes, what is refused with its reason, and files that change."""

from __future__ import annotations

import asyncio
import socket
import ssl
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from paperwasp.base.records import replace
from paperwasp.http.messages import Request, json_response
from paperwasp.http.server import HttpServer
from paperwasp.http.tls_files import PemFile, ReloadedTls, TlsSettings, WrongTls, certificates_of, make_context
from tests.http.certificates import Authority, Owner
from tests.http.http_servers import HOST

SERVER = x509.IPAddress(IPv4Address(HOST))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings_of(owner: Owner) -> TlsSettings:
    return TlsSettings(PemFile(str(owner.path)), PemFile(str(owner.path)))


def shown_to(context: ssl.SSLContext, port: int) -> str:
    """The fingerprint of the certificate that a server shows."""
    with socket.create_connection((HOST, port), 10) as plain, context.wrap_socket(plain, server_hostname=HOST) as tls:
        shown = tls.getpeercert(binary_form=True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown).fingerprint(hashes.SHA256()).hex()


def negotiated(ours: ssl.SSLContext, theirs: ssl.SSLContext) -> tuple[str, str]:
    """Version and cipher suite of a handshake in memory. Errors: ssl.SSLError where there is none in common."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = ours.wrap_bio(to_server, to_client, server_side=True)
    client = theirs.wrap_bio(to_client, to_server, server_hostname=HOST)
    waiting: list[ssl.SSLObject] = [client, server]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    cipher = client.cipher()
    assert not waiting and cipher is not None
    return client.version() or "", cipher[0]


@pytest.mark.parametrize(
    ("suites", "protocols", "expected"),
    [
        ((), (), {"TLSv1.3", "TLSv1.2"}),
        ((), ("TLSv1.3",), {"TLSv1.3"}),
        ((), ("TLSv1.2",), {"TLSv1.2"}),
        (("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",), (), {"TLSv1.2"}),
        (("TLS_AES_256_GCM_SHA384",), (), {"TLSv1.3"}),
        (("TLS_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"), (), {"TLSv1.3", "TLSv1.2"}),
    ],
)
def test_protocols_and_suites(
    suites: tuple[str, ...], protocols: tuple[str, ...], expected: set[str], authority: Authority
) -> None:
    ours = make_context(replace(settings_of(authority.sign("s", SERVER)), cipher_suites=suites, protocols=protocols))
    spoken = set()
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        theirs = authority.client_context()
        theirs.minimum_version = theirs.maximum_version = version
        try:
            spoken.add(negotiated(ours, theirs)[0])
        except ssl.SSLError:
            continue
    assert spoken == expected


@pytest.mark.parametrize(
    ("name", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
    ],
)
def test_the_names_of_suites_that_java_has(name: str, openssl: str, authority: Authority) -> None:
    ours = make_context(replace(settings_of(authority.sign("s", SERVER)), cipher_suites=(name,)))
    theirs = authority.client_context()
    theirs.set_ciphers("ALL")
    assert negotiated(ours, theirs) == ("TLSv1.2", openssl)


def test_what_cannot_be_used_is_refused_with_its_setting(authority: Authority, tmp_path: Path) -> None:
    owner, other = authority.sign("one", SERVER), authority.sign("other")
    good = settings_of(owner)
    empty = PemFile("empty.pem", b"")
    encrypted = owner.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    broken = PemFile("x.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    cases = [
        (replace(good, certificate=PemFile(str(tmp_path / "no.pem"))), "certificate-file", "No such file"),
        (replace(good, certificate=PemFile(str(tmp_path))), "certificate-file", "Is a directory"),
        (replace(good, certificate=empty), "certificate-file", "no certificate in PEM form in 'empty.pem'"),
        (replace(good, certificate=broken), "certificate-file", "'x.pem'"),
        (replace(good, private_key=empty), "private-key-file", "no private key in PEM form in 'empty.pem'"),
        (replace(good, private_key=PemFile("k.pem", encrypted)), "private-key-file", "is encrypted"),
        (replace(good, private_key=PemFile(str(other.path))), "private-key-file", "is not that of the certificate"),
        (replace(good, authorities=empty), "ca-certificates-file", "no certificate in PEM form in 'empty.pem'"),
        (replace(good, authorities=broken), "ca-certificates-file", "'x.pem'"),
        (replace(good, protocols=("TLSv1.2", "SSLv3")), "protocols", "'SSLv3' is not spoken"),
        (replace(good, cipher_suites=("TLS_NONE",)), "cipher-suites", "no cipher suite 'TLS_NONE'"),
        (
            replace(good, protocols=("TLSv1.3",), cipher_suites=("ECDHE-ECDSA-AES128-GCM-SHA256",)),
            "cipher-suites",
            "none is of a protocol",
        ),
    ]
    for settings, setting, problem in cases:
        with pytest.raises(WrongTls, match=problem) as refused:
            make_context(settings)
        assert refused.value.setting == setting


def test_files_of_a_package(authority: Authority) -> None:
    content = authority.sign("one", SERVER).path.read_bytes()
    ours = make_context(TlsSettings(PemFile("tls/one.pem", content), PemFile("tls/one.pem", content)))
    assert negotiated(ours, authority.client_context())[0] == "TLSv1.3"


def test_certificates_that_changed_are_shown_to_who_comes_next(authority: Authority, tmp_path: Path) -> None:
    """Who is connected stays so; a change that cannot be used changes nothing."""
    first, second = authority.sign("first", SERVER), authority.sign("second", SERVER)
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"

    def write(shown: Owner, held: Owner) -> None:
        for path, owner in ((certificate, shown), (key, held)):
            new = path.with_suffix(".new")
            new.write_bytes(owner.path.read_bytes())
            new.replace(path)

    write(first, first)
    settings = TlsSettings(PemFile(str(certificate)), PemFile(str(key)))

    async def run() -> None:
        server = HttpServer(lambda request: json_response(200, request.raw_path), HOST, 0)
        server.secure(ReloadedTls(settings))
        server.start()
        context = authority.client_context(protocols=("http/1.1",))
        try:
            reader, writer = await asyncio.open_connection(HOST, server.port, ssl=context)
            assert await asyncio.to_thread(shown_to, context, server.port) == first.sha256
            for owners, expected in (((second, first), first), ((second, second), second)):
                write(*owners)
                assert await asyncio.to_thread(shown_to, context, server.port) == expected.sha256
            certificate.unlink()
            assert await asyncio.to_thread(shown_to, context, server.port) == second.sha256
            writer.write(b"GET /kept HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).endswith(b'"/kept"')
            writer.close()
        finally:
            await asyncio.wait_for(server.stop(), 10)

    asyncio.run(run())


def test_certificates_in_a_file(authority: Authority) -> None:
    one, two = authority.sign("one"), authority.sign("two")
    both = one.path.read_bytes() + two.path.read_bytes()
    expected = tuple(each.certificate.public_bytes(serialization.Encoding.DER) for each in (one, two))
    assert certificates_of(both) == expected
    for wrong in (b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        with pytest.raises(ValueError, match="certificate"):
            certificates_of(wrong)


def test_a_request_is_served_with_the_settings(authority: Authority) -> None:
    """Clients that must show certificates, trusted one by one beside an authority."""
    alone = Authority(authority.path.parent, "alone")
    known, stranger = alone.sign("known"), alone.sign("stranger")
    settings = replace(
        settings_of(authority.sign("server", SERVER)),
        verify=ssl.CERT_REQUIRED,
        trusted=certificates_of(known.path.read_bytes()),
    )

    def who(request: Request) -> object:
        return request.client.common_name if request.client else None

    async def ask(owner: Owner, port: int) -> bytes:
        context = authority.client_context(owner)
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    async def run() -> None:
        server = HttpServer(lambda request: json_response(200, who(request)), HOST, 0)
        server.secure(ReloadedTls(settings))
        server.start()
        try:
            assert (await ask(known, server.port)).endswith(b'"known"')
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await ask(stranger, server.port)
        finally:
            await asyncio.wait_for(server.stop(), 10)

    asyncio.run(run())
