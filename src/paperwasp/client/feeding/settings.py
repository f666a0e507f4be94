"""Everything that a feed client can be given, checked once: endpoints, headers, compression, the circuit breaker, and
what is sent again.
"""

from __future__ import annotations

import enum
import ssl
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final, TypeAlias, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import Struct, field

from paperwasp.base.version import VERSION
from paperwasp.client.feeding.circuit_breaker import CircuitBreaker, GracePeriodBreaker
from paperwasp.client.feeding.operations import OperationType
from paperwasp.errors import InvalidInput


class RetryStrategy(Struct, frozen=True):
    """Status 429 is always sent again, and not counted; this is for status 503 and connections that break."""

    operations: Set[OperationType] = frozenset(OperationType)
    """The kinds that may be sent again. Leave out what must not be done twice, such as updates that increment."""
    retries: int | None = None
    """The most that one operation is sent again. None: as long as its timeout allows."""

    def __post_init__(self) -> None:
        if self.retries is not None and self.retries < 0:
            raise InvalidInput(f"retries is 0 or more, not {self.retries}")

    def allows(self, kind: OperationType, attempts: int) -> bool:
        """Whether an operation may be sent again after this number of failures."""
        return kind in self.operations and (self.retries is None or attempts <= self.retries)


CONNECTIONS_PER_ENDPOINT: Final = 8
MAX_STREAMS_PER_CONNECTION: Final = 128
COMPRESSED_BYTES: Final = 512
"""Bodies of more bytes than this are compressed, if it is left to the client."""
_PORTS: Final = {"http": 80, "https": 443}
_OWN_HEADERS: Final = frozenset(
    ("connection", "content-encoding", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade")
)

HeaderValue: TypeAlias = str | Callable[[], str]
"""A value, or what gives one whenever requests are sent, such as a token that is renewed; called on the event loop."""


class Compression(enum.Enum):
    """Which bodies are sent as gzip."""

    AUTO = "auto"
    """Bodies above 512 bytes."""
    NONE = "none"
    GZIP = "gzip"


class Endpoint(Struct, frozen=True):
    """One address that operations are sent to."""

    host: str
    port: int
    is_secure: bool

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """Reads `http://host:8080` or `https://host`. Errors: InvalidInput."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidInput(f"'{url}' is not an address like http://127.0.0.1:8080: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise InvalidInput(f"'{url}' is not an address like http://127.0.0.1:8080")
        return cls(parts.hostname, port or _PORTS[parts.scheme], parts.scheme == "https")

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def scheme(self) -> str:
        return "https" if self.is_secure else "http"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


class FeedSettings(Struct, frozen=True, kw_only=True):
    """The settings of a feed client. Errors of the constructor: InvalidInput naming what is wrong."""

    endpoints: tuple[Endpoint, ...]
    connections_per_endpoint: int = CONNECTIONS_PER_ENDPOINT
    max_streams_per_connection: int = MAX_STREAMS_PER_CONNECTION
    connection_time_to_live_seconds: float | None = None
    compression: Compression = Compression.AUTO
    retry_strategy: RetryStrategy = field(default_factory=RetryStrategy)
    circuit_breaker: CircuitBreaker = field(default_factory=GracePeriodBreaker)
    headers: tuple[tuple[str, HeaderValue], ...] = ()
    tls: ssl.SSLContext | None = None
    is_speed_test: bool = False

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise InvalidInput("a feed client needs at least one endpoint")
        if self.connections_per_endpoint < 1:
            raise InvalidInput(f"connections_per_endpoint is 1 or more, not {self.connections_per_endpoint}")
        if self.max_streams_per_connection < 1:
            raise InvalidInput(f"max_streams_per_connection is 1 or more, not {self.max_streams_per_connection}")
        if self.connection_time_to_live_seconds is not None and self.connection_time_to_live_seconds <= 0:
            raise InvalidInput("connection_time_to_live_seconds is more than 0")

    @property
    def capacity(self) -> int:
        """The requests that fit on all connections at once."""
        return self.max_streams_per_connection * self.connections_per_endpoint * len(self.endpoints)

    def header_values(self) -> tuple[tuple[str, str], ...]:
        """The headers of a request that is sent now."""
        return tuple((name, value if isinstance(value, str) else value()) for name, value in self.headers)

    def compresses(self, body_bytes: int) -> bool:
        """Whether a body of this size is sent as gzip."""
        if self.compression is Compression.AUTO:
            return body_bytes > COMPRESSED_BYTES
        return self.compression is Compression.GZIP and body_bytes > 0


class FeedOptions(TypedDict, total=False):
    """The arguments that both faces of the client take by name; all may be left out."""

    connections_per_endpoint: int
    """8 where it is left out."""
    max_streams_per_connection: int
    """Requests in flight on one connection at most: 128 where it is left out, and no more than the server allows."""
    connection_time_to_live_seconds: float
    """Connections that are older are replaced. Left out: they live as long as they work."""
    compression: Compression | str
    """`auto`, which compresses bodies above 512 bytes, `none` or `gzip`."""
    retry_strategy: RetryStrategy
    circuit_breaker: CircuitBreaker
    headers: Mapping[str, HeaderValue]
    """For all requests. A callable is asked whenever requests are sent."""
    token: HeaderValue
    """Sent as `Authorization: Bearer`."""
    certificate: str | Path
    """File with the client's certificates in PEM; with `private_key`."""
    private_key: str | Path
    ca_certificates: str | Path
    """File with the authorities that the server's certificate may be of; the system's where it is left out."""
    ssl_context: ssl.SSLContext
    """Instead of the three files."""
    is_speed_test: bool
    """Has the server take operations and do nothing with them (`dryRun`)."""


def make_settings(endpoints: str | Sequence[str], **options: Unpack[FeedOptions]) -> FeedSettings:
    """Settings from what a caller gives. Errors: InvalidInput."""
    urls = [endpoints] if isinstance(endpoints, str) else endpoints
    parsed = tuple(Endpoint.parse(url) for url in urls)
    try:
        compression = Compression(options.get("compression", Compression.AUTO))
    except ValueError:
        raise InvalidInput(f"compression is auto, none or gzip, not '{options['compression']}'") from None
    return FeedSettings(
        endpoints=parsed,
        connections_per_endpoint=options.get("connections_per_endpoint", CONNECTIONS_PER_ENDPOINT),
        max_streams_per_connection=options.get("max_streams_per_connection", MAX_STREAMS_PER_CONNECTION),
        connection_time_to_live_seconds=options.get("connection_time_to_live_seconds"),
        compression=compression,
        retry_strategy=options.get("retry_strategy") or RetryStrategy(),
        circuit_breaker=options.get("circuit_breaker") or GracePeriodBreaker(),
        headers=_make_headers(options.get("headers", {}), options.get("token")),
        tls=_make_tls(options, any(endpoint.is_secure for endpoint in parsed)),
        is_speed_test=options.get("is_speed_test", False),
    )


def _make_headers(given: Mapping[str, HeaderValue], token: HeaderValue | None) -> tuple[tuple[str, HeaderValue], ...]:
    headers: dict[str, HeaderValue] = {"user-agent": f"paperwasp-feed-client/{VERSION}"}
    for name, value in given.items():
        if name.lower() in _OWN_HEADERS or name.startswith(":") or not name:
            raise InvalidInput(f"the header '{name}' is the client's own")
        headers[name.lower()] = value
    if token is not None:
        headers["authorization"] = f"Bearer {token}" if isinstance(token, str) else lambda: f"Bearer {token()}"
    return tuple(headers.items())


def _make_tls(options: FeedOptions, is_needed: bool) -> ssl.SSLContext | None:
    """Files are read also where no endpoint is secure, so that a mistake in them shows."""
    certificate, private_key = options.get("certificate"), options.get("private_key")
    authorities, context = options.get("ca_certificates"), options.get("ssl_context")
    if (certificate is None) != (private_key is None):
        raise InvalidInput("certificate and private_key are given together")
    if context is None and (is_needed or certificate is not None or authorities is not None):
        try:
            context = ssl.create_default_context(cafile=authorities)
            if certificate is not None:
                context.load_cert_chain(certificate, private_key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"the certificates cannot be used: {error}") from None
    elif certificate is not None or authorities is not None:
        raise InvalidInput("either ssl_context is given, or certificate, private_key and ca_certificates are")
    if context is not None:
        context.set_alpn_protocols(["h2", "http/1.1"])
    return context
