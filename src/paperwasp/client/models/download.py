"""Brings the file at an address, in pieces, with the SHA-256 that its host says where it does."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final
from urllib.parse import urlsplit

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.base.version import VERSION
from paperwasp.errors import InvalidInput
from paperwasp.limits.remote import MODEL_TIMEOUT_SECONDS

_LINKED: Final = "X-Linked-Etag"
"""Hugging Face's header with the SHA-256 of a large file; it comes with the redirection to where the file is."""
_SHA256: Final = compile_later(r'"?([0-9a-f]{64})"?')
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is coming."""

    chunks: Iterator[bytes]
    total_bytes: int | None
    """None: the host does not say."""
    sha256: str
    """Empty: the host does not say."""


@contextmanager
def download(address: str) -> Iterator[Download]:
    """Opens what is at an address. Errors: InvalidInput with what went wrong, also while it is read."""
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        raise InvalidInput(f"'{address}' is not an address like https://host/model.onnx")
    redirections = _Redirections()
    opener = urllib.request.build_opener(redirections)
    request = urllib.request.Request(address, headers={"User-Agent": f"paperwasp/{VERSION}"})
    try:
        with opener.open(request, timeout=MODEL_TIMEOUT_SECONDS) as answer:
            said = answer.headers.get("Content-Length")
            total = int(said) if said and said.isdecimal() else None
            linked = answer.headers.get(_LINKED) or redirections.linked
            found = _SHA256.fullmatch(linked or "")
            yield Download(_chunks(answer, total), total, found[1] if found else "")
    except urllib.error.HTTPError as error:
        raise InvalidInput(f"{address} answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise InvalidInput(f"{address} cannot be fetched: {reason}") from None


def _chunks(answer: Any, total: int | None) -> Iterator[bytes]:
    size = 0
    while chunk := answer.read(_CHUNK_BYTES):
        size += len(chunk)
        yield chunk
    if total is not None and size != total:
        raise InvalidInput(f"The connection broke off after {size} of {total} bytes: nothing was stored")


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but not from HTTPS to HTTP, and remembers the hash that one of them says."""

    linked = ""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        self.linked = headers.get(_LINKED) or self.linked
        if urlsplit(newurl).scheme not in ("https", req.type):
            raise InvalidInput(f"{req.full_url} leads to '{newurl}', which is less safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
