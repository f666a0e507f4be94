"""Files of Hugging Face's own cache, by the addresses that packages name them by.

    <hub>/models--<owner>--<name>/refs/<branch>                 the commit of a branch
    <hub>/models--<owner>--<name>/snapshots/<commit>/<path>     a symbolic link to ../../blobs/<hash>

The hash of a blob is its SHA-256 where Git LFS keeps it, and else Git's own SHA-1 of it.

Format: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import file_digest, sha1
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput

HOST: Final = "huggingface.co"
_ADDRESS: Final = compile_later(r"/([^/]+)/([^/]+)/(?:resolve|raw)/([^/]+)/(.+)")
_NAMES: Final = ("*.onnx", "tokenizer.json", "vocab.txt")
"""The files of a repository that embedders can use."""
_SHA1_DIGITS, _SHA256_DIGITS = 40, 64


class CachedFile(Struct, frozen=True):
    """A file of Hugging Face's cache, and an address of it."""

    address: str
    path: Path


def default_hub() -> Path:
    """Where Hugging Face's libraries keep what they have fetched."""
    if hub := os.environ.get("HF_HUB_CACHE"):
        return Path(hub)
    home = os.environ.get("HF_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "huggingface") / "hub"


def find_cached(address: str, hub: Path) -> Path | None:
    """The file that the cache has for an address of huggingface.co; None: it has none."""
    split = urlsplit(address)
    found = _ADDRESS.fullmatch(unquote(split.path)) if split.hostname == HOST else None
    if found is None or ".." in found[4].split("/"):
        return None
    owner, name, revision, path = found.groups()
    repository = hub / f"models--{owner}--{name}"
    with suppress(OSError):  # a commit, or a branch that was never fetched
        revision = (repository / "refs" / revision).read_text().strip()
    there = repository / "snapshots" / revision / path
    return there if there.is_file() and there.resolve().is_relative_to(hub.resolve()) else None


def files_of_hub(hub: Path) -> Iterator[CachedFile]:
    """The models and tokenizers of the branches that the cache has. Errors: InvalidInput: it is no such cache."""
    repositories = sorted(hub.glob("models--*--*"))
    if not repositories:
        raise InvalidInput(f"'{hub}' is no cache of Hugging Face: it has no folder models--…")
    for repository in repositories:
        _, owner, name = repository.name.split("--", 2)
        for branch in sorted(path for path in (repository / "refs").glob("*") if path.is_file()):
            snapshot = repository / "snapshots" / branch.read_text().strip()
            for path in sorted({found for pattern in _NAMES for found in snapshot.rglob(pattern)}):
                where = quote(f"{owner}/{name}/resolve/{branch.name}/{path.relative_to(snapshot).as_posix()}")
                if path.is_file() and path.resolve().is_relative_to(hub.resolve()):
                    yield CachedFile(f"https://{HOST}/{where}", path)


def check_blob(path: Path) -> None:
    """Compares a file of the cache with the hash that its blob is named by. Errors: InvalidInput if they differ."""
    blob = path.resolve()
    if blob.parent.name != "blobs":
        return  # copied, as on systems without links
    with blob.open("rb") as file:
        if len(blob.name) == _SHA256_DIGITS:
            found = file_digest(file, "sha256").hexdigest()
        elif len(blob.name) == _SHA1_DIGITS:
            hashed = sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
            found = file_digest(file, lambda: hashed).hexdigest()
        else:
            return
    if found != blob.name:
        raise InvalidInput(f"'{path}' is damaged: its hash is {found}, and its name says {blob.name}")
