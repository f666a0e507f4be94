"""The manifest of a backup: what is in it, with sizes and checksums. The first line is the SHA-256 of the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.base.version import VERSION
from paperwasp.errors import Corruption, InvalidInput

NAME: Final = "manifest.json"
DATA: Final = "data/"
"""What the names of all other members begin with."""
_FORMAT: Final = "paperwasp-backup"
_VERSION: Final = 1
_DIGEST: Final = compile_later("[0-9a-f]{64}")


class DamagedBackup(Corruption):
    """A backup is not what was written, or is none."""

    remedy = "Use another backup"


class UnknownBackup(InvalidInput):
    """A backup of a version that this program does not read."""


class BackedUp(NamedTuple):
    """One file of a backup."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a backup by name, and when the list was made."""

    files: Mapping[str, BackedUp]
    created: str = ""
    program: str = VERSION

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(file.size_bytes for file in self.files.values())

    def encode(self) -> bytes:
        """The bytes of the manifest."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "paperwasp": self.program,
            "created": self.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "files": [[name, *file] for name, file in self.files.items()],
        }
        text = orjson.dumps(content)
        return hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """The manifest in those bytes. Errors: DamagedBackup, UnknownBackup."""
    digest, _, rest = data.partition(b"\n")
    text = rest.removesuffix(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise DamagedBackup(f"the backup is damaged: the checksum of its {NAME} differs")
    try:
        return _manifest_of(orjson.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedBackup(f"the backup is damaged: its {NAME} lacks something: {error}") from None


def _manifest_of(content: Any) -> Manifest:
    if content["format"] != _FORMAT:
        raise DamagedBackup(f"this is not a backup: its {NAME} says it is '{content['format']}'")
    if content["version"] != _VERSION:
        raise UnknownBackup(
            f"the backup is of version {content['version']}, and was written by paperwasp {content['paperwasp']}; "
            f"this is paperwasp {VERSION}, which reads version {_VERSION}. Nothing was changed"
        )
    files = {name: BackedUp(size_bytes, sha256) for name, size_bytes, sha256 in content["files"]}
    for name, file in files.items():
        check_name(name)
        if not _DIGEST.fullmatch(file.sha256):
            raise DamagedBackup(f"the backup is damaged: '{name}' has no checksum")
    return Manifest(files, content["created"], content["paperwasp"])


def check_name(name: str) -> None:
    """Errors: DamagedBackup where a name could lead out of the folder that a backup is put into."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts) or len(name) > 4096:
        raise DamagedBackup(f"the backup is damaged: {name[:200]!r} is not the name of a file")
