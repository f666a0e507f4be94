"""Certificates for tests of TLS: an authority, a server at 127.0.0.1 and clients, made anew for each run."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from paperwasp.http.tls import ServerContext

_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Owner:
    """A certificate with its key, in files."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    path: Path

    @property
    def sha256(self) -> str:
        return self.certificate.fingerprint(hashes.SHA256()).hex()


class Authority:
    """Signs certificates, which it writes into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), critical=True)
        builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, *alternatives: x509.GeneralName, until: datetime | None = None) -> Owner:
        """A certificate of that name, good for a day or `until` then."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, until)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)  # Python 3.13 asks for it
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        path = self._folder / f"{name}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
        return Owner(certificate, key, path)

    def server_context(self, verify: ssl.VerifyMode = ssl.CERT_NONE) -> ServerContext:
        """Of a server at 127.0.0.1; `verify`: whether clients may, or must, show a certificate of this authority."""
        context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.sign("server", x509.IPAddress(IPv4Address("127.0.0.1"))).path)
        context.load_verify_locations(self.path)
        context.verify_mode = verify
        return context

    def client_context(self, owner: Owner | None = None, protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
        """Of a client that trusts this authority, and is `owner`."""
        context = ssl.create_default_context(cafile=str(self.path))
        if owner is not None:
            context.load_cert_chain(owner.path)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime | None = None
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        key_identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(key_identifier, critical=False)
        return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(until or now + timedelta(days=1))
