"""Who may do what: bearer keys, the token of a request, pages that need no permission, and refused requests.

Vespa: https://docs.vespa.ai/en/security/guide.html
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson
from msgspec import Struct

from paperwasp.base.env import SYSTEM, Environment, sync_directory
from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput, NotFound, PaperwaspError, Unauthenticated
from paperwasp.http.messages import Request
from paperwasp.limits.access import (
    ACCESS_KEY_FILE_BYTES,
    ACCESS_KEY_NAME_CHARACTERS,
    ACCESS_KEYS,
    ACCESS_RACY_NS,
    ACCESS_REFUSALS,
    ACCESS_REFUSALS_SECONDS,
    ACCESS_TOKEN_CHARACTERS,
)

# Bearer keys: each is a file in the folder `keys` of the data directory, which whoever serves it reads by itself.
#
#     paperwasp key create ──▶ keys/2m4k….json ◀── the service, which looks at the folder for each request with a key
#
# A key is shown once, when it is made: `pw_` + its id + `_` + 256 random bits. The file has the SHA-256 of it, which
# says nothing of the key: 256 random bits cannot be guessed, so that no slow hash is needed. Keys of one name are
# versions of it: a new one is made before the old one is revoked.
#
# A file is written under another name, synced and renamed, and never changed; revoking removes it. So commands need no
# lock, among each other or with the service; what has returned is durable; and what the service sees is whole.
#
# A wrong token costs one look at the folder and one hash. A right one is remembered while the folder stays as it is, so
# that the next request with it costs the look alone. Hashes and remembered tokens are compared in constant time.
# Page: docs/internals/formats/keys.md. `KnownKeys` is used by one thread at a time.


READ: Final = "read"
WRITE: Final = "write"
DEPLOY: Final = "deploy"
SCOPES: Final = (READ, WRITE, DEPLOY)
_LOG: Final = logging.getLogger("paperwasp.access")
_FORMAT: Final = 1
_PREFIX: Final = "pw"
_ID_BYTES: Final = 10
_SECRET_BYTES: Final = 32
_FILE: Final = compile_later(r"([a-z2-7]{16})\.json")
_TOKEN: Final = compile_later(r"pw_([a-z2-7]{16})_[A-Za-z0-9_-]{43}")
_NAME: Final = compile_later(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TEMPORARY: Final = ".tmp-"
_ID: Final = slice(len("Bearer pw_"), len("Bearer pw_") + 16)
"""Where the id of a key is in a header that sends it."""


class Key(Struct, frozen=True):
    """A key without its secret."""

    id: str
    name: str
    scopes: frozenset[str]
    """Of SCOPES."""
    sha256: bytes
    """Of the token."""
    created_seconds: int
    """Since 1970, as is `expires_seconds`."""
    expires_seconds: int | None = None
    """None: never."""

    def is_expired(self, now_seconds: float) -> bool:
        return self.expires_seconds is not None and now_seconds >= self.expires_seconds


class KeyFolder:
    """The keys of a data directory, for commands. Any number of processes may use it at a time."""

    def __init__(self, path: Path, environment: Environment = SYSTEM) -> None:
        self._path = path
        self._environment = environment

    def create(self, name: str, scopes: Collection[str], lifetime_seconds: int | None = None) -> tuple[Key, str]:
        """A new key and its token, which nobody can tell again. Durable when it returns. Errors: InvalidInput."""
        if len(name) > ACCESS_KEY_NAME_CHARACTERS or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"The name of a key has letters, digits, '.', '_' and '-', at most {ACCESS_KEY_NAME_CHARACTERS}"
            )
        if not scopes or not set(scopes) <= set(SCOPES):
            raise InvalidInput(f"The scopes of a key are one or several of {', '.join(SCOPES)}")
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if len(self.keys()) >= ACCESS_KEYS:
            raise InvalidInput(f"There are {ACCESS_KEYS} keys already, and no more can be: revoke some")
        random = self._environment.token_bytes
        id = base64.b32encode(random(_ID_BYTES)).decode().lower()
        secret = base64.urlsafe_b64encode(random(_SECRET_BYTES)).decode().rstrip("=")
        token = f"{_PREFIX}_{id}_{secret}"
        now = int(self._environment.now_seconds())
        expires = None if lifetime_seconds is None else now + lifetime_seconds
        key = Key(id, name, frozenset(scopes), _hash(token), now, expires)
        self._write(key)
        return key, token

    def keys(self) -> list[Key]:
        """All keys, the oldest first; damaged files are left out, and the log says so."""
        found = (_read(self._path / name) for name in _names(self._path))
        return sorted((key for key in found if key is not None), key=lambda key: (key.created_seconds, key.id))

    def revoke(self, name_or_id: str) -> list[Key]:
        """Removes the key of that id, or all of that name; durable when it returns. Errors: NotFound."""
        found = [key for key in self.keys() if name_or_id in (key.id, key.name)]
        if not found:
            raise NotFound(f"There is no key '{name_or_id}'")
        for key in found:
            (self._path / f"{key.id}.json").unlink(missing_ok=True)
        sync_directory(self._path)
        return found

    def _write(self, key: Key) -> None:
        content = {
            "format": _FORMAT,
            "id": key.id,
            "name": key.name,
            "scopes": sorted(key.scopes),
            "sha256": key.sha256.hex(),
            "created": key.created_seconds,
            "expires": key.expires_seconds,
        }
        path = self._path / f"{key.id}.json"
        temporary = self._path / f"{_TEMPORARY}{path.name}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
        sync_directory(self._path)
        sync_directory(self._path.parent)


class KnownKeys:
    """The keys of a data directory as they are at the moment, for whoever serves it."""

    def __init__(self, path: Path, environment: Environment = SYSTEM) -> None:
        self._path = path
        self._name = str(path)
        self._environment = environment
        self._keys: dict[str, Key] = {}
        """By id."""
        self._sent: dict[str, tuple[str, Key]] = {}
        """By id, the header value by which each of them was last sent."""
        self._changed_ns = -1
        """When the folder had changed as the keys were read; negative: they are to be read again."""
        self._folder = -1
        """The number of the folder's inode."""

    def find_sent(self, authorization: str) -> Key | None:
        """The key of an `Authorization` header that `remember` was called with; None: `find` its token."""
        self._refresh()
        known = self._sent.get(authorization[_ID])
        if known is None or not authorization.isascii() or not hmac.compare_digest(known[0], authorization):
            return None
        return known[1]

    def remember(self, authorization: str, key: Key) -> None:
        """The header has sent that key, as `find` has said."""
        if key.id == authorization[_ID] and authorization.isascii():
            self._sent[key.id] = authorization, key

    def find(self, token: str) -> Key | None:
        """The key of a token, which may have expired; None: there is none, or it was revoked."""
        if len(token) > ACCESS_TOKEN_CHARACTERS:
            return None
        found = _TOKEN.fullmatch(token)
        if found is None:
            return None
        self._refresh()
        key = self._keys.get(found[1])
        return key if key is not None and hmac.compare_digest(key.sha256, _hash(token)) else None

    def _refresh(self) -> None:
        """Reads what has changed since the last look. Where nothing can be read, there is no key."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 (for each request)
            if found.st_ctime_ns == self._changed_ns and found.st_ino == self._folder:
                return
            names = _names(self._path)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                _LOG.error("The keys in '%s' cannot be read: %s", self._path, error.strerror or error)
            self._keys, self._sent, self._changed_ns = {}, {}, -1
            return
        known = self._keys
        keys = ((id, known.get(id) or _read(self._path / name)) for name, id in names.items())
        self._keys = {id: key for id, key in keys if key is not None}
        self._sent = {}
        is_settled = self._environment.time_ns() - found.st_ctime_ns > ACCESS_RACY_NS
        self._changed_ns, self._folder = found.st_ctime_ns if is_settled else -1, found.st_ino


def shown_id(token: str) -> str:
    """The id in a token, for the log; it is no secret. Empty: it has none."""
    found = _TOKEN.fullmatch(token) if len(token) <= ACCESS_TOKEN_CHARACTERS else None
    return found[1] if found is not None else ""


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _names(path: Path) -> dict[str, str]:
    """Name of a file → id of its key. Empty where there is no folder."""
    try:
        names = sorted(each.name for each in path.iterdir())
    except FileNotFoundError:
        return {}
    found = {name: match[1] for name in names if (match := _FILE.fullmatch(name))}
    if len(found) > ACCESS_KEYS:
        _LOG.error("There are %d keys in '%s': only the first %d are read", len(found), path, ACCESS_KEYS)
    return dict(list(found.items())[:ACCESS_KEYS])


def _read(path: Path) -> Key | None:
    """The key of a file; None: it is gone, or damaged, which the log tells."""
    try:
        with path.open("rb") as file:
            return _key_of(path.name, orjson.loads(file.read(ACCESS_KEY_FILE_BYTES)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        _LOG.error("The key in '%s' cannot be used: %s", path, error)
        return None


def _key_of(name: str, content: dict[str, Any]) -> Key:
    """Errors: ValueError, TypeError, KeyError."""
    if content["format"] != _FORMAT:
        raise ValueError(f"its format is {content['format']!r}, not {_FORMAT}")
    expires = content["expires"]
    key = Key(
        str(content["id"]),
        str(content["name"]),
        frozenset(content["scopes"]),
        bytes.fromhex(content["sha256"]),
        int(content["created"]),
        None if expires is None else int(expires),
    )
    if f"{key.id}.json" != name or not key.scopes <= set(SCOPES) or len(key.sha256) != hashlib.sha256().digest_size:
        raise ValueError("it is not what its name says, or has other scopes, or no hash")
    return key


# The token of a request: `Authorization: Bearer TOKEN`.


_SCHEME: Final = "bearer "


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """The token; None: the request has none. Of several header fields the tokens are one text with commas, which is
    that of no key."""
    value = headers.get("authorization")
    if value is None or value[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return value[len(_SCHEME) :].strip() or None


# The pages that need no permission: health, version and metrics, for whoever watches the service.
#
# Paths are compared as they came, so that a page that is written in another way is not open.
# Vespa: the handlers that its access control leaves out.


_PAGES: Final = frozenset(
    ["/", "/status", "/status.html", "/ApplicationStatus", "/state/v1", "/metrics/v1", "/metrics/v2", "/prometheus/v1"]
)
_FOLDERS: Final = ("/state/v1/", "/metrics/v1/", "/metrics/v2/", "/prometheus/v1/")


def is_open(raw_path: str) -> bool:
    """Whether everybody may ask for the page."""
    return raw_path in _PAGES or raw_path.startswith(_FOLDERS)


# Refused requests: the header fields of their answers, and what the log says of them: who asked what, and why it was
# refused; a limited number in each interval; the rest is counted.
#
# Runs on one event loop.


_NOT_KEPT: Final[Mapping[str, str]] = MappingProxyType({"Cache-Control": "must-revalidate,no-cache,no-store"})
_CHALLENGE: Final[Mapping[str, str]] = MappingProxyType({**_NOT_KEPT, "WWW-Authenticate": 'Bearer realm="paperwasp"'})

_PATH_CHARACTERS: Final = 200


def refusal_headers(refusal: PaperwaspError) -> Mapping[str, str]:
    """Nobody may keep the answer; it says how clients can tell who they are, where they have not (RFC 9110, 11.6.1)."""
    return _CHALLENGE if isinstance(refusal, Unauthenticated) else _NOT_KEPT


class Refusals:
    """Logs refusals, a limited number in a time."""

    def __init__(self, environment: Environment = SYSTEM) -> None:
        self._environment = environment
        self._since_ns: int | None = None
        self._logged = 0
        self._omitted = 0

    def note(self, request: Request, status: int, why: str) -> None:
        """Neither the query string nor a header field is logged: there may be secrets in them."""
        now_ns = self._environment.monotonic_ns()
        if self._since_ns is None or now_ns - self._since_ns >= ACCESS_REFUSALS_SECONDS * 1e9:
            if self._omitted:
                _LOG.warning("%d more requests were refused, without a line for each", self._omitted)
            self._since_ns, self._logged, self._omitted = now_ns, 0, 0
        if self._logged >= ACCESS_REFUSALS:
            self._omitted += 1
            return
        self._logged += 1
        path = request.raw_path[:_PATH_CHARACTERS]
        _LOG.warning("Refused %s %r from %s with %d: %s", request.method[:20], path, _who(request), status, why)


def _who(request: Request) -> str:
    """The address of a client, and its certificate."""
    address = request.address or "an unknown address"
    client = request.client
    return address if client is None else f"{address} with certificate {client.common_name[:100]!r} {client.sha256}"
